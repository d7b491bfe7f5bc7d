package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// What the policies owe each other. Each package tests itself; here they are together.

var errDown = errors.New("the host is down")

func newCircuit(t *testing.T, cfg breaker.Config) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func newLimiter(t *testing.T, limit int, window time.Duration, cfg ratelimit.Config) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(limit, window, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func newRetry(t *testing.T, attempts int, delay time.Duration) *retry.Policy {
	t.Helper()
	p, err := retry.New(func(error) bool { return true }, retry.Config{MaxAttempts: attempts, Backoff: retry.Constant(delay)})
	require.NoError(t, err)
	return p
}

func TestARetryOutsideACircuitEndsWithItsRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		circuit := newCircuit(t, breaker.Config{FailureThreshold: 3, RecoveryTimeout: 30 * time.Second})
		start := time.Now()
		var ran []time.Duration
		call := resilience.Wrap(func(context.Context) (int, error) {
			ran = append(ran, time.Since(start))
			return 0, errDown
		}, newRetry(t, 5, time.Second), circuit)

		_, err := call(t.Context())
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, ran)
		assert.Equal(t, 3*time.Second, time.Since(start), "the refused fourth attempt ends the call")
		assert.ErrorIs(t, err, errDown, "what the host said is not lost")
		open, ok := errors.AsType[*breaker.OpenError](err)
		require.True(t, ok, "nor why there was no other attempt")
		assert.Equal(t, 29*time.Second, open.RetryAfter())

		_, err = call(t.Context())
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.Len(t, ran, 3)
		assert.ErrorIs(t, err, resilience.ErrRejected, "no call was made at all")
	})
}

func TestARetryMayWaitForTheCircuitIfAskedTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		circuit := newCircuit(t, breaker.Config{FailureThreshold: 1, RecoveryTimeout: 30 * time.Second})
		again, err := retry.New(retry.On(errDown, resilience.ErrRejected), retry.Config{
			Backoff: retry.Constant(time.Second), RetryRejected: true,
		})
		require.NoError(t, err)
		start, calls := time.Now(), 0
		v, err := resilience.Wrap(func(context.Context) (int, error) {
			if calls++; calls == 1 {
				return 0, errDown
			}
			return 42, nil
		}, again, circuit)(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 42, v)
		assert.Equal(t, 30*time.Second, time.Since(start), "as long as the refusal said, no longer")
	})
}

// A host that is down behind a retry and a limiter must not go unnoticed because each
// second attempt is refused.
func TestACircuitOpensAlthoughALimiterRefusesTheRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		circuit := newCircuit(t, breaker.Config{FailureThreshold: 3, RecoveryTimeout: time.Hour})
		limiter := newLimiter(t, 1, time.Minute, ratelimit.Config{})
		call := resilience.Wrap(func(context.Context) (int, error) { return 0, errDown },
			circuit, newRetry(t, 3, time.Second), limiter.For("host"))
		for range 3 {
			_, err := call(t.Context())
			assert.ErrorIs(t, err, errDown)
			assert.NotErrorIs(t, err, resilience.ErrRejected, "a call was made")
			_, limited := errors.AsType[*ratelimit.ExceededError](err)
			assert.True(t, limited)
			time.Sleep(time.Minute)
		}
		state, err := circuit.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, breaker.Open, state)
	})
}

func TestALimitersRefusalIsNoFailureOfTheHost(t *testing.T) {
	t.Parallel()
	circuit := newCircuit(t, breaker.Config{FailureThreshold: 1})
	limiter := newLimiter(t, 1, time.Hour, ratelimit.Config{})
	runs := 0
	call := resilience.Wrap(func(context.Context) (int, error) { runs++; return 0, nil }, circuit, limiter.For("host"))
	for range 10 {
		_, _ = call(t.Context())
	}
	assert.Equal(t, 1, runs)
	state, err := circuit.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, breaker.Closed, state)
}

func TestACircuitOutsideALimiterSpendsNoSlotOnADeadHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		circuit := newCircuit(t, breaker.Config{FailureThreshold: 1, RecoveryTimeout: time.Minute})
		limiter := newLimiter(t, 1, 10*time.Second, ratelimit.Config{MaxWait: time.Hour})
		require.NoError(t, circuit.ForceOpen(t.Context(), time.Minute))
		call := resilience.Wrap(func(context.Context) (int, error) { return 0, nil }, circuit, limiter.For("host"))
		start := time.Now()
		for range 5 {
			_, err := call(t.Context())
			_, open := errors.AsType[*breaker.OpenError](err)
			assert.True(t, open, "%v", err)
		}
		assert.Zero(t, time.Since(start))
		left, err := limiter.Remaining(t.Context(), "host")
		require.NoError(t, err)
		assert.Equal(t, 1, left)
	})
}

// counting counts all that is asked of a cache.
type counting struct {
	*memory.Cache
	asked atomic.Int64
}

func (c *counting) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	c.asked.Add(1)
	return c.Cache.GetMany(ctx, keys, entries)
}

