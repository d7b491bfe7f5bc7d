package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// herd has n calls arrive at once and returns those that were let through. All
// others must have been refused.
func herd(t *testing.T, n int, breakers ...*breaker.Breaker) []*gated {
	t.Helper()
	calls := make([]*gated, n)
	for i := range calls {
		calls[i] = begin(t.Context(), breakers[i%len(breakers)])
	}
	synctest.Wait()
	var through []*gated
	for _, c := range calls {
		if c.ran.Load() {
			through = append(through, c)
			continue
		}
		var open *breaker.OpenError
		require.ErrorAs(t, <-c.done, &open)
	}
	return through
}

func TestNoMoreCallsThanProbesAreLetThroughWhenRecoveryIsDue(t *testing.T) {
	for _, probes := range []int{1, 3} {
		for _, result := range []error{nil, errDown} {
			t.Run(fmt.Sprintf("%d probes end with %v", probes, result), func(t *testing.T) {
				everywhere(t, func(t *testing.T, kv cache.KeyValue) {
					b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: 10 * time.Second, Probes: probes})
					for range 3 {
						trip(t, b)
						time.Sleep(10 * time.Second)
						through := herd(t, 128, b)
						require.Len(t, through, probes)
						time.Sleep(30 * time.Second)
						open := requireRefused(t, b)
						assert.Equal(t, breaker.HalfOpen, open.State)

						for _, c := range through {
							require.Equal(t, result, c.finish(result))
						}
						if result == nil {
							through = herd(t, 128, b)
							require.Len(t, through, 128)
							for _, c := range through {
								require.NoError(t, c.finish(nil))
							}
							continue
						}
						requireState(t, breaker.Open, b)
						time.Sleep(10*time.Second - 1)
						requireRefused(t, b)
						time.Sleep(time.Nanosecond)
						require.NoError(t, b.Do(t.Context(), succeed))
					}
				})
			})
		}
	}
}

// The first probe's verdict is what counts; the others' come late.
func TestTheFirstProbeDecides(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 2, Probes: 3})
		trip(t, b)
		time.Sleep(30 * time.Second)
		through := herd(t, 3, b)
		require.Len(t, through, 3)
		require.NoError(t, through[0].finish(nil))
		_ = through[1].finish(errDown)
		_ = through[2].finish(errDown)
		requireFailures(t, 0, 2, b)

		time.Sleep(30 * time.Second)
		through = herd(t, 3, b)
		require.Len(t, through, 3)
		_ = through[0].finish(errDown)
		requireState(t, breaker.Open, b)
		time.Sleep(10 * time.Second)
		_ = through[1].finish(nil)
		_ = through[2].finish(errDown)
		assert.Equal(t, 20*time.Second, requireRefused(t, b).Wait)
	})
}

func TestAProbeThatIsNoVerdictGivesItsPlaceBackAtOnce(t *testing.T) {
	badRequest := errors.New("400")
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, Staleness: time.Minute, Classify: func(ctx context.Context, err error) breaker.Outcome {
			if errors.Is(err, badRequest) {
				return breaker.Neutral
			}
			return breaker.Classify(ctx, err)
		}})
		trip(t, b)
		time.Sleep(30 * time.Second)

		probe := begin(t.Context(), b)
		synctest.Wait()
		requireRefused(t, b)
		require.Equal(t, badRequest, probe.finish(badRequest))
		requireState(t, breaker.HalfOpen, b)

		ctx, cancel := context.WithCancel(t.Context())
		probe = begin(ctx, b)
		synctest.Wait()
		requireRefused(t, b)
		cancel()
		require.ErrorIs(t, <-probe.done, context.Canceled)
		requireState(t, breaker.HalfOpen, b)

		require.NoError(t, b.Do(t.Context(), succeed))
		requireState(t, breaker.Closed, b)
	})
}

