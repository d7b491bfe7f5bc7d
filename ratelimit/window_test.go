package ratelimit_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// plain hides every capability of a cache.
type plain struct{ cache.Cache }

// onEach runs a test over each kind of cache that a limiter can have, in virtual time.
func onEach(t *testing.T, test func(t *testing.T, c cache.Cache)) {
	t.Helper()
	kinds := []struct {
		name string
		make func() cache.Cache
	}{
		{"private memory", func() cache.Cache { return nil }},
		{"borrowed memory", func() cache.Cache { return memory.New() }},
		{"plain methods", func() cache.Cache { return plain{memory.New()} }},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, kind.make()) })
		})
	}
}

func limiter(t *testing.T, limit int, window time.Duration, cfg ratelimit.Config) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(limit, window, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

func admitted(l *ratelimit.Limiter, key string, calls int) (n int) {
	for range calls {
		if l.Acquire(context.Background(), key) == nil {
			n++
		}
	}
	return n
}

func TestExactlyTheLimitIsAdmittedHoweverManyAsk(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 100, 10*time.Second, ratelimit.Config{Cache: c})
		for range 3 {
			var in, out, other atomic.Int64
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					for range 10 {
						err := l.Acquire(t.Context(), "k")
						var exceeded *ratelimit.ExceededError
						switch {
						case err == nil:
							in.Add(1)
						case assert.ErrorAs(t, err, &exceeded) && exceeded.RetryAfter() > 0:
							out.Add(1)
						default:
							other.Add(1)
						}
					}
				})
			}
			all.Wait()
			assert.EqualValues(t, 100, in.Load())
			assert.EqualValues(t, 540, out.Load())
			assert.Zero(t, other.Load())
			time.Sleep(10 * time.Second)
		}
	})
}

func TestHitsAtOneInstantAllCount(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 10, time.Second, ratelimit.Config{Cache: c})
		assert.Equal(t, 10, admitted(l, "k", 1000))
		time.Sleep(time.Second)
		assert.Equal(t, 10, admitted(l, "k", 1000))
	})
}

func TestTheWindowSlides(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 100, time.Second, ratelimit.Config{Cache: c})
		time.Sleep(900 * time.Millisecond)
		assert.Equal(t, 100, admitted(l, "k", 100))
		time.Sleep(200 * time.Millisecond) // over the edge of a clock second
		assert.Zero(t, admitted(l, "k", 100))
		time.Sleep(800*time.Millisecond - time.Microsecond)
		assert.Zero(t, admitted(l, "k", 100))
		time.Sleep(time.Microsecond)
		assert.Equal(t, 100, admitted(l, "k", 200))
	})
}

func TestAHitHasLeftAtExactlyTheEndOfItsWindow(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: c})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		time.Sleep(9999 * time.Millisecond)
		require.Error(t, l.Acquire(t.Context(), "k"))
		time.Sleep(time.Millisecond)
		require.NoError(t, l.Acquire(t.Context(), "k"))
	})
}

func TestWindowsBelowAMillisecond(t *testing.T) {
	for _, window := range []time.Duration{time.Microsecond, 1500 * time.Nanosecond, 900 * time.Microsecond, 250 * time.Millisecond} {
		onEach(t, func(t *testing.T, c cache.Cache) {
			l := limiter(t, 5, window, ratelimit.Config{Cache: c})
			assert.Equal(t, 5, admitted(l, "k", 20))
			whole := (window + time.Microsecond - 1).Truncate(time.Microsecond) // it is rounded up
			time.Sleep(whole - time.Microsecond)
			assert.Zero(t, admitted(l, "k", 20))
			time.Sleep(time.Microsecond)
			assert.Equal(t, 5, admitted(l, "k", 20))
		})
	}
}

func TestTheHitsOfTheWindowOutliveQuietTimes(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 5, 10*time.Second, ratelimit.Config{Cache: c})
		time.Sleep(9900 * time.Millisecond)
		assert.Equal(t, 5, admitted(l, "k", 5))
		time.Sleep(200 * time.Millisecond)
		assert.Zero(t, admitted(l, "k", 5))
	})
}

func TestSleepingExactlyRetryAfterIsEnough(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 3, 10*time.Second, ratelimit.Config{Cache: c})
		for i := range 3 {
			require.NoError(t, l.Acquire(t.Context(), "k"))
			time.Sleep(time.Duration(i+1)*time.Second + 123456789)
		}
		for range 3_000 { // and so some ten thousand calls at the edge
			err := l.Acquire(t.Context(), "k")
			wait, ok := resilience.RetryAfter(err)
			require.True(t, ok)
			require.ErrorIs(t, err, resilience.ErrRejected)

			time.Sleep(wait - time.Microsecond)
			require.Error(t, l.Acquire(t.Context(), "k"), "a microsecond earlier")
			time.Sleep(time.Microsecond)
			require.NoError(t, l.Acquire(t.Context(), "k"))
		}
	})
}

func TestARefusalRecordsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 2, 10*time.Second, ratelimit.Config{Cache: c, MaxWait: time.Second})
		require.Equal(t, 2, admitted(l, "k", 2))
		var last time.Duration
		for i := range 9 {
			err := l.Acquire(t.Context(), "k")
			wait, ok := resilience.RetryAfter(err)
			require.True(t, ok)
			require.Equal(t, 10*time.Second-time.Duration(i)*500*time.Millisecond, wait)
			last = wait
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(last - 500*time.Millisecond)
		require.Equal(t, 2, admitted(l, "k", 2))
	})
}

