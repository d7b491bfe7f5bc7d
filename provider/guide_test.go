package provider_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// What docs/model-calls.md says, in code.

type wiring struct {
	circuit   *breaker.Breaker
	allowance *ratelimit.Limiter
	again     *retry.Policy
}

func newWiring(t *testing.T) wiring {
	return wiring{
		circuit:   newBreaker(t, breaker.Config{Name: fake.Model}),
		allowance: newLimiter(t, 60, time.Minute, ratelimit.Config{Name: fake.Model, MaxWait: 20 * time.Second}),
		again:     newRetry(t, retry.Config{}),
	}
}

func (w wiring) harden(host provider.LLM) provider.LLM {
	return provider.With(host, w.circuit, w.allowance.For("tenant"), w.again)
}

func TestTheGuidesWiringIsVerifiedAsItSays(t *testing.T) {
	const prompt = "Take the invoice's data from the text."
	synctest.Test(t, func(t *testing.T) {
		w := newWiring(t)
		busy := provider.StatusError(503)
		busy.Hint = 5 * time.Second
		host := fake.Script(fake.Fail(busy), fake.JSON(`{"number":"A-17","total":12.5}`))
		llm := w.harden(host)

		start := time.Now()
		_, err := provider.Extract[Invoice](t.Context(), llm, provider.Request{Text: "A-17", System: prompt})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 5*time.Second)
		assert.Len(t, host.Requests(), 2)
		assert.Equal(t, prompt, host.Requests()[0].System)
		assert.Equal(t, host.Model(), llm.Model())

		left, err := w.allowance.Remaining(t.Context(), "tenant")
		require.NoError(t, err)
		assert.Equal(t, 59, left, "one slot for a call that was retried")

		_, err = provider.Extract[Invoice](t.Context(), w.harden(fake.Script(fake.Text(""))), ask("A-17"))
		require.ErrorIs(t, err, provider.ErrCompletion)
		assert.NotErrorIs(t, err, fake.ErrNoAnswer, "one completion error was all that the script had")

		for range 20 {
			require.Error(t, extract(t.Context(), w.harden(always(fake.Fail(provider.StatusError(400)))), "A-17"))
		}
		assert.Equal(t, breaker.Closed, state(t, w.circuit))
		again := newRetry(t, retry.Config{MaxAttempts: 1})
		for range 5 {
			require.Error(t, extract(t.Context(), provider.With(always(fake.Fail(busy)), w.circuit, again), "A-17"))
		}
		assert.Equal(t, breaker.Open, state(t, w.circuit))
	})
}

func TestTheGuidesOwnSchemaIsAsItSays(t *testing.T) {
	type invoice struct {
		Number string `json:"number"`
		Note   string `json:"note,omitempty"`
	}
	derived, err := provider.SchemaOf[invoice]()
	require.NoError(t, err)
	s := derived.JSONSchema()
	s.Properties["note"].Enum = []any{"paid", "open", nil}
	schema, err := provider.NewSchema("invoice", s)
	require.NoError(t, err)
	for _, note := range []string{`"paid"`, `"open"`, `null`} {
		assert.NoError(t, schema.Validate(json.RawMessage(`{"number":"A","note":`+note+`}`)))
	}
	assert.NoError(t, schema.Validate(json.RawMessage(`{"number":"A"}`)))
	assert.Error(t, schema.Validate(json.RawMessage(`{"number":"A","note":"late"}`)))
}

func TestTwoLimitersCountForTheTenantAndForTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWiring(t)
		perHost := newLimiter(t, 100, time.Minute, ratelimit.Config{Name: "host"})
		host := fake.Script(fake.Fail(provider.StatusError(503)), fake.JSON(`{"number":"A-17","total":12.5}`))
		llm := provider.With(host, w.circuit, w.allowance.For("tenant"), w.again, perHost.For("host"))
		_, err := provider.Extract[Invoice](t.Context(), llm, ask("A-17"))
		require.NoError(t, err)
		left, err := w.allowance.Remaining(t.Context(), "tenant")
		require.NoError(t, err)
		assert.Equal(t, 59, left)
		left, err = perHost.Remaining(t.Context(), "host")
		require.NoError(t, err)
		assert.Equal(t, 98, left)
	})
}
