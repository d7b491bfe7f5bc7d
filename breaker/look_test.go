package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// roundTrip has each use of the cache take so long, if its context allows.
func (c *tap) roundTrip(d time.Duration) {
	c.set(func(ctx context.Context, _, _ string) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, nil)
}

func wellBehaved(t *testing.T, kv cache.KeyValue) *breaker.Breaker {
	return newBreaker(t, breaker.Config{Cache: kv, OnStoreError: func(_ context.Context, err error) { t.Error(err) }})
}

func beginMany(ctx context.Context, b *breaker.Breaker, n int) []*gated {
	calls := make([]*gated, n)
	for i := range calls {
		calls[i] = begin(ctx, b)
	}
	return calls
}

func TestLooksThatFallTogetherShareARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		kv.roundTrip(time.Millisecond)
		for _, c := range beginMany(t.Context(), b, 100) {
			require.NoError(t, c.finish(nil))
		}
		assert.Equal(t, 1, kv.total())
	})
}

func TestALookIsTakenInTheGoroutineAndTheContextOfItsCaller(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		kv.set(func(ctx context.Context, _, _ string) error {
			stack := make([]byte, 1<<16)
			assert.Contains(t, string(stack[:runtime.Stack(stack, false)]), t.Name())
			assert.Equal(t, "the caller's", ctx.Value(key{}))
			return nil
		}, nil)
		require.NoError(t, b.Do(context.WithValue(t.Context(), key{}, "the caller's"), succeed))
	})
}

// Who takes the look for the others and leaves, by whatever door, has the others take
// another, and that one together.
func TestWhoLeavesALookTakesNobodyAlong(t *testing.T) {
	mine := errors.New("the user closed the window")
	for name, leave := range map[string]func(ctx context.Context) error{
		"by a context": func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"by a panic":   func(ctx context.Context) error { <-ctx.Done(); panic(mine) },
		"by an exit":   func(ctx context.Context) error { <-ctx.Done(); runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b := wellBehaved(t, kv)
				kv.set(func(ctx context.Context, _, _ string) error {
					if kv.total() == 1 {
						return leave(ctx)
					}
					time.Sleep(time.Millisecond)
					return nil
				}, nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				var err error
				left := make(chan any, 1)
				go func() {
					defer func() { left <- recover() }()
					err = b.Do(ctx, succeed)
				}()
				synctest.Wait()
				others := beginMany(t.Context(), b, 100)
				synctest.Wait()
				cancel(mine)
				panicked := <-left
				switch name {
				case "by a context":
					require.ErrorIs(t, err, mine)
					require.ErrorIs(t, err, context.Canceled)
				case "by a panic":
					require.Equal(t, mine, panicked, "it is the caller's own")
				}
				for _, c := range others {
					require.NoError(t, c.finish(nil))
				}
				assert.Equal(t, 2, kv.total())
			})
		})
	}
}

// Those who wait for another's look return when they have to, and he looks on.
func TestWhoWaitsForALookLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		kv.roundTrip(100 * time.Millisecond)
		first := begin(t.Context(), b)
		synctest.Wait()
		mine := errors.New("the user closed the window")
		ctx, cancel := context.WithCancelCause(t.Context())
		impatient := begin(ctx, b)
		synctest.Wait()
		start := time.Now()
		cancel(mine)
		err := <-impatient.done
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, err, mine)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, impatient.ran.Load())
		require.NoError(t, first.finish(nil))
		assert.Equal(t, 1, kv.total())
	})
}

func TestWhoComesAfterAllHaveLeftLooksAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		kv.roundTrip(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		calls := beginMany(ctx, b, 2)
		synctest.Wait()
		cancel()
		for _, c := range calls {
			require.ErrorIs(t, <-c.done, context.Canceled)
		}
		kv.set(nil, nil)
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

// A look that fails is nobody's alone: each of those who wait for it is let through,
// each hears of it, and nothing of it is kept.
func TestALookThatFailsFailsForAllWhoWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		var told atomic.Int64
		b := newBreaker(t, breaker.Config{Cache: kv, OnStoreError: func(_ context.Context, err error) {
			assert.ErrorIs(t, err, errUnavailable)
			told.Add(1)
		}})
		fails := make(chan struct{})
		kv.set(func(_ context.Context, op, _ string) error {
			<-fails
			return errUnavailable
		}, nil)
		calls := beginMany(t.Context(), b, 10)
		synctest.Wait()
		assert.Equal(t, 1, kv.total())
		close(fails)
		synctest.Wait()
		for _, c := range calls {
			assert.True(t, c.ran.Load())
		}
		assert.EqualValues(t, 10, told.Load())
		kv.failing(nil)
		for _, c := range calls {
			require.NoError(t, c.finish(nil))
		}
		trip(t, newBreaker(t, breaker.Config{Cache: kv}))
		requireRefused(t, b)
	})
}

