package cache_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// A store is a HitWindow without capabilities, with hooks before what it does.
type store struct {
	hits   cache.Cache
	count  func(ctx context.Context, since time.Time) error
	oldest func(since time.Time) (vanished bool)
	record func(at time.Time, ttl time.Duration) error
}

func newStore() *store { return &store{hits: memory.New()} }

func (s *store) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	if s.count != nil {
		if err := s.count(ctx, since); err != nil {
			return 0, err
		}
	}
	return s.hits.CountHits(ctx, key, since)
}

func (s *store) OldestHit(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
	if s.oldest != nil && s.oldest(since) {
		return time.Time{}, false, nil
	}
	return s.hits.OldestHit(ctx, key, since)
}

func (s *store) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	if s.record != nil {
		if err := s.record(at, ttl); err != nil {
			return err
		}
	}
	return s.hits.RecordHit(ctx, key, at, ttl)
}

func ask(t *testing.T, a cache.Acquirer, limit, weight int64, maxWait time.Duration) cache.Grant {
	t.Helper()
	g, err := a.Acquire(t.Context(), "k", cache.Request{Limit: limit, Window: 10 * time.Second, Weight: weight, MaxWait: maxWait})
	require.NoError(t, err)
	return g
}

func TestAcquirerOfAnAcquirerIsItself(t *testing.T) {
	c := memory.New()
	assert.Same(t, c, cache.AcquirerOf(c))
}

func TestOverPlainMethodsOneCallerOfAKeyAtATimeDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		inside, most := 0, 0
		s.count = func(context.Context, time.Time) error {
			inside++
			most = max(most, inside)
			time.Sleep(time.Millisecond) // long enough for all to see the last free slot
			inside--
			return nil
		}
		a := cache.AcquirerOf(s)
		var mu sync.Mutex
		granted := 0
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if ask(t, a, 50, 1, 0).OK {
					mu.Lock()
					granted++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		assert.Equal(t, 50, granted)
		assert.Equal(t, 1, most)
	})
}

// An instant from before the wait for one's turn would be older than hits that are
// recorded by then, and others may already have discarded what it had still to count.
func TestOverPlainMethodsTheInstantIsTakenWhenItIsTheCallersTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.count = func(context.Context, time.Time) error { time.Sleep(time.Second); return nil }
		start := time.Now()
		var at []time.Duration
		s.record = func(instant time.Time, _ time.Duration) error {
			at = append(at, instant.Sub(start))
			return nil
		}
		a := cache.AcquirerOf(s)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { assert.True(t, ask(t, a, 3, 1, 0).OK) })
		}
		all.Wait()
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, at)
	})
}

func TestOverPlainMethodsKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.count = func(context.Context, time.Time) error { time.Sleep(time.Second); return nil }
		a := cache.AcquirerOf(s)
		start := time.Now()
		var all sync.WaitGroup
		for i := range 9 {
			all.Go(func() {
				_, err := a.Acquire(t.Context(), strconv.Itoa(i), cache.Request{Limit: 1, Window: time.Second, Weight: 1})
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestOverPlainMethodsTheWaitForAnotherCallerEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.count = func(ctx context.Context, _ time.Time) error { <-ctx.Done(); return context.Cause(ctx) }
		a := cache.AcquirerOf(s)
		held, release := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := a.Used(held, "k", time.Second)
			assert.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()

		reason := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, reason)
		defer cancel()
		start := time.Now()
		_, err := a.Acquire(ctx, "k", cache.Request{Limit: 1, Window: time.Second, Weight: 1})
		assert.ErrorIs(t, err, reason)
		assert.Equal(t, 200*time.Millisecond, time.Since(start))
		assert.ErrorIs(t, a.GiveBack(ctx, "k", cache.Slot{}), reason, "done on arrival")
		release()
		all.Wait()

		s.count = nil
		assert.True(t, ask(t, a, 1, 1, 0).OK, "nothing is held any more")
	})
}

func TestOverPlainMethodsAVanishedOldestHitMeansAWholeWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := cache.AcquirerOf(s)
		require.True(t, ask(t, a, 1, 1, 0).OK)
		time.Sleep(4 * time.Second)
		assert.Equal(t, cache.Grant{Wait: 6 * time.Second}, ask(t, a, 1, 1, 0))
		s.oldest = func(time.Time) bool { return true }
		assert.Equal(t, cache.Grant{Wait: 10 * time.Second}, ask(t, a, 1, 1, 0))

		require.NoError(t, s.hits.RecordHit(t.Context(), "k", time.Now(), time.Minute))
		assert.Equal(t, cache.Grant{Wait: 10 * time.Second}, ask(t, a, 2, 2, 0), "also if more than one has to leave")
	})
}

