package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
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

// everywhere runs a test with a private cache, one that is shared in this process, one
// that may have to be waited for, and a plain one.
func everywhere(t *testing.T, test func(t *testing.T, kv cache.KeyValue)) {
	t.Run("private", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, nil) })
	})
	t.Run("shared", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, memory.New()) })
	})
	t.Run("remote", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, remote{memory.New()}) })
	})
	t.Run("plain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, plain{memory.New()}) })
	})
}

func TestNewNamesTheFieldAndTheValue(t *testing.T) {
	for want, cfg := range map[string]breaker.Config{
		"FailureThreshold is -1,":      {FailureThreshold: -1},
		"Cache is a nil *memory.Cache": {Cache: (*memory.Cache)(nil)},
		"RecoveryTimeout is -1s,":      {RecoveryTimeout: -time.Second},
		"Probes is -3,":                {Probes: -3},
		"Probes is 1001,":              {Probes: 1001},
		"ProbeLease is -1ns,":          {ProbeLease: -1},
		"ProbeLease is 1µs,":           {ProbeLease: time.Microsecond},
		"Staleness is -1ms,":           {Staleness: -time.Millisecond},
	} {
		_, err := breaker.New(cfg)
		require.Error(t, err)
		assert.Contains(t, err.Error(), "breaker: "+want)
	}
}

func TestTheLargestDurationsDoNotOverflow(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		const century = 100 * 365 * 24 * time.Hour
		for i, cfg := range []breaker.Config{
			{RecoveryTimeout: math.MaxInt64, ProbeLease: math.MaxInt64, Staleness: math.MaxInt64},
			{RecoveryTimeout: math.MaxInt64},
			{RecoveryTimeout: math.MaxInt64 - 24*time.Hour},
			{ProbeLease: math.MaxInt64},
		} {
			cfg.Name, cfg.Cache = fmt.Sprint(i), kv
			b := newBreaker(t, cfg)
			time.Sleep(time.Hour)
			trip(t, b)
			if cfg.RecoveryTimeout > 0 {
				time.Sleep(1000 * time.Hour)
				assert.Greater(t, requireRefused(t, b).Wait, century)
			}
			require.NoError(t, b.ForceOpen(t.Context(), math.MaxInt64))
			assert.Greater(t, requireRefused(t, b).Wait, century)
		}
	})
}

func TestTheZeroConfigOpensAfterFiveFailuresForThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{})
		for range 5 {
			require.Equal(t, errDown, b.Do(t.Context(), fail))
		}
		open := requireRefused(t, b)
		assert.Equal(t, breaker.OpenError{State: breaker.Open, Wait: 30 * time.Second}, *open)
		time.Sleep(30*time.Second - 1)
		assert.Equal(t, time.Duration(1), requireRefused(t, b).Wait)
		time.Sleep(time.Nanosecond)
		require.NoError(t, b.Do(t.Context(), succeed))
		requireState(t, breaker.Closed, b)
	})
}

func TestOpensAtTheThresholdAndNotBefore(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		for _, threshold := range []int{1, 2, 3, 7} {
			b := newBreaker(t, breaker.Config{Name: fmt.Sprint(threshold), Cache: kv, FailureThreshold: threshold})
			requireFailures(t, 0, threshold, b)
			requireRefused(t, b)
		}
	})
}

func TestARefusalOfAHalfOpenCircuitSaysWhenItMayBeDecided(t *testing.T) {
	for _, lease := range []time.Duration{5 * time.Second, time.Minute} {
		everywhere(t, func(t *testing.T, kv cache.KeyValue) {
			b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: 10 * time.Second, ProbeLease: lease})
			trip(t, b)
			time.Sleep(10 * time.Second)
			_, err := b.Allow(t.Context())
			require.NoError(t, err)
			open := requireRefused(t, b)
			assert.Equal(t, breaker.OpenError{State: breaker.HalfOpen, Wait: min(lease, 10*time.Second)}, *open)
		})
	}
}

func TestARefusalSaysAllThereIsToSay(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Name: "answers", Cache: kv, RecoveryTimeout: 10 * time.Second})
		trip(t, b)
		time.Sleep(4 * time.Second)

		err := b.Do(t.Context(), succeed)
		require.ErrorIs(t, err, resilience.ErrRejected)
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)
		assert.Equal(t, breaker.OpenError{Name: "answers", State: breaker.Open, Wait: 6 * time.Second}, *open)
		wait, ok := resilience.RetryAfter(fmt.Errorf("asking: %w", err))
		assert.True(t, ok)
		assert.Equal(t, 6*time.Second, wait)
		assert.Equal(t, `breaker: circuit "answers" is open, retry after 6s`, err.Error())
	})
}

