package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// A wire is a transport without a network, so that the whole way from a chain of
// policies to the bytes of a response runs in virtual time.
type wire struct {
	requests int
	answer   func(n int, r *http.Request) (*http.Response, error) // n counts from 1
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.requests++
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return w.answer(w.requests, r)
}

func reply(status int, body string, headers ...string) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
}

func breaks(err error) func(int, *http.Request) (*http.Response, error) {
	return func(int, *http.Request) (*http.Response, error) { return nil, err }
}

func hangs(_ int, r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func over(t *testing.T, w *wire) *openai.LLM {
	t.Helper()
	llm, err := openai.New("test-1", openai.Config{
		BaseURL: "http://host.invalid/v1", Provider: "wire", APIKey: apiKey,
		HTTPClient: &http.Client{Transport: w},
	})
	require.NoError(t, err)
	return llm
}

func retrying(t *testing.T, attempts int) *retry.Policy {
	t.Helper()
	p, err := retry.New(provider.Retryable, retry.Config{MaxAttempts: attempts, Backoff: retry.Exponential{Base: 100 * time.Millisecond, Max: 2 * time.Second}})
	require.NoError(t, err)
	return p
}

func circuit(t *testing.T, cfg breaker.Config) *breaker.Breaker {
	t.Helper()
	if cfg.Classify == nil {
		cfg.Classify = provider.Classify
	}
	b, err := breaker.New(cfg)
	require.NoError(t, err)
	return b
}

func extract(c context.Context, llm provider.LLM) error {
	_, err := provider.Extract[person](c, llm, ask("Ada, born 1815"))
	return err
}

func TestOnlyWhatMayFareBetterIsSentAgain(t *testing.T) {
	quota := failure("insufficient_quota", "insufficient_quota", "You exceeded your current quota.")
	for name, test := range map[string]struct {
		answer func(int, *http.Request) (*http.Response, error)
		want   int
	}{
		"429, exhausted quota by code":  {reply(429, quota), 1},
		"429, exhausted quota by type":  {reply(429, failure("", "insufficient_quota", "")), 1},
		"429, passing":                  {reply(429, failure("rate_limit_exceeded", "requests", ""), "Retry-After", "1"), 5},
		"429, no body":                  {reply(429, ""), 5},
		"400":                           {reply(400, ""), 1},
		"400, too long":                 {reply(400, failure("context_length_exceeded", "", "")), 1},
		"400, filtered":                 {reply(400, failure("content_filter", "", "")), 1},
		"401":                           {reply(401, ""), 1},
		"403":                           {reply(403, ""), 1},
		"404":                           {reply(404, ""), 1},
		"408":                           {reply(408, ""), 5},
		"409":                           {reply(409, ""), 5},
		"413":                           {reply(413, ""), 1},
		"422":                           {reply(422, ""), 1},
		"425":                           {reply(425, ""), 5},
		"500":                           {reply(500, ""), 5},
		"502":                           {reply(502, "<html>"), 5},
		"503":                           {reply(503, ""), 5},
		"504":                           {reply(504, ""), 5},
		"529":                           {reply(529, ""), 5},
		"reset":                         {breaks(errors.New("connection reset by peer")), 5},
		"EOF":                           {breaks(io.ErrUnexpectedEOF), 5},
		"200, no choice":                {reply(200, "{}"), 1},
		"200, nothing":                  {reply(200, ""), 1},
		"200, a page":                   {reply(200, "<html>"), 1},
		"200, empty":                    {reply(200, message("", "stop")), 1},
		"200, cut":                      {reply(200, message("", "length")), 1},
		"200, filtered":                 {reply(200, message("", "content_filter")), 1},
		"200, refused":                  {reply(200, message("", "stop", "refusal", "no")), 1},
		"200, another schema":           {reply(200, message("{}", "stop")), 1},
		"200, with an error of its own": {reply(200, failure("", "server_error", "")), 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{answer: test.answer}
				require.Error(t, extract(t.Context(), provider.With(over(t, w), retrying(t, 5))))
				assert.Equal(t, test.want, w.requests)
			})
		})
	}
}

func TestTheHostsHintIsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, headers := range map[string][]string{
			"seconds":      {"Retry-After", "30"},
			"milliseconds": {"Retry-After-Ms", "30000"},
			"a date":       {"Retry-After", time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat), "Date", time.Now().UTC().Format(http.TimeFormat)},
		} {
			w := &wire{answer: func(n int, r *http.Request) (*http.Response, error) {
				if n < 3 {
					return reply(429, "", headers...)(n, r)
				}
				return reply(200, message(ada, "stop"))(n, r)
			}}
			start := time.Now()
			require.NoError(t, extract(t.Context(), provider.With(over(t, w), retrying(t, 3))))
			assert.Equal(t, time.Minute, time.Since(start), name)
		}

		w := &wire{answer: reply(429, "", "Retry-After", "3600")}
		start := time.Now()
		err := extract(t.Context(), provider.With(over(t, w), retrying(t, 3)))
		require.ErrorIs(t, err, provider.RateLimited)
		hint, _ := resilience.RetryAfter(err)
		assert.Equal(t, time.Hour, hint, "too long to wait for, and there for who asks")
		assert.Zero(t, time.Since(start))
		assert.Equal(t, 1, w.requests)
	})
}

func TestRequestsOfTheCallersOwnMakingDoNotOpenTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := func(b *breaker.Breaker) breaker.State {
			s, err := b.State(t.Context())
			require.NoError(t, err)
			return s
		}
		b := circuit(t, breaker.Config{FailureThreshold: 5})
		w := &wire{}
		llm := provider.With(over(t, w), b)
		for _, answer := range []func(int, *http.Request) (*http.Response, error){
			reply(400, failure("context_length_exceeded", "", "")), reply(401, ""), reply(404, ""), reply(429, "", "Retry-After", "5"),
			reply(200, message("", "stop")), reply(200, message(`{"na`, "length")), reply(400, failure("content_filter", "", "")),
		} {
			w.answer = answer
			for range 20 {
				require.Error(t, extract(t.Context(), llm))
			}
			require.Equal(t, breaker.Closed, state(b))
		}
		assert.Equal(t, 140, w.requests)

		for name, answer := range map[string]func(int, *http.Request) (*http.Response, error){
			"503": reply(503, ""), "reset": breaks(errors.New("connection reset by peer")), "hang": hangs,
		} {
			// Failures count together for one recovery timeout, and a hang takes ten minutes.
			b := circuit(t, breaker.Config{FailureThreshold: 5, RecoveryTimeout: time.Hour})
			w := &wire{answer: answer}
			for range 6 {
				require.Error(t, extract(t.Context(), provider.With(over(t, w), b)))
			}
			assert.Equal(t, breaker.Open, state(b), name)
			assert.Equal(t, 5, w.requests, name)
		}
	})
}

func TestADocumentGoesThroughABadDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		b := circuit(t, breaker.Config{Cache: shared, FailureThreshold: 2, RecoveryTimeout: 20 * time.Second})
		allowance, err := ratelimit.New(10, time.Minute, ratelimit.Config{Cache: shared})
		require.NoError(t, err)
		w := &wire{answer: reply(503, "", "Retry-After", "2")}
		llm := provider.With(over(t, w), b, allowance.For("tenant"), retrying(t, 3))

		start := time.Now()
		for range 2 {
			require.ErrorIs(t, extract(t.Context(), llm), provider.Overloaded)
		}
		assert.Equal(t, 8*time.Second, time.Since(start))
		assert.Equal(t, 6, w.requests)

		open, ok := errors.AsType[*breaker.OpenError](extract(t.Context(), llm))
		require.True(t, ok)
		assert.Equal(t, 20*time.Second, open.RetryAfter())
		time.Sleep(open.RetryAfter())

		w.answer = reply(200, message("", "stop"))
		require.ErrorIs(t, extract(t.Context(), llm), provider.ErrCompletion, "the host is back, whatever its model says")
		w.answer = reply(200, message(ada, "stop"))
		require.NoError(t, extract(t.Context(), llm))

		left, err := allowance.Remaining(t.Context(), "tenant")
		require.NoError(t, err)
		assert.Equal(t, 6, left, strconv.Itoa(w.requests)+" requests in four slots; the refused call took none")
	})
}

func TestTheTimeoutRunsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: hangs}
		start := time.Now()
		require.ErrorIs(t, extract(t.Context(), over(t, w)), provider.TimedOut)
		assert.Equal(t, 10*time.Minute, time.Since(start))

		c, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		err := extract(c, provider.With(over(t, w), retrying(t, 3)))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, isHost := errors.AsType[*provider.HostError](err)
		assert.False(t, isHost, "the caller's deadline is the caller's")
		assert.Equal(t, time.Minute, time.Since(start))
	})
}
