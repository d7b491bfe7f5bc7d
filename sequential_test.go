package resilience_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/resilience-toolkit/resilience/timeout"
)

// orderly gives its word, and keeps it.
type orderly struct {
	resilience.Sequential[orderly]
}

func (orderly) Do(ctx context.Context, op func(context.Context) error) error { return op(ctx) }

// hasty has the word of what it embeds, and does not keep it.
type hasty struct {
	*breaker.Breaker
	started chan struct{}
}

func (h hasty) Do(ctx context.Context, op func(context.Context) error) error {
	go func() { _ = op(ctx) }()
	<-h.started
	return nil
}

func TestOurPoliciesVouchForBeingSequential(t *testing.T) {
	t.Parallel()
	again, err := retry.New(retry.On(errDown), retry.Config{})
	require.NoError(t, err)
	limit, err := timeout.New(time.Second)
	require.NoError(t, err)
	limiter := newLimiter(t, 1, time.Second, ratelimit.Config{})
	for _, p := range []resilience.Policy{again, limit, limiter.For("k"), newCircuit(t, breaker.Config{}), orderly{}} {
		assert.False(t, resilience.Watched(p), "%T", p)
	}
	assert.False(t, resilience.Watched(resilience.Join(again), orderly{}))
	assert.True(t, resilience.Watched(again, pass, limit), "one that does not give its word")
}

func TestTheWordOfAnEmbeddedPolicyIsNotThatOfItsOwner(t *testing.T) {
	t.Parallel()
	h := hasty{newCircuit(t, breaker.Config{}), make(chan struct{})}
	require.True(t, resilience.Watched(h))
	ended := make(chan struct{})
	_, err := resilience.Wrap(func(context.Context) (int, error) {
		h.started <- struct{}{}
		<-ended
		return 1, nil
	}, h)(context.Background())
	close(ended)
	assert.ErrorContains(t, err, "still running")
}

// What is not watched is put back into the pool all the same, whatever became of the
// call, and with nothing in it.
func TestAChainThatIsNotWatchedIsClean(t *testing.T) {
	t.Parallel()
	again, err := retry.New(retry.On(errDown), retry.Config{MaxAttempts: 2, Backoff: retry.Constant(0)})
	require.NoError(t, err)
	guard := resilience.With[int](orderly{}, again)
	boom := errors.New("boom")
	runs := 0
	for _, c := range []struct {
		call  resilience.Call[int]
		value int
		err   error
	}{
		{func(context.Context) (int, error) { return 1, nil }, 1, nil},
		{func(context.Context) (int, error) { return 2, boom }, 0, boom},
		{func(context.Context) (int, error) {
			if runs++; runs == 1 {
				return 3, errDown
			}
			return 4, nil
		}, 4, nil},
		{func(context.Context) (int, error) { return 5, errDown }, 0, errDown},
	} {
		value, err := guard(c.call)(context.Background())
		assert.Equal(t, c.value, value)
		assert.ErrorIs(t, err, c.err)
	}
	assert.PanicsWithValue(t, "boom", func() {
		_, _ = guard(func(context.Context) (int, error) { panic("boom") })(context.Background())
	})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	value, err := guard(func(context.Context) (int, error) { return 6, nil })(cancelled)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, value)
}
