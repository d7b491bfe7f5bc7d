package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/resilience-toolkit/resilience/timeout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func again(t *testing.T, attempts int, wait time.Duration) *retry.Policy {
	t.Helper()
	p, err := retry.New(retry.Any(retry.OnType[*timeout.ExceededError](), retry.On(errRefused)),
		retry.Config{MaxAttempts: attempts, Backoff: retry.Constant(wait)})
	require.NoError(t, err)
	return p
}

func TestAttemptThatWasTooSlowIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		runs := 0
		start := time.Now()
		err := resilience.Join(again(t, 3, 0), limit(t, time.Second)).Do(ctx, func(ctx context.Context) error {
			if runs++; runs < 3 {
				return hang(ctx)
			}
			return nil
		})
		assert.NoError(t, err)
		assert.Equal(t, 3, runs)
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestCallersDeadlineEndsTheRepeating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		runs := 0
		start := time.Now()
		err := resilience.Join(again(t, 3, 0), limit(t, time.Second)).Do(ctx, func(ctx context.Context) error {
			runs++
			return hang(ctx)
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 2, runs)
		assert.Equal(t, 1500*time.Millisecond, time.Since(start))
	})
}

func TestLimitOfTheWholeBoundsAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		start := time.Now()
		err := resilience.Join(limit(t, 45*time.Second), again(t, 3, 0), limit(t, 30*time.Second)).
			Do(t.Context(), func(ctx context.Context) error {
				runs++
				return hang(ctx)
			})
		exceeded, ok := errors.AsType[*timeout.ExceededError](err)
		require.True(t, ok, "got %v", err)
		assert.Equal(t, 45*time.Second, exceeded.Limit)
		assert.Equal(t, 2, runs)
		assert.Equal(t, 45*time.Second, time.Since(start))
	})
}

func TestWaitThatTheLimitCannotCoverIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		start := time.Now()
		err := resilience.Join(limit(t, 10*time.Second), again(t, 6, 20*time.Second)).
			Do(t.Context(), func(context.Context) error {
				runs++
				return errRefused
			})
		assert.ErrorIs(t, err, errRefused)
		assert.Equal(t, 1, runs)
		assert.Zero(t, time.Since(start))
	})
}

// A host that hangs has to open the circuit, wherever the limit is, and a caller who
// goes away must not.
func TestCircuitTellsALimitFromACallerWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := func(ctx context.Context, around func(*breaker.Breaker) resilience.Policy) breaker.State {
			circuit, err := breaker.New(breaker.Config{FailureThreshold: 1})
			require.NoError(t, err)
			defer func() { _ = circuit.Close() }()
			_ = around(circuit).Do(ctx, hang)
			s, err := circuit.State(t.Context())
			require.NoError(t, err)
			return s
		}
		inside := func(b *breaker.Breaker) resilience.Policy { return resilience.Join(b, limit(t, time.Second)) }
		outside := func(b *breaker.Breaker) resilience.Policy { return resilience.Join(limit(t, time.Second), b) }
		leaves := func() context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			return ctx
		}
		assert.Equal(t, breaker.Open, state(t.Context(), inside))
		assert.Equal(t, breaker.Open, state(t.Context(), outside))
		assert.Equal(t, breaker.Closed, state(leaves(), inside))
		assert.Equal(t, breaker.Closed, state(leaves(), outside))
	})
}