func TestWhoWaitsAsLongAsARefusalSaysIsLetThrough(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv})
		trip(t, b)
		time.Sleep(requireRefused(t, b).RetryAfter())
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

func TestASuccessClearsTheFailuresBeforeIt(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv})
		for range 1000 {
			_ = b.Do(t.Context(), fail)
			require.NoError(t, b.Do(t.Context(), succeed))
		}
		for range 4 {
			_ = b.Do(t.Context(), fail)
		}
		require.NoError(t, b.Do(t.Context(), succeed))
		requireFailures(t, 0, 5, b)
	})
}

func TestFailuresOlderThanTheTimeoutOfTheirRunDoNotCount(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: time.Minute})
		for range 100 {
			_ = b.Do(t.Context(), fail)
			requireState(t, breaker.Closed, b)
			time.Sleep(50 * time.Second)
		}
		time.Sleep(time.Minute)
		for range 4 {
			_ = b.Do(t.Context(), fail)
		}
		time.Sleep(time.Minute - 1)
		requireFailures(t, 4, 5, b)
	})
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: time.Minute})
		for range 4 {
			_ = b.Do(t.Context(), fail)
		}
		time.Sleep(time.Minute)
		requireFailures(t, 0, 5, b)
	})
}

func TestAFailedProbeOpensAtOnceForAFullTimeout(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: 10 * time.Second})
		trip(t, b)
		for range 5 {
			time.Sleep(10 * time.Second)
			requireState(t, breaker.HalfOpen, b)
			require.Equal(t, errDown, b.Do(t.Context(), fail))
			requireState(t, breaker.Open, b)
			assert.Equal(t, 10*time.Second, requireRefused(t, b).Wait)
			time.Sleep(10*time.Second - 1)
			requireRefused(t, b)
			time.Sleep(time.Nanosecond)
			requireState(t, breaker.HalfOpen, b)
			require.Equal(t, errDown, b.Do(t.Context(), fail))
		}
	})
}

func TestAProbesSuccessClosesTheCircuitWithoutFailures(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv})
		for range 3 {
			trip(t, b)
			time.Sleep(30 * time.Second)
			require.NoError(t, b.Do(t.Context(), succeed))
			requireFailures(t, 0, 5, b)
			time.Sleep(30 * time.Second)
			require.NoError(t, b.Do(t.Context(), succeed))
		}
	})
}

// However long an open circuit was left alone, a probe comes first and never the
// full load.
func TestAfterTheTimeoutComesAProbeAndNotTheHerd(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: 30 * time.Second, ProbeLease: time.Second})
		trip(t, b)
		time.Sleep(11 * time.Second)
		requireRefused(t, b)
		time.Sleep(18 * time.Second)
		requireRefused(t, b)
		time.Sleep(2*time.Second + 20*time.Hour)

		calls := make([]*gated, 100)
		for i := range calls {
			calls[i] = begin(t.Context(), b)
		}
		synctest.Wait()
		var probe *gated
		for _, c := range calls {
			if c.ran.Load() {
				require.Nil(t, probe, "more than one was let through")
				probe = c
			}
		}
		require.NotNil(t, probe)
		time.Sleep(40 * time.Second) // longer than the timeout, and than the lease
		requireRefused(t, b)
		require.Equal(t, errDown, probe.finish(errDown))
		requireState(t, breaker.Open, b)
		assert.Equal(t, 30*time.Second, requireRefused(t, b).Wait)
	})
}

func TestACallThatIsCancelledIsNoVerdict(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv})
		for i := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			_ = b.Do(ctx, func(ctx context.Context) error {
				cancel()
				if i%2 == 0 {
					return fmt.Errorf("asking: %w", ctx.Err())
				}
				return errors.New("net: operation was cancelled by the user")
			})
		}
		requireState(t, breaker.Closed, b)
		for range 4 {
			_ = b.Do(t.Context(), fail)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_ = b.Do(ctx, func(context.Context) error { cancel(); return errDown })
		requireFailures(t, 4, 5, b)
	})
}

func TestADeadlineThatPassesIsAFailure(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv})
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := b.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		requireState(t, breaker.Open, b)
	})
}

