package breaker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func record(log *[]string) func(context.Context, breaker.Transition) {
	return func(_ context.Context, tr breaker.Transition) {
		*log = append(*log, fmt.Sprintf("%s: %v -> %v", tr.Name, tr.From, tr.To))
	}
}

func TestTransitionsAreToldOnceAndInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		var log []string
		b := newBreaker(t, breaker.Config{Name: "x", Cache: kv, OnStateChange: record(&log)})
		for range 2 {
			trip(t, b)
			time.Sleep(30 * time.Second)
			_ = b.Do(t.Context(), fail)
			time.Sleep(30 * time.Second)
			_ = b.Do(t.Context(), succeed)
			_ = b.Do(t.Context(), succeed)
		}
		require.NoError(t, b.ForceOpen(t.Context(), time.Minute))
		require.NoError(t, b.Reset(t.Context()))
		once := []string{
			"x: closed -> open", "x: open -> half-open",
			"x: half-open -> open", "x: open -> half-open", "x: half-open -> closed",
		}
		assert.Equal(t, append(append(once, once...), "x: closed -> open", "x: open -> closed"), log)
	})
}

func TestWhatOthersDidIsToldOnceItIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		kv := memory.New()
		a := newBreaker(t, breaker.Config{Name: "x", Cache: kv})
		b := newBreaker(t, breaker.Config{Name: "x", Cache: kv, OnStateChange: record(&log)})
		trip(t, a)
		requireState(t, breaker.Open, b)
		assert.Empty(t, log, "looking tells nothing")
		requireRefused(t, b)
		requireRefused(t, b)
		assert.Equal(t, []string{"x: closed -> open"}, log)
		time.Sleep(30 * time.Second)
		require.NoError(t, a.Do(t.Context(), succeed))
		require.NoError(t, b.Do(t.Context(), succeed))
		assert.Equal(t, []string{"x: closed -> open", "x: open -> closed"}, log)
	})
}

func TestAnObserverMayCallTheBreaker(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		var log []string
		var b *breaker.Breaker
		b = newBreaker(t, breaker.Config{Name: "x", Cache: kv, OnStateChange: func(ctx context.Context, tr breaker.Transition) {
			record(&log)(ctx, tr)
			_, _ = b.State(ctx)
			_ = b.Do(ctx, succeed)
			if tr.To == breaker.Open && len(log) == 1 {
				assert.NoError(t, b.Reset(ctx))
			}
			log = append(log, "told")
		}})
		for range 5 {
			_ = b.Do(t.Context(), fail)
		}
		requireState(t, breaker.Closed, b)
		assert.Equal(t, []string{"x: closed -> open", "told", "x: open -> closed", "told"}, log)
	})
}

func TestTheObserverOfTheStoreMayCallTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		calls := 0
		var b *breaker.Breaker
		b = newBreaker(t, breaker.Config{Cache: kv, OnStoreError: func(ctx context.Context, _ error) {
			if calls++; calls == 1 {
				assert.NoError(t, b.Do(ctx, succeed))
			}
		}})
		kv.failing(errUnavailable)
		require.NoError(t, b.Do(t.Context(), succeed))
		assert.Equal(t, 2, calls)
	})
}

func TestTheObserverOfWhatCannotBeReadMayCallTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &wrongKind{memory.New(), map[string]bool{}}
		start, inside := time.Now(), false
		var b *breaker.Breaker
		b = newBreaker(t, breaker.Config{Name: "x", Cache: plain{kv}, OnStoreError: func(ctx context.Context, _ error) {
			if !inside {
				inside = true
				_ = b.Reset(ctx)
				_ = b.Do(ctx, fail)
				_ = b.Do(ctx, succeed)
				inside = false
			}
		}})
		_ = b.Do(t.Context(), fail)
		kv.bad[key("x", "state")] = true
		require.NoError(t, b.Do(t.Context(), succeed))
		assert.Zero(t, time.Since(start), "somebody waited")
	})
}

type ctxKey struct{}

func TestObserversGetTheCallsContext(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		told := 0
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 1, OnStateChange: func(ctx context.Context, _ breaker.Transition) {
			told++
			assert.Equal(t, "value", ctx.Value(ctxKey{}))
		}})
		ctx := context.WithValue(t.Context(), ctxKey{}, "value")
		_ = b.Do(ctx, fail)
		time.Sleep(30 * time.Second)
		_ = b.Do(ctx, succeed)
		assert.Equal(t, 3, told)
	})
}

func TestAnObserverThatPanicsLeavesTheCircuitInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		var log []string
		panics := true
		b := newBreaker(t, breaker.Config{Name: "x", Cache: kv, FailureThreshold: 1, OnStateChange: func(ctx context.Context, tr breaker.Transition) {
			record(&log)(ctx, tr)
			if panics {
				panic("boom")
			}
		}})
		assert.Panics(t, func() { _ = b.Do(t.Context(), fail) })
		panics = false
		requireRefused(t, b)
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed))
		assert.Equal(t, []string{"x: closed -> open", "x: open -> half-open", "x: half-open -> closed"}, log)
	})
}

// An observer that keeps the last state it heard of must end with the right one.
func TestTransitionsOfManyGoroutinesAreToldOneAfterTheOther(t *testing.T) {
	var mu sync.Mutex
	last, wrong, inside := breaker.Closed, 0, 0
	b := newBreaker(t, breaker.Config{
		FailureThreshold: 1, RecoveryTimeout: time.Microsecond,
		OnStateChange: func(_ context.Context, tr breaker.Transition) {
			mu.Lock()
			if inside++; inside > 1 || tr.From != last || tr.To == last {
				wrong++
			}
			last = tr.To
			mu.Unlock()
			mu.Lock()
			inside--
			mu.Unlock()
		},
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 200 {
				if n%3 == 0 {
					_ = b.Do(context.Background(), succeed)
				} else {
					_ = b.Do(context.Background(), fail)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, b.Reset(context.Background()))
	assert.Zero(t, wrong)
	assert.Equal(t, breaker.Closed, last)
}