func TestACostIsTakenWhole(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		for _, patience := range []time.Duration{0, time.Hour} {
			costsAreTakenWhole(t, c, patience)
		}
	})
}

func costsAreTakenWhole(t *testing.T, c cache.Cache, patience time.Duration) {
	l := limiter(t, 100, time.Minute, ratelimit.Config{Name: "tokens", Cache: c, MaxWait: patience})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	start := time.Now()

	err := l.AcquireN(ctx, "k", 101)
	var exceeded *ratelimit.ExceededError
	require.ErrorAs(t, err, &exceeded)
	assert.Equal(t, ratelimit.ExceededError{Name: "tokens", Key: "k", Cost: 101, Limit: 100, Window: time.Minute}, *exceeded)
	assert.ErrorIs(t, err, resilience.ErrRejected)
	assert.ErrorContains(t, err, "never")
	_, ok := resilience.RetryAfter(err)
	assert.False(t, ok, "what can never fit has no hint")

	for _, n := range []int{0, -5, math.MinInt} {
		err := l.AcquireN(ctx, "k", n)
		require.ErrorContains(t, err, "cost is")
		require.ErrorIs(t, err, resilience.ErrRejected)
		require.NotErrorAs(t, err, &exceeded)
	}
	remaining, err := l.Remaining(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, 100, remaining, "nothing was consumed")

	require.NoError(t, l.AcquireN(ctx, "k", 100))
	require.Equal(t, start, time.Now(), "nobody waited")
	err = l.AcquireN(ctx, "k", 1)
	if patience == 0 {
		wait, _ := resilience.RetryAfter(err)
		require.Equal(t, time.Minute, wait, "the window is full")
		time.Sleep(wait)
		return
	}
	require.NoError(t, err)
	require.Equal(t, time.Minute, time.Since(start))
	time.Sleep(time.Minute)
}

func TestCostsFillTheWindowTogether(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 10, time.Second, ratelimit.Config{Cache: c})
		require.NoError(t, l.AcquireN(t.Context(), "k", 7))
		time.Sleep(300 * time.Millisecond)
		require.Error(t, l.AcquireN(t.Context(), "k", 4))
		require.NoError(t, l.AcquireN(t.Context(), "k", 3))
		wait, _ := resilience.RetryAfter(l.AcquireN(t.Context(), "k", 7))
		assert.Equal(t, 700*time.Millisecond, wait)
		time.Sleep(wait)
		require.NoError(t, l.AcquireN(t.Context(), "k", 7))
	})
}

func TestRemainingLooksWithoutTaking(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 5, 10*time.Second, ratelimit.Config{Cache: c, MaxWait: time.Minute})
		remaining := func() int {
			n, err := l.Remaining(t.Context(), "k")
			require.NoError(t, err)
			return n
		}
		for range 100 {
			require.Equal(t, 5, remaining())
		}
		require.NoError(t, l.AcquireN(t.Context(), "k", 3))
		assert.Equal(t, 2, remaining())

		require.NoError(t, l.AcquireN(t.Context(), "k", 2))
		for range 7 {
			go l.Acquire(t.Context(), "k")
		}
		synctest.Wait()
		assert.Zero(t, remaining(), "reserved beyond the limit is not below zero")
		time.Sleep(10 * time.Second)
		assert.Zero(t, remaining(), "two wait for the next window")
		time.Sleep(10 * time.Second)
		assert.Equal(t, 3, remaining())
	})
}

func TestResetMakesRoomForTheWholeLimit(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 5, 10*time.Second, ratelimit.Config{Cache: c})
		require.Equal(t, 5, admitted(l, "k", 10))
		require.Equal(t, 5, admitted(l, "other", 10))
		require.NoError(t, l.Reset(t.Context(), "k"))
		require.NoError(t, l.Reset(t.Context(), "never seen"))
		assert.Equal(t, 5, admitted(l, "k", 10))
		assert.Zero(t, admitted(l, "other", 10))
	})
}

func TestNoSpanHoldsOneTooManyWheneverCallersArrive(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 100, time.Second, ratelimit.Config{Cache: c})
		seen := &instants{}
		random := rand.New(rand.NewPCG(1, 2))
		for range 10_000 {
			// Half of them come in bursts.
			time.Sleep(time.Duration(random.IntN(2)*random.IntN(15_000)) * time.Microsecond)
			if l.Acquire(t.Context(), "k") == nil {
				seen.add(time.Now().UnixMicro())
			}
		}
		seen.noSpanHolds(t, 100, time.Second)
		assert.Greater(t, len(seen.at), 2000)
		assert.Less(t, len(seen.at), 10_000, "some were refused")
	})
}

func TestAnyStringIsAKey(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 5, 10*time.Second, ratelimit.Config{Cache: c})
		for _, key := range []string{"", " ", "{", "}", "{}", "a{b}c", "\x00", "a\x00b", "\xff\xfe", ":", "ключ", "a\nb"} {
			assert.Equal(t, 5, admitted(l, key, 6), "%q", key)
		}
	})
}

func TestAHugeWindowAndALongWaitDoNotOverflow(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, math.MaxInt, math.MaxInt64, ratelimit.Config{Cache: c, MaxWait: math.MaxInt64})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		l = limiter(t, 1, math.MaxInt64, ratelimit.Config{Cache: c, Name: "one"})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		wait, _ := resilience.RetryAfter(l.Acquire(t.Context(), "k"))
		assert.Greater(t, wait, time.Duration(math.MaxInt64-1000))
	})
}
