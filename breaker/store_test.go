package breaker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
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

var errUnavailable = &cache.UnavailableError{Op: "test", Err: errors.New("connection refused")}

// withObserver returns a breaker on kv, and what its observer was told.
func withObserver(t *testing.T, cfg breaker.Config) (*breaker.Breaker, *[]error) {
	t.Helper()
	var mu sync.Mutex
	var told []error
	cfg.OnStoreError = func(_ context.Context, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err)
	}
	return newBreaker(t, cfg), &told
}

func TestWhileTheStoreIsAwayCallsAreMadeAndTheirResultsAreTheirOwn(t *testing.T) {
	hang := func(ctx context.Context, _, _ string) error {
		select {
		case <-time.After(200 * time.Millisecond):
			return errUnavailable
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	hangForEver := func(ctx context.Context, _, _ string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	refuse := func(context.Context, string, string) error { return errUnavailable }
	for name, broken := range map[string]struct {
		before  func(context.Context, string, string) error
		longest time.Duration
	}{
		"failing": {refuse, 0}, "hanging": {hang, 200 * time.Millisecond}, "hanging for ever": {hangForEver, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newTap(memory.New())
				b, told := withObserver(t, breaker.Config{Name: "host", Cache: kv})
				kv.set(broken.before, nil)
				for _, op := range []func(context.Context) error{succeed, fail} {
					for range 100 {
						ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
						start := time.Now()
						require.Equal(t, op(ctx), b.Do(ctx, op))
						require.LessOrEqual(t, time.Since(start), broken.longest)
						cancel()
					}
				}
				require.Len(t, *told, 200)
				assert.Contains(t, (*told)[0].Error(), `breaker: circuit "host": `)

				kv.set(nil, nil)
				for range 5 {
					require.Equal(t, errDown, b.Do(t.Context(), fail), "the store is back")
				}
				requireRefused(t, b)
				assert.Len(t, *told, 200)
			})
		})
	}
}

func TestAStoreThatGoesAwayDuringACallDoesNotReplaceItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b, told := withObserver(t, breaker.Config{Cache: kv, FailureThreshold: 2})
		leave := func(result error) func(context.Context) error {
			return func(context.Context) error { kv.failing(errUnavailable); return result }
		}
		require.Equal(t, errDown, b.Do(t.Context(), leave(errDown)))
		require.Len(t, *told, 1)
		var unavailable *cache.UnavailableError
		require.ErrorAs(t, (*told)[0], &unavailable)
		kv.failing(nil)
		require.Equal(t, errDown, b.Do(t.Context(), fail))
		require.NoError(t, b.Do(t.Context(), leave(nil)), "clearing fails")
		require.Len(t, *told, 2)
		kv.failing(nil)
		require.Equal(t, errDown, b.Do(t.Context(), fail))
		requireState(t, breaker.Open, b)

		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), leave(nil)), "closing fails")
		kv.failing(nil)
		requireState(t, breaker.HalfOpen, b)
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed), "the place is free when its lease ends")
		requireState(t, breaker.Closed, b)
	})
}

func TestLookingAndChangingByHandReturnTheStoresError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b, told := withObserver(t, breaker.Config{Cache: kv})
		kv.failing(errUnavailable)
		state, err := b.State(t.Context())
		assert.Equal(t, breaker.Closed, state)
		require.ErrorIs(t, err, errUnavailable)
		_, err = b.RetryAfter(t.Context())
		require.ErrorIs(t, err, errUnavailable)
		require.ErrorIs(t, b.Reset(t.Context()), errUnavailable)
		require.ErrorIs(t, b.ForceOpen(t.Context(), time.Minute), errUnavailable)
		assert.Empty(t, *told)
	})
}

func TestAnOpenCircuitWhoseStateIsLostIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b, told := withObserver(t, breaker.Config{Name: "x", Cache: kv})
		trip(t, b)
		require.NoError(t, kv.Delete(t.Context(), key("x", "state")))
		requireFailures(t, 0, 5, b)
		assert.Empty(t, *told, "absence is an answer")
	})
}

