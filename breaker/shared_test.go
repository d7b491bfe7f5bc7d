package breaker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func TestBreakersOfOneNameOnOneCacheAreOneCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Config{Name: "host", Cache: memory.New(), FailureThreshold: 4}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		_ = a.Do(t.Context(), fail)
		_ = b.Do(t.Context(), fail)
		_ = a.Do(t.Context(), fail)
		requireFailures(t, 3, 4, b)
		requireRefused(t, a)
		c := newBreaker(t, cfg)
		requireRefused(t, c)

		time.Sleep(30 * time.Second)
		through := herd(t, 128, a, b, c)
		require.Len(t, through, 1)
		require.NoError(t, through[0].finish(nil))
		for _, each := range []*breaker.Breaker{a, b, c} {
			requireState(t, breaker.Closed, each)
		}
	})
}

func TestBreakersOfOneNameOnTwoCachesAreTwoCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newBreaker(t, breaker.Config{Name: "host", Cache: memory.New()})
		b := newBreaker(t, breaker.Config{Name: "host", Cache: memory.New()})
		c := newBreaker(t, breaker.Config{Name: "host"})
		d := newBreaker(t, breaker.Config{Name: "host"})
		trip(t, a)
		requireFailures(t, 0, 5, b)
		requireFailures(t, 0, 5, c)
		requireFailures(t, 0, 5, d)
	})
}

func TestBreakersOfTwoNamesOnOneCacheAreTwoCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		for _, name := range []string{
			"", " ", "a", "a\x00", "a\x00state", "a\x01", "a\x01\x01", "a\x01\x02", "a state", "failures 0 0", "{a}", "\xff",
		} {
			requireFailures(t, 0, 5, newBreaker(t, breaker.Config{Name: name, Cache: kv}))
		}
	})
}

func TestMakingABreakerChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		cfg := breaker.Config{Cache: kv}
		trip(t, newBreaker(t, cfg))
		uses := kv.total()
		b := newBreaker(t, cfg)
		require.Equal(t, uses, kv.total())
		requireRefused(t, b)
	})
}

func TestASuccessAnywhereClearsWhatAllHaveCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Config{Cache: memory.New()}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		for range 4 {
			_ = a.Do(t.Context(), fail)
		}
		require.NoError(t, b.Do(t.Context(), succeed))
		requireFailures(t, 0, 5, a)
	})
}

// All look before any writes, and all write before any looks again.
func TestNoFailureIsLostAmongManyAtOnce(t *testing.T) {
	for _, failures := range []int{49, 50, 60} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				breakers := make([]*breaker.Breaker, 10)
				for i := range breakers {
					breakers[i] = newBreaker(t, breaker.Config{
						Cache: kv, FailureThreshold: 50,
						OnStoreError: func(_ context.Context, err error) { t.Error("contention surfaces:", err) },
					})
				}
				var calls []*gated
				for i := range failures {
					calls = append(calls, begin(t.Context(), breakers[i%10]))
				}
				synctest.Wait()
				writes, looks := make(chan struct{}), make(chan struct{})
				kv.set(func(_ context.Context, op, _ string) error {
					switch op {
					case "increment":
						<-writes
					case "getmany":
						<-looks
					}
					return nil
				}, nil)
				for _, c := range calls {
					c.end <- func() error { return errDown }
				}
				synctest.Wait()
				close(writes)
				synctest.Wait()
				close(looks)
				for _, c := range calls {
					require.Equal(t, errDown, <-c.done)
				}
				assert.Equal(t, failures, kv.count("increment"), "each is counted once")
				if failures < 50 {
					requireFailures(t, failures, 50, breakers[0])
				}
				for _, b := range breakers {
					requireState(t, breaker.Open, b)
				}
			})
		})
	}
}

func TestOutcomesThatMixAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		breakers := make([]*breaker.Breaker, 10)
		for i := range breakers {
			breakers[i] = newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 500})
		}
		want := 0
		for range 20 {
			outcomes := make([]breaker.Outcome, 50)
			clears := rand.IntN(2) == 0
			if clears {
				want = 0
			}
			for i := range outcomes {
				if outcomes[i] = breaker.Neutral; rand.IntN(3) == 0 {
					outcomes[i] = breaker.Failure
					want++
				}
			}
			if clears {
				require.NoError(t, breakers[rand.IntN(10)].Do(t.Context(), succeed))
			}
			var wg sync.WaitGroup
			for i, o := range outcomes {
				wg.Go(func() {
					p, err := breakers[i%10].Allow(t.Context())
					if assert.NoError(t, err) {
						p.Settle(t.Context(), o)
					}
				})
			}
			wg.Wait()
		}
		requireFailures(t, want, 500, breakers[0])
	})
}