// That nothing was answered in the time that a use of the cache may take is the store's
// fault too, and no caller's.
func TestALookThatHangsFailsForAllWhoWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv})
		kv.roundTrip(time.Hour)
		first := begin(t.Context(), b)
		time.Sleep(500 * time.Millisecond)
		others := beginMany(t.Context(), b, 10)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, kv.total())
		kv.set(nil, nil)
		for _, c := range append(others, first) {
			require.True(t, c.ran.Load())
			require.NoError(t, c.finish(nil))
		}
	})
}

// Callers who have less time than a round trip takes never see a look through. Others
// follow a few of them, and then look for themselves.
func TestNobodyWaitsForMoreThanAFewWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip, hurry = 50 * time.Millisecond, 10 * time.Millisecond
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		kv.roundTrip(roundTrip)
		var hurried sync.WaitGroup
		over := make(chan struct{})
		hurried.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				hurried.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), hurry)
					defer cancel()
					_ = b.Do(ctx, succeed) // some are there when a patient one's look is over
				})
			}
		})
		for range 20 {
			time.Sleep(100*time.Millisecond - time.Microsecond)
			start := time.Now()
			p, err := b.Allow(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(start), 3*hurry+roundTrip)
			p.Settle(t.Context(), breaker.Neutral)
		}
		close(over)
		hurried.Wait()
	})
}

// Nor does anybody wait for longer than a use of the cache may take, whoever leaves.
func TestNobodyWaitsForALookForMoreThanASecond(t *testing.T) {
	for name, limited := range map[string]bool{"the cache has no time limit": false, "the cache has one": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				type patient struct{}
				told := 0
				kv := newTap(memory.New())
				cfg := breaker.Config{Cache: kv, OnStoreError: func(ctx context.Context, _ error) {
					if ctx.Value(patient{}) != nil {
						told++
					}
				}}
				limit, others := time.Hour, 600*time.Millisecond
				if limited {
					limit, others = 250*time.Millisecond, 249*time.Millisecond
					cfg.Cache = timed{kv, limit}
				}
				b := newBreaker(t, cfg)
				kv.set(func(ctx context.Context, _, _ string) error { // hang
					select {
					case <-time.After(limit):
						return errUnavailable
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}, nil)
				over := make(chan struct{})
				var hurried sync.WaitGroup
				hurried.Go(func() {
					for {
						hurried.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), others)
							defer cancel()
							_ = b.Do(ctx, succeed)
						})
						select {
						case <-over:
							return
						case <-time.After(10 * time.Millisecond):
						}
					}
				})
				for i := range 20 {
					time.Sleep(50*time.Millisecond + time.Microsecond)
					start := time.Now()
					require.NoError(t, b.Do(context.WithValue(t.Context(), patient{}, true), succeed))
					require.LessOrEqual(t, time.Since(start), time.Second)
					require.Equal(t, i+1, told)
				}
				close(over)
				hurried.Wait()
			})
		})
	}
}

// A cache that keeps to a time limit of its own needs none of ours: no deadline, no timer.
func TestALookHasATimeLimitOfItsOwnOnlyIfTheCacheHasNone(t *testing.T) {
	for _, test := range []struct {
		kv      func(*tap) cache.KeyValue
		limited bool
	}{
		{func(c *tap) cache.KeyValue { return c }, true},
		{func(c *tap) cache.KeyValue { return timed{c, 0} }, false},
		{func(c *tap) cache.KeyValue { return timed{c, 250 * time.Millisecond} }, false},
		{func(c *tap) cache.KeyValue { return timed{c, 251 * time.Millisecond} }, true},
		{func(c *tap) cache.KeyValue { return timed{c, time.Hour} }, true},
		{func(c *tap) cache.KeyValue { return timedPlain{plain{c}} }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			kv := newTap(memory.New())
			b := wellBehaved(t, test.kv(kv))
			kv.set(func(ctx context.Context, _, _ string) error {
				_, limited := ctx.Deadline()
				assert.Equal(t, test.limited, limited)
				return nil
			}, nil)
			require.NoError(t, b.Do(context.Background(), succeed))
			require.NotZero(t, kv.total())
		})
	}
}

// timedPlain gets one value after the other, each within its time limit.
type timedPlain struct{ plain }

func (timedPlain) TimeLimit() (time.Duration, bool) { return 250 * time.Millisecond, true }

// A look that finds another phase each time asks again, and each time within the limit of
// the cache.
func TestALookOfManyQuestionsTakesNoMoreThanASecond(t *testing.T) {
	for _, limit := range []time.Duration{50 * time.Millisecond, 250 * time.Millisecond, time.Minute} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b, told := withObserver(t, breaker.Config{Name: "x", Cache: timed{kv, limit}})
				eras := 0
				kv.set(func(ctx context.Context, _, _ string) error {
					select {
					case <-time.After(min(limit, time.Second) * 9 / 10):
					case <-ctx.Done():
						return context.Cause(ctx)
					}
					eras++
					return kv.inner.Set(ctx, key("x", "state"), fmt.Sprintf("v1 closed %d %d", eras, eras), time.Hour)
				}, nil)
				start := time.Now()
				require.NoError(t, b.Do(t.Context(), succeed))
				require.LessOrEqual(t, time.Since(start), time.Second)
				require.Len(t, *told, 1)
			})
		})
	}
}
