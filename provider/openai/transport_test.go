package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// A counter counts the bodies that pass through it, how often they are closed, and how
// much is read of them.
type counter struct {
	next                         http.RoundTripper
	opened, closed, twice, bytes atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err == nil {
		c.opened.Add(1)
		res.Body = &countedBody{ReadCloser: res.Body, c: c}
	}
	return res, err
}

type countedBody struct {
	io.ReadCloser
	c      *counter
	closes atomic.Int32
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.bytes.Add(int64(n))
	return n, err
}

func (b *countedBody) Close() error {
	if b.closes.Add(1) == 1 {
		b.c.closed.Add(1)
	} else {
		b.c.twice.Add(1)
	}
	return b.ReadCloser.Close()
}

func TestEveryBodyIsClosedOnceAndConnectionsAreKept(t *testing.T) {
	busy := failure("", "server_error", strings.Repeat("x", 4<<10))
	whole := message(ada, "stop")
	for name, test := range map[string]struct {
		answer      func(n int, w http.ResponseWriter, r *http.Request)
		bodies      int64
		connections int32
	}{
		"twice busy": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n%3 != 0 {
				send(503, busy)(n, w, r)
				return
			}
			send(200, whole)(n, w, r)
		}, 300, 2},
		"always busy": {send(503, busy), 300, 2},
		"halfway": {func(n int, w http.ResponseWriter, r *http.Request) {
			hijack(w, false, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"+whole[:50])
		}, 300, 300},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.answer)
			transport := http.DefaultTransport.(*http.Transport).Clone()
			defer transport.CloseIdleConnections()
			c := &counter{next: transport}
			again, err := retry.New(provider.Retryable, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
			require.NoError(t, err)
			llm := provider.With(h.model(t, openai.Config{HTTPClient: &http.Client{Transport: c}}), again)
			before := runtime.NumGoroutine()
			for range 100 {
				_, _ = provider.Extract[person](t.Context(), llm, ask("Ada"))
			}
			assert.Equal(t, test.bodies, c.opened.Load())
			assert.Equal(t, test.bodies, c.closed.Load())
			assert.Zero(t, c.twice.Load())
			assert.LessOrEqual(t, h.connections.Load(), test.connections)
			transport.CloseIdleConnections()
			assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+10 }, 5*time.Second, 10*time.Millisecond)
		})
	}
}

func TestNoMoreIsReadOfABodyThanIsNeeded(t *testing.T) {
	for status, most := range map[int]int64{500: 1 << 20, 200: 20 << 20} {
		h := start(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			chunk := make([]byte, 1<<20)
			for range 64 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		c := &counter{next: http.DefaultTransport}
		_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{HTTPClient: &http.Client{Transport: c}}), ask("Ada"))
		require.Error(t, err)
		assert.Less(t, c.bytes.Load(), most, status)
		assert.Equal(t, c.opened.Load(), c.closed.Load())
	}
}

func TestAHostThatHangsIsTimedOutAndACallerWhoLeavesIsNot(t *testing.T) {
	h := start(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{Timeout: 20 * time.Millisecond}), ask("Ada"))
	require.ErrorIs(t, err, provider.TimedOut)
	assert.True(t, provider.Retryable(err))
	assert.ErrorContains(t, err, "no answer within 20ms")

	_, err = provider.Extract[person](t.Context(), h.model(t, openai.Config{HTTPClient: &http.Client{Timeout: 20 * time.Millisecond}}), ask("Ada"))
	require.ErrorIs(t, err, provider.TimedOut)

	left := errors.New("left")
	c, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(left) })
	_, err = provider.Extract[person](c, h.model(t, openai.Config{}), ask("Ada"))
	assert.ErrorIs(t, err, left)
	assert.ErrorIs(t, err, context.Canceled)
	_, isHost := errors.AsType[*provider.HostError](err)
	assert.False(t, isHost)
}

func TestACertificateThatNobodyTrustsIsNoPassingFault(t *testing.T) {
	h := start(t, send(200, message(ada, "stop")))
	h.server.Close()
	h.server = newTLS(h)
	t.Cleanup(h.server.Close)
	_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
	require.ErrorIs(t, err, provider.Disconnected)
	assert.False(t, provider.Retryable(err))

	got, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{HTTPClient: h.server.Client()}), ask("Ada"))
	require.NoError(t, err)
	assert.Equal(t, "Ada", got.Name)
}

func TestARefusalOfTheClientsOwnPoliciesIsNotTheHostsFailure(t *testing.T) {
	allowance, err := ratelimit.New(1, time.Hour, ratelimit.Config{})
	require.NoError(t, err)
	defer allowance.Close()
	h := start(t, send(200, message(ada, "stop")))
	llm := h.model(t, openai.Config{HTTPClient: &http.Client{
		Transport: httptransport.New(nil, httptransport.Config{}, allowance.For("host")),
	}})
	_, err = provider.Extract[person](t.Context(), llm, ask("Ada"))
	require.NoError(t, err)
	_, err = provider.Extract[person](t.Context(), llm, ask("Ada"))
	require.ErrorIs(t, err, resilience.ErrRejected)
	_, isHost := errors.AsType[*provider.HostError](err)
	assert.False(t, isHost, "%v", err)
	wait, _ := resilience.RetryAfter(err)
	assert.Positive(t, wait, "and its hint is not lost")
	assert.Equal(t, breaker.Neutral, provider.Classify(t.Context(), err))
	assert.False(t, provider.Retryable(err))
	assert.Equal(t, 1, h.requests())
}

func TestTheCallersClientIsLeftAsItIs(t *testing.T) {
	client := &http.Client{}
	h := start(t, send(200, message(ada, "stop")))
	_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{HTTPClient: client}), ask("Ada"))
	require.NoError(t, err)
	assert.Nil(t, client.CheckRedirect)
}