func TestAnOpenCircuitWhoseMarkerIsLostIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b, _ := withObserver(t, breaker.Config{Name: "x", Cache: kv})
		trip(t, b)
		require.NoError(t, kv.Delete(t.Context(), key("x", "timeout "+era(t, kv, "x"))))
		requireState(t, breaker.HalfOpen, b)
		through := herd(t, 100, b)
		require.Len(t, through, 1)
		require.NoError(t, through[0].finish(nil))
		requireState(t, breaker.Closed, b)
	})
}

func TestStateThatCannotBeUnderstoodAdmitsAndIsReported(t *testing.T) {
	for name, garbage := range map[string]string{
		"bytes":            "\xff\x00\xfe",
		"empty":            "",
		"json":             `{"state":"open","opened_at":17,"extra":true}`,
		"a later version":  "v2 open 7 30000000000",
		"an unknown state": "v1 ajar 7 30000000000",
		"half of one":      "v1 open 7",
		"no timeout":       "v1 open 7 soon",
		"a past timeout":   "v1 open 7 -1",
		"no era":           "v1 closed  7",
		"a long era":       "v1 open " + strings.Repeat("7", 100) + " 30000000000",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := memory.New()
				b, told := withObserver(t, breaker.Config{Name: "x", Cache: kv})
				trip(t, b)
				require.NoError(t, kv.Set(t.Context(), key("x", "state"), garbage, time.Hour))
				require.NoError(t, b.Do(t.Context(), succeed))
				require.NoError(t, b.Do(t.Context(), succeed))
				require.Len(t, *told, 1)
				var corrupt *cache.CorruptError
				require.ErrorAs(t, (*told)[0], &corrupt)
				assert.Equal(t, key("x", "state"), corrupt.Key)

				requireFailures(t, 0, 5, b) // and yet it protects
				requireRefused(t, b)
				time.Sleep(30 * time.Second)
				require.NoError(t, b.Do(t.Context(), succeed))
				requireFailures(t, 0, 5, b)
				assert.Len(t, *told, 1)
			})
		})
	}
}

func TestFieldsOfALaterMinorVersionAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b, told := withObserver(t, breaker.Config{Name: "x", Cache: kv})
		require.NoError(t, kv.Set(t.Context(), key("x", "state"), "v1 open 7 30000000000 because of reasons", time.Hour))
		require.NoError(t, kv.Set(t.Context(), key("x", "timeout 7"), "1", 30*time.Second))
		requireRefused(t, b)
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed))
		requireState(t, breaker.Closed, b)
		assert.Empty(t, *told)
	})
}

func TestACountThatCannotBeGoneOnWithIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		for _, garbage := range []string{"many", "9223372036854775807", ""} {
			b, told := withObserver(t, breaker.Config{Name: garbage, Cache: kv, FailureThreshold: 3})
			counter := key(garbage, "failures 0 0")
			require.NoError(t, kv.Set(t.Context(), counter, garbage, time.Hour))
			require.NoError(t, b.Do(t.Context(), succeed))
			_, there, err := kv.Get(t.Context(), counter)
			require.NoError(t, err)
			require.False(t, there, "a success clears it")
			require.NoError(t, kv.Delete(t.Context(), key(garbage, "state")))
			require.NoError(t, kv.Set(t.Context(), counter, garbage, time.Hour))
			requireFailures(t, 0, 3, b)
			require.Len(t, *told, 1)
			var corrupt *cache.CorruptError
			require.ErrorAs(t, (*told)[0], &corrupt)
		}
	})
}

// wrongKind is a store in which some keys hold what is not a value at all, until
// they are overwritten.
type wrongKind struct {
	*memory.Cache
	bad map[string]bool
}

