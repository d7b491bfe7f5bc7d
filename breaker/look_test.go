package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
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

// Who cannot leave before the answer is there wakes nobody else to get it.
func TestALookIsTakenInTheGoroutineOfACallerWhoCannotLeave(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		for _, own := range []bool{true, false} {
			ctx := context.WithValue(t.Context(), key{}, "the caller's")
			if own {
				ctx = context.WithoutCancel(ctx)
			}
			kv.set(func(ctx context.Context, _, _ string) error {
				stack := make([]byte, 1<<16)
				stack = stack[:runtime.Stack(stack, false)]
				assert.Equal(t, own, strings.Contains(string(stack), "Breaker).Do("))
				assert.Equal(t, "the caller's", ctx.Value(key{}))
				return nil
			}, nil)
			require.NoError(t, b.Do(ctx, succeed))
		}
	})
}

// It is not the look of whoever began it.
func TestWhoLeavesALookTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		kv.roundTrip(50 * time.Millisecond)
		mine := errors.New("the user closed the window")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := begin(ctx, b)
		synctest.Wait()
		others := beginMany(t.Context(), b, 9)
		time.Sleep(10 * time.Millisecond)
		cancel(mine)
		err := <-first.done
		require.ErrorIs(t, err, mine)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, first.ran.Load())
		late := begin(t.Context(), b)
		for _, c := range append(others, late) {
			require.NoError(t, c.finish(nil))
		}
		assert.Equal(t, 1, kv.total())
	})
}

// What becomes of a look that does not return: whose goroutine it is has what comes of
// that, and the others are let through.
func TestALookThatPanicsOrExitsLetsOthersThrough(t *testing.T) {
	boom := errors.New("boom")
	for name, end := range map[string]func(){
		"panics": func() { panic(boom) },
		"exits":  runtime.Goexit,
	} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", own goroutine ", own), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := newTap(memory.New())
					var told atomic.Int64
					var panicked atomic.Bool
					b := newBreaker(t, breaker.Config{Cache: kv, OnStoreError: func(_ context.Context, err error) {
						told.Add(1)
						if strings.Contains(err.Error(), boom.Error()) {
							panicked.Store(true)
						}
					}})
					kv.set(func(context.Context, string, string) error {
						time.Sleep(time.Millisecond)
						end()
						return nil
					}, nil)
					ctx := t.Context()
					if own {
						ctx = context.WithoutCancel(ctx)
					}
					mine, ran, start := make(chan any, 1), false, time.Now()
					go func() {
						defer func() { mine <- recover() }()
						_ = b.Do(ctx, func(context.Context) error { ran = true; return nil })
					}()
					synctest.Wait()
					others := beginMany(t.Context(), b, 10)
					p := <-mine
					kv.set(nil, nil)
					for _, c := range others {
						require.NoError(t, c.finish(nil))
					}
					assert.Equal(t, time.Millisecond, time.Since(start), "nobody is held up")
					assert.Equal(t, !own, ran)
					if own && name == "panics" {
						assert.Equal(t, boom, p, "it is the caller's own")
					} else {
						assert.Nil(t, p)
					}
					assert.Equal(t, name == "panics", panicked.Load())
					assert.GreaterOrEqual(t, told.Load(), int64(10))
					require.NoError(t, b.Do(t.Context(), succeed))
				})
			})
		}
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

func TestALookEndsWhenNobodyWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, kv)
		var ended error
		kv.set(func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			ended = context.Cause(ctx)
			return ended
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		calls := beginMany(ctx, b, 2)
		synctest.Wait()
		require.NoError(t, ended)
		cancel()
		for _, c := range calls {
			require.ErrorIs(t, <-c.done, context.Canceled)
		}
		synctest.Wait()
		require.ErrorIs(t, ended, context.Canceled)
		kv.set(nil, nil)
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

// Where the cache ends it soon enough, it goes on for whoever comes next.
func TestALookAtAQuickCacheServesWhoeverComesNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := wellBehaved(t, timed{kv, 250 * time.Millisecond})
		kv.roundTrip(50 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.Do(ctx, succeed), context.DeadlineExceeded)
		start := time.Now()
		require.NoError(t, b.Do(t.Context(), succeed))
		assert.Equal(t, 30*time.Millisecond, time.Since(start))
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

// Callers who have less time than a round trip takes are served by the look that others
// have begun, and there is never more than one.
func TestCallersInAHurryShareALookToo(t *testing.T) {
	for name, wrap := range map[string]func(*tap) cache.KeyValue{
		"quick":           func(c *tap) cache.KeyValue { return timed{c, 250 * time.Millisecond} },
		"without a limit": func(c *tap) cache.KeyValue { return c },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b := wellBehaved(t, wrap(kv))
				var now, most, through atomic.Int64
				kv.set(func(ctx context.Context, _, _ string) error {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer now.Add(-1)
					select {
					case <-time.After(30 * time.Millisecond):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}, nil)
				var hurried sync.WaitGroup
				for range 1000 {
					time.Sleep(time.Millisecond)
					hurried.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
						defer cancel()
						if b.Do(ctx, succeed) == nil {
							through.Add(1)
						}
					})
				}
				hurried.Wait()
				time.Sleep(time.Second) // for the last look
				assert.EqualValues(t, 1, most.Load())
				assert.Greater(t, through.Load(), int64(700))
			})
		})
	}
}

// hanging returns a breaker over a cache that hangs, whatever the context and whatever time
// limit it has promised, until the channel is closed.
func hanging(t *testing.T, limited bool) (kv *tap, b *breaker.Breaker, hung chan struct{}) {
	kv, hung = newTap(memory.New()), make(chan struct{})
	cfg := breaker.Config{Cache: kv}
	if limited {
		cfg.Cache = timed{kv, 250 * time.Millisecond}
	}
	kv.set(func(context.Context, string, string) error { <-hung; return nil }, nil)
	return kv, newBreaker(t, cfg), hung
}

// Nobody waits for longer than a use of the cache may take, also if the cache does not mind
// its context, or asks about the circuit itself, in a hook, say.
func TestNobodyWaitsForALookForMoreThanASecond(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kv, b, hung := hanging(t, limited)
			start := time.Now()
			require.NoError(t, b.Do(t.Context(), succeed))
			require.Equal(t, time.Second, time.Since(start))
			close(hung)
			synctest.Wait()

			for _, ctx := range []context.Context{t.Context(), context.WithoutCancel(t.Context())} {
				asked := false
				kv.set(func(ctx context.Context, _, _ string) error {
					if !asked {
						asked = true
						_, err := b.State(ctx)
						// Whoever gives up last also ends the look, whose context this is.
						assert.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled), "%v", err)
					}
					return nil
				}, nil)
				start = time.Now()
				require.NoError(t, b.Do(ctx, succeed))
				require.LessOrEqual(t, time.Since(start), time.Second)
				synctest.Wait()
				require.NoError(t, b.Do(ctx, succeed))
			}
		})
	}
}

// One look that hangs is not waited for again by those who come later.
func TestALookThatIsOverdueIsNotJoined(t *testing.T) {
	for _, own := range []bool{false, true} {
		for _, limited := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				kv, b, hung := hanging(t, limited)
				ctx := t.Context()
				if own {
					ctx = context.WithoutCancel(ctx)
				}
				first := begin(ctx, b)
				synctest.Wait()
				kv.set(nil, nil)
				start := time.Now()
				require.NoError(t, b.Do(t.Context(), succeed)) // finds out
				require.LessOrEqual(t, time.Since(start), time.Second)
				start = time.Now()
				require.NoError(t, b.Do(t.Context(), succeed))
				require.Zero(t, time.Since(start))
				close(hung)
				require.NoError(t, first.finish(nil))
			})
		}
	}
}

// Also if a look is under way then that began before.
func TestWhoComesBackWhenToldToIsAnsweredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: timed{kv, 250 * time.Millisecond}, RecoveryTimeout: 10 * time.Second, FailureThreshold: 1})
		trip(t, b)
		time.Sleep(requireRefused(t, b).RetryAfter() - 10*time.Millisecond)
		kv.set(nil, func(context.Context, string, string) error { time.Sleep(100 * time.Millisecond); return nil })
		ctx, leave := context.WithCancel(t.Context())
		early := begin(ctx, b)
		time.Sleep(10 * time.Millisecond)
		kv.set(nil, nil)
		leave()
		require.ErrorIs(t, <-early.done, context.Canceled)
		require.NoError(t, b.Do(t.Context(), succeed))
	})
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
			require.NoError(t, b.Do(t.Context(), succeed))
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