// hold has the next use of op on part wait, before it or after, for the function
// that is returned.
func (c *tap) hold(when, op, part string) (release func()) {
	gate := make(chan struct{})
	once := sync.Once{}
	wait := func(_ context.Context, o, p string) error {
		if o == op && p == part {
			once.Do(func() { <-gate })
		}
		return nil
	}
	if when == "before" {
		c.set(wait, nil)
	} else {
		c.set(nil, wait)
	}
	return func() { c.set(nil, nil); close(gate) }
}

func TestASuccessBetweenCountingAndOpeningIsHeeded(t *testing.T) {
	for _, where := range []string{"after increment failures", "before set timeout", "before swap state"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				cfg := breaker.Config{Cache: kv, FailureThreshold: 3}
				a, b := newBreaker(t, cfg), newBreaker(t, cfg)
				_ = a.Do(t.Context(), fail)
				_ = a.Do(t.Context(), fail)
				success := begin(t.Context(), b)
				failure := begin(t.Context(), a)
				synctest.Wait()

				var when, op, part string
				_, err := fmt.Sscan(where, &when, &op, &part)
				require.NoError(t, err)
				release := kv.hold(when, op, part)
				failure.end <- func() error { return errDown }
				synctest.Wait()
				if op == "swap" {
					kv.set(nil, nil) // the success swaps too
				}
				require.NoError(t, success.finish(nil))
				requireState(t, breaker.Closed, b)
				release()
				require.Equal(t, errDown, <-failure.done)
				requireFailures(t, 1, 3, a)
			})
		})
	}
}

func TestASuccessAfterOpeningIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		cfg := breaker.Config{Cache: kv, FailureThreshold: 3}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		_ = a.Do(t.Context(), fail)
		_ = a.Do(t.Context(), fail)
		success := begin(t.Context(), b)
		failure := begin(t.Context(), a)
		synctest.Wait()
		release := kv.hold("before", "swap", "state")
		success.end <- func() error { return nil }
		synctest.Wait()
		kv.set(nil, nil)
		require.Equal(t, errDown, failure.finish(errDown))
		requireState(t, breaker.Open, a)
		release()
		require.NoError(t, <-success.done)
		requireState(t, breaker.Open, a)
		requireRefused(t, b)
	})
}

func TestAFailureWhoseRunEndsWhileItIsCountedIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		cfg := breaker.Config{Cache: kv, FailureThreshold: 3}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		_ = a.Do(t.Context(), fail)
		success := begin(t.Context(), b)
		failure := begin(t.Context(), a)
		synctest.Wait()
		release := kv.hold("before", "increment", "failures")
		failure.end <- func() error { return errDown }
		synctest.Wait()
		require.NoError(t, success.finish(nil))
		release()
		require.Equal(t, errDown, <-failure.done)
		requireFailures(t, 1, 3, b)
	})
}

func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		cfg := breaker.Config{Cache: kv, FailureThreshold: 2, Probes: 3, ProbeLease: time.Hour}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		costs := func(want int, what string, f func()) {
			t.Helper()
			uses := kv.total()
			f()
			assert.Equal(t, want, kv.total()-uses, what)
		}
		succeeds := func() { t.Helper(); require.NoError(t, b.Do(t.Context(), succeed)) }
		fails := func() { t.Helper(); require.Equal(t, errDown, b.Do(t.Context(), fail)) }
		refused := func() { t.Helper(); requireRefused(t, b) }

		costs(1, "the first call", succeeds)
		for range 10 {
			costs(1, "a success of a healthy circuit", succeeds)
		}
		costs(3, "a failure: a look, the count, and a look", fails)
		costs(4, "a success that clears: a look, the swap, the old count, and a look", succeeds)
		costs(1, "a success after that", succeeds)
		require.NoError(t, a.Reset(t.Context()))
		costs(2, "after what others did, a second look", succeeds)
		costs(1, "and then one again", succeeds)

		costs(4, "the first failure of a run: what is stored must outlive the count", fails)
		costs(6, "the one that opens: a look, the count, the marker, the swap, the old count, and a look", fails)
		require.NoError(t, b.Reset(t.Context()))
		trip(t, a)
		costs(2, "open, as others did", refused)
		for range 10 {
			costs(1, "open", refused)
		}
		time.Sleep(30 * time.Second)
		costs(6, "a probe that closes: a look, the place, a look, the lease, the swap, and a look", succeeds)
		trip(t, b)
		time.Sleep(30 * time.Second)
		costs(8, "a probe that opens again: a marker more, and the place", fails)
		time.Sleep(30 * time.Second)
		for range 3 {
			_, err := a.Allow(t.Context())
			require.NoError(t, err)
		}
		for range 10 {
			costs(1, "half-open with all places taken", refused)
		}
	})
}