func (c *wrongKind) check(op, key string) error {
	if c.bad[key] {
		return &cache.CorruptError{Op: op, Key: key, Err: errors.New("wrong kind of value")}
	}
	return nil
}

func (c *wrongKind) Get(ctx context.Context, key string) (string, bool, error) {
	if err := c.check("get", key); err != nil {
		return "", false, err
	}
	return c.Cache.Get(ctx, key)
}

func (c *wrongKind) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	for _, key := range keys {
		if err := c.check("get", key); err != nil {
			return err
		}
	}
	return c.Cache.GetMany(ctx, keys, entries)
}

func (c *wrongKind) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	delete(c.bad, key)
	return c.Cache.Set(ctx, key, value, ttl)
}

func (c *wrongKind) Delete(ctx context.Context, key string) error {
	delete(c.bad, key)
	return c.Cache.Delete(ctx, key)
}

func (c *wrongKind) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	if err := c.check("increment", key); err != nil {
		return 0, err
	}
	return c.Cache.Increment(ctx, key, ttl)
}

func (c *wrongKind) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	if err := c.check("compare and swap", key); err != nil {
		return false, err
	}
	return c.Cache.CompareAndSwap(ctx, key, old, new, ttl)
}

func TestWhatIsOfAnotherKindIsTakenForAbsentAndOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &wrongKind{memory.New(), map[string]bool{
			key("x", "state"): true, key("x", "failures 0 0"): true,
		}}
		b, told := withObserver(t, breaker.Config{Name: "x", Cache: kv, FailureThreshold: 3})
		requireFailures(t, 0, 3, b)
		require.NotEmpty(t, *told)
		now := era(t, kv, "x")
		kv.bad[key("x", "timeout "+now)] = true
		kv.bad[key("x", "probe "+now+" 0")] = true
		probe := begin(t.Context(), b)
		synctest.Wait()
		requireRefused(t, b)
		require.NoError(t, probe.finish(nil))
		requireFailures(t, 0, 3, b)
	})
}

func TestWhatCannotBeReadIsReportedByCallsAndNotByLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &wrongKind{memory.New(), map[string]bool{key("x", "state"): true}}
		b, told := withObserver(t, breaker.Config{Name: "x", Cache: kv})
		requireState(t, breaker.Closed, b)
		assert.Empty(t, *told)
		require.NoError(t, b.Do(t.Context(), succeed))
		require.Len(t, *told, 1)
		var corrupt *cache.CorruptError
		require.ErrorAs(t, (*told)[0], &corrupt)
		assert.Equal(t, key("x", "state"), corrupt.Key)
	})
}

// noisy says something about what is not there, and each time something else.
type noisy struct {
	plain
	n int
}

func (c *noisy) Get(ctx context.Context, key string) (string, bool, error) {
	value, ok, err := c.plain.Get(ctx, key)
	if !ok {
		c.n++
		value = strings.Repeat("v1 open 7 1", c.n)
	}
	return value, ok, err
}

func TestWhatIsAbsentIsAbsentWhateverItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, told := withObserver(t, breaker.Config{Cache: &noisy{plain: plain{memory.New()}}})
		require.NoError(t, b.Do(t.Context(), succeed))
		requireFailures(t, 0, 5, b)
		time.Sleep(30 * time.Second)
		require.NoError(t, b.Do(t.Context(), succeed))
		requireState(t, breaker.Closed, b)
		assert.Empty(t, *told)
	})
}