func TestARefusalInsideIsNoVerdict(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv})
		for range 20 {
			_ = b.Do(t.Context(), func(context.Context) error {
				return fmt.Errorf("limit: %w", resilience.ErrRejected)
			})
		}
		requireFailures(t, 0, 5, b)
	})
}

// What is the request's fault counts against nobody, what is the host's does, and
// what a classifier does not know it leaves to the default.
func TestAClassifierSaysWhatCounts(t *testing.T) {
	type status int
	statusError := func(code status) error { return &codeError{code: int(code)} }
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		var seen []error
		b := newBreaker(t, breaker.Config{Cache: kv, Classify: func(ctx context.Context, err error) breaker.Outcome {
			seen = append(seen, err)
			var e *codeError
			if errors.As(err, &e) && e.code < 500 {
				return breaker.Neutral
			}
			return breaker.Classify(ctx, err)
		}})
		for range 20 {
			for _, code := range []status{400, 401, 404} {
				_ = b.Do(t.Context(), func(context.Context) error { return statusError(code) })
			}
		}
		requireState(t, breaker.Closed, b)
		require.NoError(t, b.Do(t.Context(), succeed))
		assert.Len(t, seen, 61)
		assert.NoError(t, seen[60])
		for range 5 {
			requireState(t, breaker.Closed, b)
			_ = b.Do(t.Context(), func(context.Context) error { return statusError(503) })
		}
		requireState(t, breaker.Open, b)
	})
}

type codeError struct{ code int }

func (e *codeError) Error() string { return fmt.Sprint("status ", e.code) }

func TestAnUnknownOutcomeIsAFailure(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 1, Classify: func(context.Context, error) breaker.Outcome { return 7 }})
		require.NoError(t, b.Do(t.Context(), succeed))
		requireState(t, breaker.Open, b)
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed))
		requireState(t, breaker.Open, b)
	})
}

func TestAPanicAndAGoexitAreFailuresAndGoOn(t *testing.T) {
	ends := map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, kv cache.KeyValue) {
				b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 2})
				call := func() {
					returned, recovered := false, any(nil)
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { recovered = recover() }()
						_ = b.Do(t.Context(), func(context.Context) error { end(); return nil })
						returned = true
					}()
					<-done
					assert.False(t, returned)
					if name == "panic" {
						assert.Equal(t, "boom", recovered)
					}
				}
				call()
				requireState(t, breaker.Closed, b)
				call()
				requireState(t, breaker.Open, b)
				time.Sleep(30 * time.Second)
				call() // a probe
				requireState(t, breaker.Open, b)
				time.Sleep(30 * time.Second)
				require.NoError(t, b.Do(t.Context(), succeed), "a place was lost")
			})
		})
	}
}

func TestAPanicInTheClassifierIsAFailureAndGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		sick := false
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 1, Classify: func(ctx context.Context, err error) breaker.Outcome {
			if sick {
				panic("boom")
			}
			return breaker.Classify(ctx, err)
		}})
		sick = true
		assert.Panics(t, func() { _ = b.Do(t.Context(), succeed) })
		requireState(t, breaker.Open, b)
		time.Sleep(30 * time.Second)
		p, err := b.Allow(t.Context())
		require.NoError(t, err)
		assert.Panics(t, func() { p.Done(t.Context(), nil) })
		requireState(t, breaker.Open, b)
		sick = false
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

// A result belongs to the circuit as it was when its call was let through.
func TestWhatIsReportedLateChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 3})
		calls := make([]*gated, 12)
		for i := range calls {
			calls[i] = begin(t.Context(), b)
		}
		synctest.Wait()
		trip(t, b)

		t.Log("while it is open")
		_ = calls[0].finish(nil)
		requireState(t, breaker.Open, b)
		time.Sleep(20 * time.Second)
		for _, c := range calls[1:5] {
			_ = c.finish(errDown)
		}
		time.Sleep(10*time.Second - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)

		t.Log("while it is half-open")
		requireState(t, breaker.HalfOpen, b)
		probe := begin(t.Context(), b)
		synctest.Wait()
		require.True(t, probe.ran.Load())
		_ = calls[5].finish(nil)
		_ = calls[6].finish(errDown)
		requireState(t, breaker.HalfOpen, b)
		requireRefused(t, b)

		t.Log("after it was closed")
		require.NoError(t, probe.finish(nil))
		for _, c := range calls[7:11] {
			_ = c.finish(errDown)
		}
		requireState(t, breaker.Closed, b)
		_ = b.Do(t.Context(), fail)
		_ = calls[11].finish(nil) // does not clear what is new
		requireFailures(t, 1, 3, b)
	})
}

