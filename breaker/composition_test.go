package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

func TestARetryOutsideStopsAtTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 3})
		always := func(error) bool { return true }
		again, err := retry.New(always, retry.Config{MaxAttempts: 5, Backoff: retry.Constant(time.Second)})
		require.NoError(t, err)
		start := time.Now()
		var at []time.Duration
		op := func(context.Context) error {
			at = append(at, time.Since(start))
			return errDown
		}

		err = resilience.Join(again, circuit).Do(t.Context(), op)
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, at)
		assert.Equal(t, 3*time.Second, time.Since(start))
		require.ErrorIs(t, err, errDown)
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)

		start, at = time.Now(), nil
		require.ErrorIs(t, resilience.Join(again, circuit).Do(t.Context(), op), resilience.ErrRejected)
		assert.Empty(t, at)
		assert.Zero(t, time.Since(start))

		patient, err := retry.New(always, retry.Config{Backoff: retry.Constant(time.Second), RetryRejected: true})
		require.NoError(t, err)
		require.NoError(t, resilience.Join(patient, circuit).Do(t.Context(), succeed))
		assert.Equal(t, 29*time.Second, time.Since(start), "what the circuit asked for, and no more")
	})
}

func TestARetryInsideIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 3})
		again, err := retry.New(retry.On(errDown), retry.Config{MaxAttempts: 4})
		require.NoError(t, err)
		calls := 0
		for range 3 {
			requireState(t, breaker.Closed, circuit)
			err := resilience.Join(circuit, again).Do(t.Context(), func(context.Context) error { calls++; return errDown })
			require.ErrorIs(t, err, errDown)
		}
		requireState(t, breaker.Open, circuit)
		assert.Equal(t, 12, calls)
	})
}

func TestARefusedCallTakesNoSlotOfALimiterInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{})
		allowance, err := ratelimit.New(1, 10*time.Second, ratelimit.Config{MaxWait: time.Minute})
		require.NoError(t, err)
		defer allowance.Close()
		require.NoError(t, circuit.ForceOpen(t.Context(), time.Minute))
		start := time.Now()
		for range 3 {
			err := resilience.Join(circuit, allowance.For("k")).Do(t.Context(), succeed)
			require.ErrorIs(t, err, resilience.ErrRejected)
		}
		assert.Zero(t, time.Since(start))
		left, err := allowance.Remaining(t.Context(), "k")
		require.NoError(t, err)
		assert.EqualValues(t, 1, left)
	})
}

func TestALimitersRefusalInsideIsNoVerdictAndKeepsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 1})
		allowance, err := ratelimit.New(1, time.Hour, ratelimit.Config{})
		require.NoError(t, err)
		defer allowance.Close()
		chain := resilience.Join(circuit, allowance.For("k"))
		require.ErrorIs(t, chain.Do(t.Context(), fail), errDown)
		time.Sleep(30 * time.Second)
		for range 10 {
			var exceeded *ratelimit.ExceededError
			require.ErrorAs(t, chain.Do(t.Context(), succeed), &exceeded)
			requireState(t, breaker.HalfOpen, circuit)
		}
	})
}

func TestACancelledContextIsReportedAsItselfInAnyOrder(t *testing.T) {
	mine := errors.New("the user closed the window")
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		circuit := newBreaker(t, breaker.Config{Cache: kv})
		allowance, err := ratelimit.New(1, 10*time.Second, ratelimit.Config{MaxWait: time.Minute})
		require.NoError(t, err)
		defer allowance.Close()
		require.NoError(t, circuit.ForceOpen(t.Context(), time.Minute))
		uses := kv.total()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(mine)
		for _, chain := range []resilience.Policy{
			resilience.Join(circuit, allowance.For("k")), resilience.Join(allowance.For("k"), circuit),
		} {
			err := chain.Do(ctx, succeed)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, mine)
			require.NotErrorIs(t, err, resilience.ErrRejected)
		}
		left, err := allowance.Remaining(t.Context(), "k")
		require.NoError(t, err)
		assert.EqualValues(t, 1, left)
		assert.Equal(t, uses, kv.total())
	})
}

func TestALimiterAndABreakerOfOneNameShareACache(t *testing.T) {
	for _, first := range []string{"the breaker", "the limiter"} {
		t.Run(first+" is closed first", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shared cache.Cache = memory.New()
				circuit := newBreaker(t, breaker.Config{Name: "host", Cache: shared})
				allowance, err := ratelimit.New(2, time.Minute, ratelimit.Config{Name: "host", Cache: shared})
				require.NoError(t, err)
				require.NoError(t, allowance.Acquire(t.Context(), "k"))
				trip(t, circuit)

				if first == "the breaker" {
					require.NoError(t, circuit.Close())
					left, err := allowance.Remaining(t.Context(), "k")
					require.NoError(t, err)
					assert.EqualValues(t, 1, left)
				} else {
					require.NoError(t, allowance.Reset(t.Context(), "k"))
					require.NoError(t, allowance.Close())
					requireRefused(t, circuit)
				}
				requireRefused(t, newBreaker(t, breaker.Config{Name: "host", Cache: shared}))
			})
		})
	}
}
