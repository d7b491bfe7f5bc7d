package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

// sentBody is a request as the host reads it.
type sentBody struct {
	Model    string
	Messages []struct{ Role, Content string }
}

func (b sentBody) seen() compliancetest.HostRequest {
	var r compliancetest.HostRequest
	for _, m := range b.Messages {
		switch m.Role {
		case "system":
			r.System = &m.Content
		case "user":
			r.Text = m.Content
		}
	}
	return r
}

func decode(raw []byte) sentBody {
	var b sentBody
	if err := json.Unmarshal(raw, &b); err != nil {
		panic(fmt.Sprintf("the host got %q: %v", raw, err))
	}
	return b
}

func TestTheAdapterKeepsTheRulesOfThePort(t *testing.T) {
	compliancetest.LLM(compliancetest.LLMHarness{New: func(answer func(string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
		h := start(t, func(n int, w http.ResponseWriter, r *http.Request) {
			var b sentBody
			if json.NewDecoder(r.Body).Decode(&b) != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			a := answer(b.seen().Text)
			select {
			case <-r.Context().Done():
				return
			case <-time.After(a.Delay):
			}
			give(w, n, a)
		})
		return compliancetest.HostedLLM{
			LLM: h.model(t, openai.Config{}),
			Requests: func() []compliancetest.HostRequest {
				h.mu.Lock()
				defer h.mu.Unlock()
				var seen []compliancetest.HostRequest
				for _, body := range h.bodies {
					seen = append(seen, decode(body).seen())
				}
				return seen
			},
			Close: func() error { h.server.Close(); return nil },
		}, nil
	}}).Run(t)
}

// give puts what the rules want of a host into this vendor's words.
func give(w http.ResponseWriter, n int, a compliancetest.HostAnswer) {
	var headers []string
	if a.Hint > 0 {
		headers = []string{"Retry-After", strconv.Itoa(int(a.Hint / time.Second))}
	}
	switch a.Kind {
	case "":
		if a.Junk != "" {
			send(200, a.Junk)(n, w, nil)
			return
		}
		c := a.Completion
		var extra []string
		if c.Refusal != "" {
			extra = append(extra, "refusal", c.Refusal)
		}
		if c.Reasoning != "" {
			extra = append(extra, "reasoning_content", c.Reasoning)
		}
		send(200, using(c.Usage, message(c.Text, string(c.Finish), extra...)))(n, w, nil)
	case provider.Disconnected:
		hijack(w, true, "")
	case provider.QuotaExhausted:
		send(429, failure("insufficient_quota", "insufficient_quota", "You exceeded your current quota."), headers...)(n, w, nil)
	case provider.TooLong:
		send(400, failure("context_length_exceeded", "invalid_request_error", "Too long."), headers...)(n, w, nil)
	default:
		send(statusOf[a.Kind], failure("", "", "no"), headers...)(n, w, nil)
	}
}

// using puts the usage in the place of a completion's own.
func using(u provider.Usage, completion string) string {
	var body map[string]any
	if err := json.Unmarshal([]byte(completion), &body); err != nil {
		panic(err)
	}
	body["usage"] = map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var statusOf = map[provider.Kind]int{
	provider.Unauthenticated: 401, provider.Forbidden: 403, provider.NotFound: 404, provider.InvalidRequest: 400,
	provider.RateLimited: 429, provider.Conflict: 409, provider.Overloaded: 503, provider.Unavailable: 500, provider.TimedOut: 504,
}