// A reply that is lost may or may not stand for something that was done. Nothing is
// done twice for it, and nothing that was done is lost.
func TestALostReplyIsNotCountedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b, told := withObserver(t, breaker.Config{Cache: kv, FailureThreshold: 3})
		lose := func(op, part string) {
			kv.set(nil, func(_ context.Context, o, p string) error {
				if o == op && p == part {
					kv.set(nil, nil)
					return errUnavailable
				}
				return nil
			})
		}
		lose("increment", "failures")
		require.Equal(t, errDown, b.Do(t.Context(), fail))
		require.Len(t, *told, 1)
		require.Equal(t, errDown, b.Do(t.Context(), fail))
		requireState(t, breaker.Closed, b)

		lose("swap", "state") // the transition was made
		require.Equal(t, errDown, b.Do(t.Context(), fail))
		require.Len(t, *told, 2)
		assert.Equal(t, 30*time.Second, requireRefused(t, b).Wait)

		time.Sleep(30 * time.Second)
		lose("swap", "probe") // the place was taken
		require.NoError(t, b.Do(t.Context(), succeed))
		require.Len(t, *told, 3)
		requireState(t, breaker.HalfOpen, b)
		lose("swap", "state") // it was closed
		probe, err := b.Allow(t.Context())
		require.NoError(t, err, "the place was lost")
		probe.Settle(t.Context(), breaker.Success)
		requireFailures(t, 0, 3, b)
	})
}

func TestEverythingThatIsStoredExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &expiring{newTap(memory.New()), t}
		b := newBreaker(t, breaker.Config{Cache: kv, RecoveryTimeout: time.Hour, ProbeLease: time.Minute})
		for range 3 {
			trip(t, b)
			time.Sleep(time.Hour)
			require.NoError(t, b.Do(t.Context(), func(context.Context) error { time.Sleep(time.Hour); return nil }))
			_ = b.Do(t.Context(), fail)
			_ = b.Do(t.Context(), fail)
			require.NoError(t, b.Do(t.Context(), succeed))
			require.NoError(t, b.ForceOpen(t.Context(), time.Hour))
			require.NoError(t, b.Reset(t.Context()))
		}
		assert.NotZero(t, kv.count("set"))
		assert.NotZero(t, kv.count("swap"))
		assert.NotZero(t, kv.count("increment"))
	})
}

type expiring struct {
	*tap
	t *testing.T
}

func (c *expiring) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	assert.Positive(c.t, ttl)
	return c.tap.Set(ctx, key, value, ttl)
}

func (c *expiring) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	assert.Positive(c.t, ttl)
	return c.tap.Increment(ctx, key, ttl)
}

func (c *expiring) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	if new.Present {
		assert.Positive(c.t, ttl)
	}
	return c.tap.CompareAndSwap(ctx, key, old, new, ttl)
}

func TestNothingPilesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 2, RecoveryTimeout: time.Hour, ProbeLease: time.Second})
		for range 1000 {
			_ = b.Do(t.Context(), fail)
			_ = b.Do(t.Context(), succeed)
		}
		assert.Less(t, kv.Len(), 5)
		for range 100 {
			trip(t, b)
			time.Sleep(time.Hour)
			_ = b.Do(t.Context(), fail)
			time.Sleep(time.Hour)
			_ = b.Do(t.Context(), succeed)
		}
		assert.Less(t, kv.Len(), 10)
	})
}

// The state of a healthy circuit lapses unless somebody has to write it. That must
// not cost a failure, neither one that is counted nor one that is reported then.
func TestNoFailureIsLostWhenTheStateOfAHealthyCircuitLapses(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour} {
		everywhere(t, func(t *testing.T, kv cache.KeyValue) {
			b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 3})
			_ = b.Do(t.Context(), fail)
			require.NoError(t, b.Do(t.Context(), succeed)) // writes the state
			require.NoError(t, b.Do(t.Context(), succeed))
			call := begin(t.Context(), b)
			time.Sleep(24*time.Hour + time.Minute - 5*time.Second) // what it is kept, almost
			_ = b.Do(t.Context(), fail)
			_ = b.Do(t.Context(), fail)
			if late < 30*time.Second {
				time.Sleep(late)
				_ = call.finish(errDown)
				requireState(t, breaker.Open, b)
				return
			}
			time.Sleep(late)
			_ = call.finish(errDown)
			requireFailures(t, 1, 3, b)
		})
	}
}