// However many places there are, those who come together find them without going
// through all of them one after the other.
func TestManyProbesAreSoonPlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		cfg := breaker.Config{Cache: kv, Probes: 500}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		trip(t, a)
		time.Sleep(30 * time.Second)
		swaps := kv.count("swap")
		kv.set(func(context.Context, string, string) error {
			time.Sleep(time.Millisecond) // a round trip
			return nil
		}, nil)
		calls := make([]*gated, 250)
		for i := range calls {
			calls[i] = begin(t.Context(), []*breaker.Breaker{a, b}[i%2])
		}
		time.Sleep(60 * time.Millisecond)
		for _, c := range calls {
			require.True(t, c.ran.Load())
		}
		assert.Less(t, kv.count("swap")-swaps, 500)
		kv.set(nil, nil)
		for _, c := range calls {
			require.NoError(t, c.finish(nil))
		}
	})
}

func TestWithAStalenessThereIsNextToNothingToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv, Staleness: 100 * time.Millisecond})
		const calls = 10_000
		for range calls {
			require.NoError(t, b.Do(t.Context(), succeed))
			time.Sleep(time.Millisecond)
		}
		perCall := float64(kv.total()) / calls
		assert.Less(t, perCall, 0.05)
		assert.Greater(t, perCall, 0.005, "it looks now and then")
	})
}

func TestWhatTheProcessDidItselfShowsAtOnceWhateverTheStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{Cache: memory.New(), Staleness: 365 * 24 * time.Hour})
		for range 4 {
			_ = b.Do(t.Context(), fail)
		}
		require.NoError(t, b.Do(t.Context(), succeed))
		requireFailures(t, 0, 5, b)
		requireRefused(t, b)
		time.Sleep(30 * time.Second)
		requireState(t, breaker.HalfOpen, b)
		probe := begin(t.Context(), b)
		synctest.Wait()
		requireRefused(t, b)
		require.NoError(t, probe.finish(nil))
		requireFailures(t, 0, 5, b)
		require.NoError(t, b.Reset(t.Context()))
		requireState(t, breaker.Closed, b)
		require.NoError(t, b.ForceOpen(t.Context(), time.Minute))
		requireRefused(t, b)
	})
}

func TestWhatOthersDidShowsWithinTheStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		a := newBreaker(t, breaker.Config{Cache: kv})
		b := newBreaker(t, breaker.Config{Cache: kv, Staleness: time.Second})
		require.NoError(t, b.Do(t.Context(), succeed))
		require.NoError(t, a.ForceOpen(t.Context(), time.Minute))
		time.Sleep(time.Second - 1)
		require.NoError(t, b.Do(t.Context(), succeed))
		time.Sleep(time.Nanosecond)
		requireRefused(t, b)
		require.NoError(t, a.Reset(t.Context()))
		time.Sleep(time.Second - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

func TestWithAStalenessProbesAreStillDecidedInTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Config{Cache: memory.New(), Staleness: time.Minute}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		trip(t, a)
		requireRefused(t, b)
		time.Sleep(30 * time.Second)
		p, err := b.Allow(t.Context()) // both see a free place
		require.NoError(t, err)
		p.Settle(t.Context(), breaker.Neutral)
		p, err = a.Allow(t.Context())
		require.NoError(t, err)
		requireRefused(t, b)
		p.Settle(t.Context(), breaker.Failure)
		assert.Len(t, herd(t, 100, a, b), 0)
	})
}

// keep has the next reply to a look wait for the function that is returned, and
// those after it not.
func (c *tap) keep() (release func()) {
	gate := make(chan struct{})
	once := sync.Once{}
	c.set(nil, func(_ context.Context, op, _ string) error {
		if op == "getmany" {
			mine := false
			once.Do(func() { mine = true })
			if mine {
				<-gate
			}
		}
		return nil
	})
	return func() { close(gate) }
}