func TestResetForgets(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 3})
		_ = b.Do(t.Context(), fail)
		_ = b.Do(t.Context(), fail)
		require.NoError(t, b.Reset(t.Context()))
		_ = b.Do(t.Context(), fail)
		late := begin(t.Context(), b)
		synctest.Wait()
		requireFailures(t, 1, 3, b)

		require.NoError(t, b.Reset(t.Context()))
		requireState(t, breaker.Closed, b)
		_ = late.finish(errDown)
		requireFailures(t, 0, 3, b)

		time.Sleep(30 * time.Second)
		probe := begin(t.Context(), b)
		synctest.Wait()
		require.NoError(t, b.Reset(t.Context()))
		_ = probe.finish(errDown)
		requireState(t, breaker.Closed, b)
	})
}

func TestForceOpenOpensForAsLongAsIsSaidAndIsThenProbed(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: time.Second})
		inFlight := begin(t.Context(), b)
		synctest.Wait()
		require.NoError(t, b.ForceOpen(t.Context(), time.Hour))
		assert.Equal(t, time.Hour, requireRefused(t, b).Wait)
		require.NoError(t, inFlight.finish(nil))
		time.Sleep(time.Hour - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		requireState(t, breaker.HalfOpen, b)
		require.Equal(t, errDown, b.Do(t.Context(), fail))
		assert.Equal(t, time.Second, requireRefused(t, b).Wait)

		require.NoError(t, b.ForceOpen(t.Context(), time.Minute))
		require.NoError(t, b.ForceOpen(t.Context(), 2*time.Second), "the last word counts")
		time.Sleep(2 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed))

		for _, d := range []time.Duration{0, -time.Second} {
			err := b.ForceOpen(t.Context(), d)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "duration is "+d.String())
		}
		requireState(t, breaker.Closed, b)
	})
}

func TestForcingAndForgettingLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b := newBreaker(t, breaker.Config{Cache: kv})
		for range 1000 {
			require.NoError(t, b.ForceOpen(t.Context(), time.Hour))
			require.NoError(t, b.ForceOpen(t.Context(), time.Hour))
			require.NoError(t, b.Reset(t.Context()))
		}
		assert.Less(t, kv.Len(), 10)
	})
}

func TestLookingIsFree(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		var told []breaker.Transition
		b := newBreaker(t, breaker.Config{Cache: kv, OnStateChange: func(_ context.Context, tr breaker.Transition) {
			told = append(told, tr)
		}})
		look := func(state breaker.State, wait time.Duration) {
			t.Helper()
			for range 10 {
				requireState(t, state, b)
				got, err := b.RetryAfter(t.Context())
				require.NoError(t, err)
				require.Equal(t, wait, got)
			}
		}
		look(breaker.Closed, 0)
		trip(t, b)
		look(breaker.Open, 30*time.Second)
		time.Sleep(20 * time.Second)
		look(breaker.Open, 10*time.Second)
		time.Sleep(10 * time.Second)
		look(breaker.HalfOpen, 0)
		require.Len(t, told, 1)

		probe := begin(t.Context(), b)
		synctest.Wait()
		require.True(t, probe.ran.Load(), "looking took the place")
		look(breaker.HalfOpen, requireRefused(t, b).Wait)
		require.NoError(t, probe.finish(nil))
		look(breaker.Closed, 0)
	})
}