func TestOverPlainMethodsAWeightIsHitsAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var at []time.Time
		var ttls []time.Duration
		s.record = func(instant time.Time, ttl time.Duration) error {
			at, ttls = append(at, instant), append(ttls, ttl)
			return nil
		}
		a := cache.AcquirerOf(s)
		g := ask(t, a, 5, 3, 0)
		require.Equal(t, []time.Time{time.Now(), time.Now(), time.Now()}, at)
		assert.Equal(t, time.Now().UnixMicro(), g.Slot.At)
		assert.Equal(t, 20*time.Second, ttls[0])

		g = ask(t, a, 5, 3, time.Minute)
		assert.True(t, g.OK)
		assert.Equal(t, 10*time.Second, g.Wait)
		assert.Equal(t, time.Now().Add(10*time.Second).UnixMicro(), at[5].UnixMicro())
		assert.Equal(t, 30*time.Second, ttls[5], "a series outlives its furthest reservation by more than a window")
		used, err := a.Used(t.Context(), "k", 10*time.Second)
		require.NoError(t, err)
		assert.EqualValues(t, 6, used)
	})
}

// A count may discard what is older than it was asked for.
func TestOverPlainMethodsNoCountBeginsWithinTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.count = func(_ context.Context, since time.Time) error {
			assert.Equal(t, time.Now().Add(-10*time.Second+time.Microsecond).UnixMicro(), since.UnixMicro())
			return nil
		}
		a := cache.AcquirerOf(s)
		for i := range 40 {
			g := ask(t, a, 5, 1+int64(i%5), time.Minute)
			if i%3 == 0 {
				require.NoError(t, a.GiveBack(t.Context(), "k", g.Slot))
			}
			time.Sleep(700 * time.Millisecond)
			_, err := a.Used(t.Context(), "k", 10*time.Second)
			require.NoError(t, err)
		}
	})
}

func TestOverPlainMethodsWhatWasGivenBackGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := cache.AcquirerOf(s)
		require.True(t, ask(t, a, 2, 2, 0).OK)
		first, second, third := ask(t, a, 2, 2, time.Hour), ask(t, a, 2, 2, time.Hour), ask(t, a, 2, 1, time.Hour)
		require.Equal(t, 30*time.Second, third.Wait)
		require.NoError(t, a.GiveBack(t.Context(), "k", second.Slot))
		require.NoError(t, a.GiveBack(t.Context(), "k", second.Slot), "again")
		require.NoError(t, a.GiveBack(t.Context(), "k", cache.Slot{At: first.Slot.At, ID: 999}))
		require.NoError(t, a.GiveBack(t.Context(), "other", third.Slot))
		used, err := a.Used(t.Context(), "k", 10*time.Second)
		require.NoError(t, err)
		assert.EqualValues(t, 5, used)

		assert.Equal(t, cache.Grant{Wait: 20 * time.Second}, ask(t, a, 2, 1, time.Second), "it is the next to come free")
		fourth, fifth, sixth := ask(t, a, 2, 1, time.Hour), ask(t, a, 2, 1, time.Hour), ask(t, a, 2, 1, time.Hour)
		assert.Equal(t, 20*time.Second, fourth.Wait, "half of it")
		assert.Equal(t, 20*time.Second, fifth.Wait, "the other half")
		assert.Equal(t, 30*time.Second, sixth.Wait)
		assert.Negative(t, fourth.Slot.Compare(fifth.Slot))

		// What nobody took by its instant is not to be had any more, and counts.
		require.NoError(t, a.GiveBack(t.Context(), "k", first.Slot))
		used, err = a.Used(t.Context(), "k", 10*time.Second)
		require.NoError(t, err)
		assert.EqualValues(t, 2+4, used)
		time.Sleep(10*time.Second + time.Microsecond)
		used, err = a.Used(t.Context(), "k", 10*time.Second)
		require.NoError(t, err)
		assert.EqualValues(t, 2+4, used)
		assert.Equal(t, 30*time.Second-time.Microsecond, ask(t, a, 2, 2, 0).Wait)
		require.NoError(t, a.GiveBack(t.Context(), "k", sixth.Slot))
		assert.Zero(t, ask(t, a, 100, 1, time.Hour).Wait, "nobody waits for one where there is room now")
	})
}

