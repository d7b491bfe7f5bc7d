package breaker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// What cannot be written makes the next call look again. With many such reports no
// look is ever newer than all of them, and a caller must not wait for one that is.
func TestACallIsLetThroughSoonWhileReportsFailAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 10 * time.Millisecond
		kv := newTap(remote{memory.New()})
		b := newBreaker(t, breaker.Config{Cache: kv})
		kv.set(func(_ context.Context, op, _ string) error {
			if op == "getmany" {
				time.Sleep(roundTrip)
				return nil
			}
			return errUnavailable
		}, nil)
		var failing sync.WaitGroup
		for i := range 1000 {
			failing.Go(func() {
				_ = b.Do(t.Context(), func(context.Context) error {
					time.Sleep(time.Duration(i) * time.Millisecond)
					return errDown
				})
			})
		}
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		require.NoError(t, b.Do(t.Context(), succeed))
		require.LessOrEqual(t, time.Since(start), 4*roundTrip)
		failing.Wait()
	})
}

// An unable is a cache that says of each swap that there was something else.
type unable struct{ *tap }

func (unable) CompareAndSwap(context.Context, string, cache.Entry, cache.Entry, time.Duration) (bool, error) {
	return false, nil
}

func TestACacheThatContradictsItselfKeepsNobodyBusyForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		trip(t, newBreaker(t, breaker.Config{Cache: kv}))
		time.Sleep(30 * time.Second)
		b := newBreaker(t, breaker.Config{Cache: unable{kv}})
		requireState(t, breaker.HalfOpen, b)
		before := kv.total()
		requireRefused(t, b)
		require.Less(t, kv.total()-before, 10)
	})
}

func TestWhoComesBackWhenToldToIsAnsweredAnewWhateverTheStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		died := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 5 * time.Second})
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 5 * time.Second, Staleness: time.Hour})
		trip(t, died)
		time.Sleep(30 * time.Second)
		_, err := died.Allow(t.Context())
		require.NoError(t, err)
		time.Sleep(requireRefused(t, b).RetryAfter())
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

func TestACallThatIsUnderWayWhenItsBreakerIsClosedStillReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		closed := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: time.Hour})
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: time.Hour})
		trip(t, b)
		time.Sleep(30 * time.Second)
		probe, err := closed.Allow(t.Context())
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		requireRefused(t, b)
		probe.Done(t.Context(), nil)
		requireState(t, breaker.Closed, b)
	})
}

func TestASuccessClearsAFailureThatWasCountedUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 2})
		allow := func() *breaker.Permit {
			p, err := b.Allow(t.Context())
			require.NoError(t, err)
			return p
		}
		first, success, second := allow(), allow(), allow()
		kv.set(func(_ context.Context, op, _ string) error {
			if op == "getmany" {
				return errUnavailable // after the count
			}
			return nil
		}, nil)
		first.Done(t.Context(), errDown)
		kv.failing(nil)
		success.Done(t.Context(), nil)
		second.Done(t.Context(), errors.New("another"))
		requireFailures(t, 1, 2, b)
	})
}

// Over a cache that cannot swap, what is done by hand must not fall between the
// comparing and the swapping of a call.
func TestOverAPlainCacheWhatWasForcedIsNotUndoneByACallUnderWay(t *testing.T) {
	for name, force := range map[string]func(context.Context, *breaker.Breaker) error{
		"open":   func(ctx context.Context, b *breaker.Breaker) error { return b.ForceOpen(ctx, time.Hour) },
		"closed": func(ctx context.Context, b *breaker.Breaker) error { return b.Reset(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b := newBreaker(t, breaker.Config{Cache: plain{kv}, FailureThreshold: 2})
				require.ErrorIs(t, b.Do(t.Context(), fail), errDown)
				permit, err := b.Allow(t.Context())
				require.NoError(t, err)
				slow := true
				kv.set(nil, func(_ context.Context, op, part string) error {
					if op == "get" && part == "state" && slow {
						slow = false
						time.Sleep(100 * time.Millisecond)
					}
					return nil
				})
				outcome, want := breaker.Success, breaker.Open
				if name == "closed" {
					outcome, want = breaker.Failure, breaker.Closed
				}
				var report sync.WaitGroup
				report.Go(func() { permit.Settle(t.Context(), outcome) })
				synctest.Wait()
				require.NoError(t, force(t.Context(), b))
				report.Wait()
				requireState(t, want, b)
			})
		})
	}
}