func TestAContextThatIsDoneTakesNothingAndIsReportedAsItself(t *testing.T) {
	mine := errors.New("the user closed the window")
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		for _, b := range []*breaker.Breaker{
			newBreaker(t, breaker.Config{}),
			newBreaker(t, breaker.Config{Cache: kv}),
			newBreaker(t, breaker.Config{Cache: kv, Name: "stale", Staleness: time.Hour}),
		} {
			for _, state := range []string{"closed", "open", "half-open"} {
				switch state {
				case "open":
					trip(t, b)
				case "half-open":
					time.Sleep(30 * time.Second)
				}
				uses := kv.total()
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(mine)
				err := b.Do(ctx, func(context.Context) error { t.Error("the call was made"); return nil })
				for _, want := range []error{context.Canceled, mine} {
					assert.ErrorIs(t, err, want)
				}
				assert.NotErrorIs(t, err, resilience.ErrRejected)
				_, err = b.Allow(ctx)
				assert.ErrorIs(t, err, mine)
				_, err = b.State(ctx)
				assert.ErrorIs(t, err, mine)
				_, err = b.RetryAfter(ctx)
				assert.ErrorIs(t, err, mine)
				assert.ErrorIs(t, b.Reset(ctx), mine)
				assert.ErrorIs(t, b.ForceOpen(ctx, time.Hour), mine)
				assert.Equal(t, uses, kv.total(), "the cache was used")
			}
			require.NoError(t, b.Do(t.Context(), succeed), "a place was taken")
		}
	})
}

func TestClosingReleasesOnlyWhatWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		a := newBreaker(t, breaker.Config{Name: "host", Cache: kv})
		b := newBreaker(t, breaker.Config{Name: "host", Cache: kv})
		trip(t, a)
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		requireRefused(t, b)
		require.NoError(t, kv.Set(t.Context(), "k", "v", 0))

		own, healthy := newBreaker(t, breaker.Config{}), newBreaker(t, breaker.Config{})
		trip(t, own)
		inFlight, err := newBreaker(t, breaker.Config{}).Allow(t.Context())
		require.NoError(t, err)
		for _, closed := range []*breaker.Breaker{a, own, healthy} {
			require.NoError(t, closed.Close())
			require.NoError(t, closed.Close())
			assert.ErrorIs(t, closed.Do(t.Context(), succeed), cache.ErrClosed)
			assert.ErrorIs(t, closed.Do(t.Context(), succeed), resilience.ErrRejected, "no call was made")
			_, err := closed.Allow(t.Context())
			assert.ErrorIs(t, err, cache.ErrClosed)
			_, err = closed.State(t.Context())
			assert.ErrorIs(t, err, cache.ErrClosed)
			_, err = closed.RetryAfter(t.Context())
			assert.ErrorIs(t, err, cache.ErrClosed)
			assert.ErrorIs(t, closed.Reset(t.Context()), cache.ErrClosed)
			assert.ErrorIs(t, closed.ForceOpen(t.Context(), 1), cache.ErrClosed)
		}
		inFlight.Done(t.Context(), errDown) // reports to nobody
	})
}

func TestAPolicyLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{FailureThreshold: 1})
		ask := resilience.Wrap(func(context.Context) (string, error) { return "", errDown }, b)
		_, err := ask(t.Context())
		require.Equal(t, errDown, err)
		_, err = ask(t.Context())
		require.ErrorIs(t, err, resilience.ErrRejected)
	})
}

func TestNamesOfOutcomesAndStates(t *testing.T) {
	assert.Equal(t, "success failure neutral Outcome(3)",
		fmt.Sprint(breaker.Success, breaker.Failure, breaker.Neutral, breaker.Outcome(3)))
	assert.Equal(t, "closed open half-open State(-1)",
		fmt.Sprint(breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.State(-1)))
}

func TestACallAllocatesNothingAndARefusalItsErrorAtMost(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b := newBreaker(t, breaker.Config{})
	ctx := context.Background()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = b.Do(ctx, succeed) }))
	stale := newBreaker(t, breaker.Config{Cache: memory.New(), Staleness: time.Hour})
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = stale.Do(ctx, succeed) }))
	trip(t, b)
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _ = b.Do(ctx, succeed) }), 1.0)
}

func TestARefusalsWaitIsNeverShortAndAtMostAMillisecondLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{RecoveryTimeout: 10 * time.Second})
		require.NoError(t, b.ForceOpen(t.Context(), 10*time.Second))
		due := time.Now().Add(10 * time.Second)
		shared := map[*breaker.OpenError]bool{}
		for time.Until(due) > 0 {
			open, ok := errors.AsType[*breaker.OpenError](b.Do(t.Context(), succeed))
			require.True(t, ok)
			shared[open] = true
			late := open.Wait - time.Until(due)
			require.True(t, late >= 0 && late < time.Millisecond, "%v", late)
			time.Sleep(time.Second/3001 + time.Nanosecond)
		}
		assert.NoError(t, b.Do(t.Context(), succeed), "a probe")
		assert.LessOrEqual(t, len(shared), 10_000, "one for each millisecond, not for each call")
	})
}