// Who joins a look that began before what this process did meanwhile must not be
// told how it was.
func TestALookThatIsOlderThanWhatWasDoneIsNotUsed(t *testing.T) {
	for _, staleness := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint("by a call, stale ", staleness), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b := newBreaker(t, breaker.Config{Cache: kv, Staleness: staleness})
				release := kv.keep()
				early := begin(t.Context(), b)
				synctest.Wait()
				require.NoError(t, b.ForceOpen(t.Context(), time.Minute))
				late := begin(t.Context(), b)
				var state breaker.State
				go func() { state, _ = b.State(t.Context()) }()
				synctest.Wait()
				release()
				for _, c := range []*gated{early, late} {
					var open *breaker.OpenError
					require.ErrorAs(t, <-c.done, &open)
				}
				synctest.Wait()
				assert.Equal(t, breaker.Open, state)
				requireRefused(t, b)
			})
		})
		t.Run(fmt.Sprint("by a call, the outcome unknown, stale ", staleness), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b := newBreaker(t, breaker.Config{Cache: kv, Staleness: staleness})
				release := kv.keep()
				early := begin(t.Context(), b)
				synctest.Wait()
				kv.mu.Lock()
				kv.before = func(_ context.Context, op, _ string) error {
					if op == "getmany" {
						return errUnavailable
					}
					return nil
				}
				kv.mu.Unlock()
				require.ErrorIs(t, b.ForceOpen(t.Context(), time.Minute), errUnavailable)
				kv.mu.Lock()
				kv.before = nil
				kv.mu.Unlock()
				release()
				require.ErrorIs(t, <-early.done, resilience.ErrRejected)
				requireRefused(t, b)
			})
		})
		t.Run(fmt.Sprint("by a report, stale ", staleness), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b := newBreaker(t, breaker.Config{Cache: kv, Staleness: staleness})
				failure := begin(t.Context(), b)
				synctest.Wait()
				release := kv.keep()
				failure.end <- func() error { return errDown }
				synctest.Wait()
				require.NoError(t, b.ForceOpen(t.Context(), time.Minute))
				release()
				require.Equal(t, errDown, <-failure.done)
				requireRefused(t, b)
			})
		})
	}
}

// In real time, because virtual time stands still while code runs. The host fails
// every time, so each call that gets through is a probe, and there is one to a timeout.
func TestADeadHostSeesOneProbeToATimeout(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			const timeout = 2 * time.Millisecond
			cfg := breaker.Config{FailureThreshold: 1, RecoveryTimeout: timeout}
			breakers := []*breaker.Breaker{newBreaker(t, cfg)}
			if shared {
				cfg.Cache = remote{memory.New()}
				breakers = []*breaker.Breaker{newBreaker(t, cfg), newBreaker(t, cfg), newBreaker(t, cfg)}
			}
			start := time.Now()
			_ = breakers[0].Do(context.Background(), fail)
			var inside, most, calls atomic.Int64
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					for time.Since(start) < 200*time.Millisecond {
						_ = breakers[i%len(breakers)].Do(context.Background(), func(context.Context) error {
							calls.Add(1)
							n := inside.Add(1)
							for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
							}
							runtime.Gosched()
							inside.Add(-1)
							return errDown
						})
					}
				})
			}
			wg.Wait()
			assert.EqualValues(t, 1, most.Load())
			assert.LessOrEqual(t, calls.Load(), int64(time.Since(start)/timeout))
			assert.Greater(t, calls.Load(), int64(1))
		})
	}
}

// In real time too.
func TestUnderLoadNoMoreThanTheProbesRunAndNothingIsStuck(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			cfg := breaker.Config{FailureThreshold: 3, RecoveryTimeout: 2 * time.Millisecond, Probes: 2}
			breakers := []*breaker.Breaker{newBreaker(t, cfg)}
			if shared {
				cfg.Cache = remote{memory.New()}
				breakers = []*breaker.Breaker{newBreaker(t, cfg), newBreaker(t, cfg), newBreaker(t, cfg)}
			}
			var wg sync.WaitGroup
			for i := range 16 {
				b := breakers[i%len(breakers)]
				wg.Go(func() {
					for n := range 300 {
						switch (n*7 + i) % 11 {
						case 0:
							ctx, cancel := context.WithCancel(context.Background())
							_ = b.Do(ctx, func(context.Context) error { cancel(); return errDown })
						case 1:
							_ = b.Do(context.Background(), succeed)
						case 2:
							if p, err := b.Allow(context.Background()); err == nil {
								p.Settle(context.Background(), breaker.Outcome(n%3))
							}
						case 3:
							_, _ = b.State(context.Background())
							_, _ = b.RetryAfter(context.Background())
						default:
							_ = b.Do(context.Background(), fail)
						}
					}
				})
			}
			wg.Wait()
			require.Eventually(t, func() bool {
				return breakers[0].Do(context.Background(), succeed) == nil
			}, 10*time.Second, time.Millisecond)
			for _, b := range breakers {
				requireState(t, breaker.Closed, b)
			}
		})
	}
}