func (c *counting) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	c.asked.Add(1)
	return c.Cache.CompareAndSwap(ctx, key, old, new, ttl)
}

func (c *counting) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	c.asked.Add(1)
	return c.Cache.Increment(ctx, key, ttl)
}

func (c *counting) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	c.asked.Add(1)
	return c.Cache.Acquire(ctx, key, r)
}

func TestAContextThatIsDoneIsItsOwnErrorInEveryOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Cache: memory.New()}
		circuit := newCircuit(t, breaker.Config{Cache: store, FailureThreshold: 1, RecoveryTimeout: time.Second})
		limiter := newLimiter(t, 1, 10*time.Second, ratelimit.Config{Cache: store, MaxWait: time.Hour})
		again := newRetry(t, 3, time.Second)
		gone := errors.New("the user closed the tab")

		require.ErrorIs(t, circuit.Do(t.Context(), func(context.Context) error { return errDown }), errDown)
		time.Sleep(time.Second) // half-open: a probe's place is free
		before := store.asked.Load()
		for _, order := range [][]resilience.Policy{
			{circuit, limiter.For("host"), again}, {limiter.For("host"), circuit, again}, {again, circuit, limiter.For("host")},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(gone)
			_, err := resilience.Wrap(func(context.Context) (int, error) {
				t.Error("the call was made")
				return 0, nil
			}, order...)(ctx)
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, gone)
			assert.NotErrorIs(t, err, resilience.ErrRejected)
		}
		assert.Equal(t, before, store.asked.Load(), "no slot, no probe, no write")
	})
}

func TestWhoeverClosesFirstTheOthersStateStays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, first := range []string{"breaker", "limiter"} {
		store := memory.New()
		build := func() (*breaker.Breaker, *ratelimit.Limiter) {
			return newCircuit(t, breaker.Config{Name: "host", Cache: store, FailureThreshold: 1}),
				newLimiter(t, 1, time.Hour, ratelimit.Config{Name: "host", Cache: store})
		}
		circuit, limiter := build()
		require.NoError(t, limiter.Acquire(ctx, "k"))
		require.ErrorIs(t, circuit.Do(ctx, func(context.Context) error { return errDown }), errDown)

		stillOpen := func(b *breaker.Breaker) {
			t.Helper()
			assert.ErrorIs(t, b.Do(ctx, func(context.Context) error { return nil }), resilience.ErrRejected)
		}
		stillFull := func(l *ratelimit.Limiter) {
			t.Helper()
			assert.ErrorIs(t, l.Acquire(ctx, "k"), resilience.ErrRejected)
		}
		if first == "breaker" {
			require.NoError(t, circuit.Close())
			stillFull(limiter)
			require.NoError(t, limiter.Close())
		} else {
			require.NoError(t, limiter.Close())
			stillOpen(circuit)
			require.NoError(t, circuit.Close())
		}
		circuit, limiter = build() // and what was stored is there for the next ones
		stillOpen(circuit)
		stillFull(limiter)
	}
}

func TestAHintGoesThroughTheWholeChain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		again, err := retry.New(retry.OnType[tooManyRequests](), retry.Config{
			MaxAttempts: 3, Backoff: retry.Exponential{Base: 100 * time.Millisecond, Max: 2 * time.Second},
		})
		require.NoError(t, err)
		circuit := newCircuit(t, breaker.Config{})
		limiter := newLimiter(t, 10, time.Second, ratelimit.Config{})
		for name, order := range map[string][]resilience.Policy{
			"outside": {again, circuit, limiter.For("host")},
			"inside":  {circuit, limiter.For("host"), again},
		} {
			start := time.Now()
			_, err = resilience.Wrap(func(context.Context) (int, error) {
				return 0, fmt.Errorf("ask: %w", fmt.Errorf("model: %w", tooManyRequests{wait: 30 * time.Second}))
			}, order...)(t.Context())
			assert.Equal(t, 60*time.Second, time.Since(start), name)
			hint, ok := resilience.RetryAfter(err)
			assert.True(t, ok)
			assert.Equal(t, 30*time.Second, hint)
		}
	})
}

func TestTheThreeTogetherAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget")
	}
	circuit := newCircuit(t, breaker.Config{})
	limiter := newLimiter(t, 1<<40, time.Microsecond, ratelimit.Config{})
	again := newRetry(t, 3, 0)
	call := resilience.Wrap(func(context.Context) (int, error) { return 1, nil }, circuit, limiter.For("host"), again)
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = call(ctx) }))
}

func BenchmarkTheThreeTogether(b *testing.B) {
	circuit, err := breaker.New(breaker.Config{})
	require.NoError(b, err)
	defer circuit.Close()
	limiter, err := ratelimit.New(1_000_000, time.Millisecond, ratelimit.Config{})
	require.NoError(b, err)
	defer limiter.Close()
	again, err := retry.New(func(error) bool { return true }, retry.Config{})
	require.NoError(b, err)
	call := resilience.Wrap(func(context.Context) (int, error) { return 1, nil }, circuit, limiter.For("host"), again)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = call(ctx)
	}
}
