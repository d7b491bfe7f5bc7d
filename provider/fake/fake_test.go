package fake_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
)

type person struct {
	Name string `json:"name"`
}

func extract(ctx context.Context, llm provider.LLM, text string) (person, error) {
	return provider.Extract[person](ctx, llm, provider.Request{Text: text})
}

func TestAScriptIsPlayedOnceAndNeverRepeated(t *testing.T) {
	llm := fake.Script(fake.JSON(person{"Ada"}), fake.JSON(`{"name":"Grace"}`))
	for _, want := range []string{"Ada", "Grace"} {
		got, err := extract(t.Context(), llm, "who?")
		require.NoError(t, err)
		assert.Equal(t, want, got.Name)
	}
	for range 2 {
		got, err := extract(t.Context(), llm, "who?")
		require.ErrorIs(t, err, fake.ErrNoAnswer)
		assert.NotErrorIs(t, err, provider.ErrCompletion)
		assert.False(t, provider.Retryable(err))
		assert.Zero(t, got)
	}
	assert.Len(t, llm.Requests(), 4)
}

func TestRulesAnswerByTheTextAndIgnoreThePrompt(t *testing.T) {
	llm := fake.Match(
		fake.Rule{Contains: "countess", Answer: fake.JSON(person{"Ada"})},
		fake.Rule{Contains: "admiral", Answer: fake.JSON(person{"Grace"})},
	)
	for range 3 {
		got, err := provider.Extract[person](t.Context(), llm, provider.Request{Text: "the admiral", System: "countess"})
		require.NoError(t, err)
		assert.Equal(t, "Grace", got.Name)
	}
	_, err := extract(t.Context(), llm, "the baker")
	require.ErrorIs(t, err, fake.ErrNoAnswer)
	assert.ErrorContains(t, err, "the baker")
}

func TestABadPayloadFailsAsARealOneWould(t *testing.T) {
	for want, answer := range map[error]fake.Answer{
		&provider.MalformedCompletionError{}: fake.JSON(`{"nom":"Ada"}`),
		&provider.EmptyCompletionError{}:     {},
		&provider.TruncatedCompletionError{}: {Completion: provider.Completion{Text: `{"name":"A`, Finish: provider.FinishLength}},
		&provider.RefusedCompletionError{}:   {Completion: provider.Completion{Refusal: "no"}},
	} {
		_, err := extract(t.Context(), fake.Script(answer), "who?")
		assert.IsType(t, want, err)
	}
	down := provider.StatusError(503)
	_, err := extract(t.Context(), fake.Script(fake.Fail(down)), "who?")
	assert.Same(t, down, err)
}

func TestADelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := fake.JSON(person{"Ada"})
		slow.Delay = time.Minute
		llm := fake.Match(fake.Rule{Answer: slow})
		start := time.Now()
		_, err := extract(t.Context(), llm, "who?")
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(start))

		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		start = time.Now()
		_, err = extract(ctx, llm, "who?")
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.Equal(t, time.Second, time.Since(start))

		_, err = extract(ctx, llm, "who?")
		assert.ErrorIs(t, err, cause)
		assert.Len(t, llm.Requests(), 2, "a context that was done on arrival makes no call")
	})
}

func TestAScriptIsSharedSafely(t *testing.T) {
	var answers []fake.Answer
	for i := range 100 {
		answers = append(answers, fake.JSON(person{fmt.Sprint(i)}))
	}
	llm := fake.Script(answers...)
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen, failed := map[string]int{}, 0
	for range 120 {
		wg.Go(func() {
			got, err := extract(t.Context(), llm, "who?")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
				return
			}
			seen[got.Name]++
		})
	}
	wg.Wait()
	assert.Len(t, seen, 100, "each answer once")
	assert.Equal(t, 20, failed)
}

func TestJSONRefusesWhatHasNone(t *testing.T) {
	assert.Panics(t, func() { fake.JSON(func() {}) })
}