func TestAProbeThatIsStillRunningCountsAlsoWhenAnotherHasOpenedTheCircuitAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		cfg := breaker.Config{Cache: kv, Probes: 2, RecoveryTimeout: 10 * time.Second, ProbeLease: 3 * time.Second}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		trip(t, a)
		time.Sleep(10 * time.Second)
		hangs := begin(t.Context(), a)
		synctest.Wait()
		for range 3 {
			require.ErrorIs(t, b.Do(t.Context(), fail), errDown)
			requireRefused(t, b)
			time.Sleep(10 * time.Second)
		}
		other := begin(t.Context(), b)
		synctest.Wait()
		require.True(t, other.ran.Load())
		requireRefused(t, a)
		requireRefused(t, b)
		require.NoError(t, hangs.finish(nil)) // too late to close the circuit
		requireState(t, breaker.HalfOpen, b)
		another := begin(t.Context(), a)
		synctest.Wait()
		require.True(t, another.ran.Load(), "in its place")
		require.NoError(t, other.finish(nil))
		requireState(t, breaker.Closed, a)
		require.NoError(t, another.finish(nil))
	})
}

// A caller who went through all places one after the other would run out of patience
// with the cache, and what is not known lets calls through.
func TestHoweverManyComeForHoweverManyPlacesNobodyIsLetThroughWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const probes, herd = 500, 1000
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv, Probes: probes})
		trip(t, b)
		time.Sleep(30 * time.Second)
		kv.set(func(ctx context.Context, _, _ string) error {
			select {
			case <-time.After(5 * time.Millisecond): // a round trip
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, nil)
		calls := make([]*gated, herd)
		for i := range calls {
			calls[i] = begin(t.Context(), b)
		}
		time.Sleep(5 * time.Second)
		ran := 0
		for _, c := range calls {
			if c.ran.Load() {
				ran++
			}
		}
		kv.set(nil, nil)
		for _, c := range calls {
			if c.ran.Load() {
				require.NoError(t, c.finish(nil))
			}
		}
		require.LessOrEqual(t, ran, probes)
		require.Greater(t, ran, probes*9/10)
	})
}

// What is stored and corrupt resolves towards letting traffic through: a marker, or a
// place, that nobody can have written must not hold the circuit open for as long as it
// happens to live.
func TestAMarkerOrAPlaceThatIsGarbageHoldsUpNobody(t *testing.T) {
	for _, part := range []string{"timeout ", "probe "} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := memory.New()
				b := newBreaker(t, breaker.Config{Name: "x", Cache: kv})
				trip(t, b)
				e := era(t, kv, "x")
				if part == "probe " {
					e = e[:26] + " 0"
				}
				require.NoError(t, kv.Set(t.Context(), key("x", part+e), "garbage", 24*time.Hour))
				time.Sleep(time.Minute)
				require.NoError(t, b.Do(t.Context(), succeed))
			})
		})
	}
}

// A test's own cache may end the goroutine it is called in, by t.FailNow for one.
func TestACacheThatExitsTheGoroutineHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(remote{memory.New()})
		b := newBreaker(t, breaker.Config{Cache: kv})
		kv.set(func(context.Context, string, string) error {
			runtime.Goexit()
			return nil
		}, nil)
		start := time.Now()
		require.NoError(t, b.Do(t.Context(), succeed))
		require.Zero(t, time.Since(start))
	})
}