func TestAProbeThatIsAbandonedBlocksNobodyForLongerThanItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := breaker.Config{Cache: memory.New(), RecoveryTimeout: 10 * time.Second, ProbeLease: 5 * time.Second}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		trip(t, a)
		time.Sleep(10 * time.Second)
		abandoned, err := a.Allow(t.Context())
		require.NoError(t, err)
		time.Sleep(4900 * time.Millisecond)
		requireRefused(t, b)
		time.Sleep(100*time.Millisecond - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		probe, err := b.Allow(t.Context())
		require.NoError(t, err)
		requireRefused(t, a)

		require.ErrorIs(t, abandoned.Renew(t.Context()), breaker.ErrLeaseLost)
		abandoned.Settle(t.Context(), breaker.Success)
		requireState(t, breaker.HalfOpen, a)
		requireRefused(t, b)
		probe.Settle(t.Context(), breaker.Failure)
		requireState(t, breaker.Open, a)
	})
}

func TestWhatIsReportedAfterTheLeaseWasLostChangesNothing(t *testing.T) {
	for _, o := range []breaker.Outcome{breaker.Success, breaker.Failure, breaker.Neutral} {
		t.Run(o.String(), func(t *testing.T) {
			everywhere(t, func(t *testing.T, kv cache.KeyValue) {
				b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 5 * time.Second})
				trip(t, b)
				time.Sleep(30 * time.Second)
				lost, err := b.Allow(t.Context())
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				requireState(t, breaker.HalfOpen, b)
				lost.Settle(t.Context(), o) // the place is nobody's
				requireState(t, breaker.HalfOpen, b)

				lost, err = b.Allow(t.Context())
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				probe := begin(t.Context(), b)
				synctest.Wait()
				require.True(t, probe.ran.Load())
				lost.Settle(t.Context(), o) // the place is another's
				requireState(t, breaker.HalfOpen, b)
				requireRefused(t, b)
				require.NoError(t, probe.finish(nil))
				requireState(t, breaker.Closed, b)
			})
		})
	}
}

func TestDoRenewsTheLeaseAsLongAsTheCallRuns(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 5 * time.Second})
		trip(t, b)
		time.Sleep(30 * time.Second)
		probe := begin(t.Context(), b)
		for range 600 {
			time.Sleep(time.Second)
			requireRefused(t, b)
		}
		require.NoError(t, probe.finish(nil))
		requireState(t, breaker.Closed, b)
	})
}

func TestTheLeaseIsRenewedThroughAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		told := 0
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 6 * time.Second, OnStoreError: func(context.Context, error) { told++ }})
		trip(t, b)
		time.Sleep(30 * time.Second)
		probe := begin(t.Context(), b)
		synctest.Wait()
		kv.failing(errUnavailable)
		time.Sleep(3 * time.Second)
		kv.failing(nil)
		time.Sleep(30 * time.Second)
		require.NoError(t, probe.finish(nil))
		requireState(t, breaker.Closed, b)
		assert.Equal(t, 1, told)
	})
}

// An outcome has to come from a place that is still held when the report is made, or
// a call that outlived its process's pause would overrule whoever probes now.
func TestAVerdictIsGivenWithinTheLeaseItBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 500 * time.Millisecond})
		trip(t, b)
		time.Sleep(30 * time.Second)
		probe, err := b.Allow(t.Context())
		require.NoError(t, err)
		kv.set(nil, func(_ context.Context, op, part string) error {
			if op == "swap" && part == "probe" {
				time.Sleep(501 * time.Millisecond) // between holding the place and deciding
			}
			return nil
		})
		probe.Settle(t.Context(), breaker.Success)
		kv.set(nil, nil)
		requireState(t, breaker.HalfOpen, b)
	})
}

// Between finding a place free and taking it, its former holder may have opened the
// circuit again.
func TestAPlaceThatIsTakenAfterTheVerdictIsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		cfg := breaker.Config{Cache: kv, ProbeLease: 500 * time.Millisecond}
		a, b := newBreaker(t, cfg), newBreaker(t, cfg)
		trip(t, a)
		time.Sleep(30 * time.Second)

		meanwhile := func() {
			p, err := a.Allow(t.Context())
			require.NoError(t, err)
			p.Settle(t.Context(), breaker.Failure)
			// What is left of its place goes away by itself.
			time.Sleep(500 * time.Millisecond)
		}
		kv.set(func(_ context.Context, op, part string) error {
			if op == "swap" && part == "probe" {
				kv.set(nil, nil)
				meanwhile()
			}
			return nil
		}, nil)
		assert.Equal(t, breaker.Open, requireRefused(t, b).State)
	})
}