func TestOverPlainMethodsADeletedSeriesTakesWhatWasGivenBackAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := cache.AcquirerOf(s)
		require.True(t, ask(t, a, 2, 2, 0).OK)
		require.NoError(t, a.GiveBack(t.Context(), "k", ask(t, a, 2, 2, time.Hour).Slot))
		require.NoError(t, s.hits.Delete(t.Context(), "k"))
		assert.Zero(t, ask(t, a, 2, 1, time.Hour).Wait)
		assert.Zero(t, ask(t, a, 2, 1, time.Hour).Wait)
		assert.Equal(t, 10*time.Second, ask(t, a, 2, 1, time.Hour).Wait)
		assert.Equal(t, 10*time.Second, ask(t, a, 2, 1, time.Hour).Wait)
		assert.Equal(t, 20*time.Second, ask(t, a, 2, 1, time.Hour).Wait)

		require.NoError(t, a.GiveBack(t.Context(), "k", ask(t, a, 2, 1, time.Hour).Slot))
		require.NoError(t, s.hits.Delete(t.Context(), "k"))
		for range 5 { // as many as were there, by somebody else
			require.NoError(t, s.hits.RecordHit(t.Context(), "k", time.Now(), time.Minute))
		}
		require.NoError(t, s.hits.RecordHit(t.Context(), "k", time.Now().Add(25*time.Second), time.Minute))
		assert.Equal(t, 35*time.Second, ask(t, a, 2, 1, time.Hour).Wait)
	})
}

func TestOverPlainMethodsHitsOfOthersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := cache.AcquirerOf(s), cache.AcquirerOf(s)
		for range 3 {
			require.True(t, ask(t, a, 6, 1, time.Hour).OK)
			time.Sleep(time.Second)
			require.True(t, ask(t, b, 6, 1, time.Hour).OK)
			time.Sleep(time.Second)
		}
		for i := range 6 {
			assert.Equal(t, time.Duration(4+i)*time.Second, ask(t, a, 6, 1, time.Hour).Wait)
		}
		assert.Equal(t, 10*time.Second+4*time.Second, ask(t, b, 6, 1, time.Hour).Wait)
	})
}

func TestOverPlainMethodsHitsThatLeaveTogetherAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := cache.AcquirerOf(s)
		for _, maxWait := range []time.Duration{time.Hour, 0, 0} {
			require.Equal(t, time.Duration(0), ask(t, a, 4, 1, maxWait).Wait)
		}
		time.Sleep(5 * time.Second)
		require.Zero(t, ask(t, a, 4, 1, 0).Wait)
		assert.Equal(t, 5*time.Second, ask(t, a, 4, 3, 0).Wait, "three leave at once")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := cache.AcquirerOf(s)
		require.Zero(t, ask(t, a, 3, 3, 0).Wait)
		require.Equal(t, 10*time.Second, ask(t, a, 3, 2, time.Hour).Wait)
		time.Sleep(time.Second)
		require.NoError(t, s.hits.RecordHit(t.Context(), "k", time.Now(), time.Minute)) // one too many, by somebody else
		assert.Equal(t, 10*time.Second, ask(t, a, 3, 1, 0).Wait, "when that has left, and not the heavy one behind it")
	})
}

func TestOverPlainMethodsErrorsOfTheStoreComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := newStore()
		a := cache.AcquirerOf(s)
		request := cache.Request{Limit: 2, Window: time.Second, Weight: 2, MaxWait: time.Hour}
		s.record = func(time.Time, time.Duration) error { return broken }
		_, err := a.Acquire(t.Context(), "k", request)
		require.ErrorIs(t, err, broken)
		s.record = nil
		s.count = func(context.Context, time.Time) error { return broken }
		_, err = a.Acquire(t.Context(), "k", request)
		require.ErrorIs(t, err, broken)
		_, err = a.Used(t.Context(), "k", time.Second)
		require.ErrorIs(t, err, broken)
		s.count = nil

		var argument *cache.ArgumentError
		_, err = a.Acquire(t.Context(), "k", cache.Request{})
		require.ErrorAs(t, err, &argument)
		_, err = a.Used(t.Context(), "k", 0)
		require.ErrorAs(t, err, &argument)
	})
}

func TestOverPlainMethodsASeriesThatOthersHaveBegunAnewIsNotTakenForOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hits := newStore()
		one, two := cache.AcquirerOf(hits), cache.AcquirerOf(hits)
		for range 3 {
			require.True(t, ask(t, one, 3, 1, time.Minute).OK)
		}
		time.Sleep(9 * time.Second)
		require.NoError(t, hits.hits.Delete(t.Context(), "k"))
		for range 3 {
			require.True(t, ask(t, two, 3, 1, time.Minute).OK)
		}
		assert.Equal(t, 10*time.Second, ask(t, one, 3, 1, time.Minute).Wait)
	})
}
