package provider_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/provider"
)

// A parrot is an adapter for a host with a wire format of its own. Its Complete is the
// one in docs/model-calls.md.
type parrot struct{ url string }

type question struct {
	Text   string          `json:"text"`
	System string          `json:"system,omitempty"`
	Schema json.RawMessage `json:"schema"`
}

type answer struct {
	Said    *string         `json:"said"`
	Thought string          `json:"thought,omitempty"`
	Refused string          `json:"refused,omitempty"`
	Stopped provider.Finish `json:"stopped"`
	Usage   provider.Usage  `json:"usage"`
}

func (parrot) Model() string { return "aviary/parrot-2" }

func (p parrot) post(ctx context.Context, q question) (*http.Response, []byte, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res, body, err
}

func (p parrot) Complete(ctx context.Context, r provider.Request) (json.RawMessage, error) {
	if err := cmp.Or(r.Validate(), resilience.ContextError(ctx)); err != nil {
		return nil, err // and the host hears nothing
	}
	res, body, err := p.post(ctx, question{r.Text, r.System, r.Schema.JSON()}) // once
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, resilience.ContextError(ctx)
	case err != nil:
		return nil, &provider.HostError{Kind: provider.Disconnected, Transient: true, Err: err}
	case res.StatusCode != http.StatusOK:
		e := provider.StatusError(res.StatusCode) // a start: your host's own codes say more
		e.Message = provider.Snippet(string(body))
		if e.Transient {
			e.Hint = httptransport.RetryAfter(res)
		}
		return nil, e
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Said == nil {
		return nil, &provider.MalformedCompletionError{
			Completion: provider.Completion{Text: string(body)},
			Schema:     r.Schema.Name(),
			Status:     res.StatusCode,
			Snippet:    provider.Snippet(string(body)),
			Err:        cmp.Or(err, errors.New("there is no answer in it")),
		}
	}
	c := provider.Completion{Text: *a.Said, Reasoning: a.Thought, Refusal: a.Refused, Finish: a.Stopped, Usage: a.Usage}
	return provider.Gate(c, r.Schema)
}

func TestTheGuidesAdapterKeepsTheRulesOfThePort(t *testing.T) {
	source, err := os.ReadFile("adapter_test.go")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(source), "\nfunc (p parrot) Complete")
	complete, _, _ := strings.Cut(rest, "\n}\n")
	guide, err := os.ReadFile("../docs/model-calls.md")
	require.NoError(t, err)
	assert.True(t, strings.Contains(string(guide), "func (p parrot) Complete"+complete+"\n}\n```"), "the guide shows another Complete")

	compliancetest.LLM(compliancetest.LLMHarness{New: newAviary}).Run(t)
}

// newAviary starts the parrot's host, which does with a text what does says.
func newAviary(does func(text string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
	var mu sync.Mutex
	var seen []compliancetest.HostRequest
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		request := compliancetest.HostRequest{Text: q.Text}
		if q.System != "" {
			request.System = &q.System
		}
		mu.Lock()
		seen = append(seen, request)
		mu.Unlock()
		a := does(q.Text)
		select {
		case <-time.After(a.Delay):
		case <-r.Context().Done():
		}
		speak(w, a)
	}))
	requests := func() []compliancetest.HostRequest {
		mu.Lock()
		defer mu.Unlock()
		return append([]compliancetest.HostRequest(nil), seen...)
	}
	return compliancetest.HostedLLM{LLM: parrot{host.URL}, Requests: requests, Close: func() error { host.Close(); return nil }}, nil
}

// speak puts what the rules want of the host into its own words.
func speak(w http.ResponseWriter, a compliancetest.HostAnswer) {
	status := map[provider.Kind]int{
		provider.Unauthenticated: 401, provider.QuotaExhausted: 402, provider.Forbidden: 403, provider.NotFound: 404,
		provider.Conflict: 409, provider.TooLong: 413, provider.InvalidRequest: 422, provider.RateLimited: 429,
		provider.Unavailable: 500, provider.Overloaded: 503, provider.TimedOut: 504,
	}
	switch {
	case a.Kind == provider.Disconnected:
		panic(http.ErrAbortHandler)
	case a.Kind != "":
		if a.Hint > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(a.Hint/time.Second)))
		}
		w.WriteHeader(status[a.Kind])
	case a.Junk != "":
		_, _ = io.WriteString(w, a.Junk)
	default:
		c := a.Completion
		_ = json.NewEncoder(w).Encode(answer{&c.Text, c.Reasoning, c.Refusal, c.Finish, c.Usage})
	}
}