func TestACallerWhoLeavesWhileTakingAPlaceDoesNotKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv})
		trip(t, b)
		time.Sleep(30 * time.Second)
		for _, op := range []string{"swap", "getmany"} { // taking it, and looking after that
			ctx, cancel := context.WithCancel(t.Context())
			taken := false
			kv.set(nil, func(ctx context.Context, o, part string) error {
				taken = taken || o == "swap"
				if taken && o == op {
					cancel()
					return ctx.Err()
				}
				return nil
			})
			err := b.Do(ctx, func(context.Context) error { t.Error("the call was made"); return nil })
			require.ErrorIs(t, err, context.Canceled)
			kv.set(nil, nil)
			synctest.Wait()
			require.Equal(t, breaker.HalfOpen, stateOf(t, b))
			p, err := b.Allow(t.Context())
			require.NoError(t, err, "the place was lost")
			p.Settle(t.Context(), breaker.Neutral)
		}
	})
}

// Not even if the store hangs.
func TestACallerWhoLeavesDoesNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv})
		trip(t, b)
		time.Sleep(30 * time.Second)
		for _, op := range []string{"getmany", "swap"} {
			kv.set(func(ctx context.Context, o, _ string) error {
				if o == op {
					<-ctx.Done()
				}
				return ctx.Err()
			}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			start := time.Now()
			require.ErrorIs(t, b.Do(ctx, succeed), context.DeadlineExceeded)
			assert.Equal(t, 100*time.Millisecond, time.Since(start))
			cancel()
		}
		time.Sleep(time.Second) // what goes on ends by itself
	})
}

func stateOf(t *testing.T, b *breaker.Breaker) breaker.State {
	t.Helper()
	s, err := b.State(t.Context())
	require.NoError(t, err)
	return s
}

func TestNothingGoesOnAfterAProbeHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: time.Second})
		trip(t, b)
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), func(context.Context) error { time.Sleep(10 * time.Second); return nil }))
		uses := kv.total()
		time.Sleep(time.Hour)
		assert.Equal(t, uses, kv.total())
	})
}

func TestAProbeWhoseVerdictCannotBeWrittenGivesItsPlaceBack(t *testing.T) {
	for _, part := range []string{"swap state", "set timeout"} {
		synctest.Test(t, func(t *testing.T) {
			kv := newTap(memory.New())
			b := newBreaker(t, breaker.Config{Cache: kv})
			trip(t, b)
			time.Sleep(30 * time.Second)
			for _, op := range []func(context.Context) error{succeed, fail} {
				kv.set(func(_ context.Context, o, p string) error {
					if o+" "+p == part {
						return errUnavailable
					}
					return nil
				}, nil)
				_ = b.Do(t.Context(), op)
				kv.set(nil, nil)
				if stateOf(t, b) == breaker.Closed {
					trip(t, b)
					time.Sleep(30 * time.Second)
				}
				p, err := b.Allow(t.Context())
				require.NoError(t, err)
				p.Settle(t.Context(), breaker.Neutral)
			}
		})
	}
}

// A cache that cannot swap is good enough for one breaker: its callers take turns.
func TestOverAPlainCacheOneBreakerGivesAPlaceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: plain{kv}})
		trip(t, b)
		time.Sleep(30 * time.Second)
		release := kv.hold("before", "set", "probe")
		calls := []*gated{begin(t.Context(), b), begin(t.Context(), b)}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		impatient := begin(ctx, b)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-impatient.done, context.Canceled)
		release()
		synctest.Wait()
		if calls[1].ran.Load() {
			calls[0], calls[1] = calls[1], calls[0]
		}
		require.NoError(t, calls[0].finish(nil))
		require.ErrorIs(t, <-calls[1].done, resilience.ErrRejected)
	})
}