// The call that was in flight, and the view of a private circuit, are of a state
// that is not there any more.
func TestNoFailureIsLostWhenTheStateHasLapsed(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 3})
		require.NoError(t, b.Reset(t.Context())) // writes the state
		call := begin(t.Context(), b)
		time.Sleep(25 * time.Hour)
		_ = call.finish(errDown)
		requireFailures(t, 1, 3, b)
	})
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 3})
		require.NoError(t, b.Reset(t.Context()))
		require.NoError(t, b.Do(t.Context(), succeed))
		time.Sleep(25 * time.Hour)
		requireFailures(t, 0, 3, b)
	})
}

// What may have been written is looked for, whatever the staleness.
func TestAfterAnErrorOfTheStoreTheNextCallLooks(t *testing.T) {
	loseReply := func(kv *tap, op, part string) {
		kv.set(nil, func(_ context.Context, o, p string) error {
			if o == op && p == part {
				return errUnavailable
			}
			return nil
		})
	}
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b, _ := withObserver(t, breaker.Config{Cache: kv, Staleness: 1000 * time.Hour, FailureThreshold: 2})
		require.NoError(t, b.Do(t.Context(), succeed))
		loseReply(kv, "increment", "failures")
		_ = b.Do(t.Context(), fail)
		kv.set(nil, nil)
		require.NoError(t, b.Do(t.Context(), succeed))
		requireFailures(t, 0, 2, b)

		require.NoError(t, b.Reset(t.Context()))
		_ = b.Do(t.Context(), fail)
		loseReply(kv, "swap", "state")
		_ = b.Do(t.Context(), fail)
		kv.set(nil, nil)
		requireRefused(t, b)

		require.NoError(t, b.Reset(t.Context()))
		require.NoError(t, b.Do(t.Context(), succeed))
		loseReply(kv, "getmany", "state")
		require.ErrorIs(t, b.ForceOpen(t.Context(), time.Minute), errUnavailable)
		kv.set(nil, nil)
		requireRefused(t, b)
	})
}

func TestAMethodThatIsCancelledReturnsTheCause(t *testing.T) {
	mine := errors.New("the user closed the window")
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv})
		trip(t, b)
		time.Sleep(30 * time.Second)
		p, err := b.Allow(t.Context())
		require.NoError(t, err)
		for name, method := range map[string]func(context.Context) error{
			"State":      func(ctx context.Context) error { _, err := b.State(ctx); return err },
			"RetryAfter": func(ctx context.Context) error { _, err := b.RetryAfter(ctx); return err },
			"Reset":      b.Reset,
			"ForceOpen":  func(ctx context.Context) error { return b.ForceOpen(ctx, time.Minute) },
			"Allow":      func(ctx context.Context) error { _, err := b.Allow(ctx); return err },
			"Renew":      p.Renew,
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			kv.set(func(uctx context.Context, _, _ string) error { cancel(mine); <-uctx.Done(); return uctx.Err() }, nil)
			err := method(ctx)
			assert.ErrorIs(t, err, mine, name)
			assert.ErrorIs(t, err, context.Canceled, name)
		}
	})
}

// The marker counts, not the clock of whoever reads it.
func TestAsLongAsTheMarkerIsThereTheCircuitIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b := newBreaker(t, breaker.Config{Name: "x", Cache: kv})
		trip(t, b)
		require.NoError(t, kv.Set(t.Context(), key("x", "timeout "+era(t, kv, "x")), "1", time.Hour))
		time.Sleep(time.Hour - 1)
		requireState(t, breaker.Open, b)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		require.NoError(t, b.Do(t.Context(), succeed))
	})
}

func TestNoRetryAfterWithoutARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{})
		_, ok := resilience.RetryAfter(b.Do(t.Context(), fail))
		assert.False(t, ok)
	})
}
