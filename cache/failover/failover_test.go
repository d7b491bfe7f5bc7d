package failover_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/failover"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

var errRefused = &cache.UnavailableError{Op: "any", Err: errors.New("connection refused")}

// A primary is a memory cache with every capability that can be cut off.
type primary struct {
	*memory.Cache
	asked atomic.Int64
	ahead time.Duration // how much its clock is
	trip  atomic.Pointer[func(context.Context) error]
}

func newPrimary() *primary { return &primary{Cache: memory.New()} }

// fail has each operation do this before, and return its error.
func (p *primary) fail(with func(context.Context) error) { p.trip.Store(&with) }
func (p *primary) heal()                                 { p.trip.Store(nil) }

// TimeLimit says that it may hang, which the cache within cannot.
func (p *primary) TimeLimit() (time.Duration, bool) { return 0, false }

func (p *primary) ask(ctx context.Context) error {
	p.asked.Add(1)
	if trip := p.trip.Load(); trip != nil {
		return (*trip)(ctx)
	}
	return nil
}

func refuse(context.Context) error { return errRefused }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (p *primary) Get(ctx context.Context, key string) (string, bool, error) {
	if err := p.ask(ctx); err != nil {
		return "", false, err
	}
	return p.Cache.Get(ctx, key)
}

func (p *primary) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if err := p.ask(ctx); err != nil {
		return err
	}
	return p.Cache.Set(ctx, key, value, ttl)
}

func (p *primary) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	if err := p.ask(ctx); err != nil {
		return 0, err
	}
	return p.Cache.Increment(ctx, key, ttl)
}

func (p *primary) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	if err := p.ask(ctx); err != nil {
		return err
	}
	return p.Cache.GetMany(ctx, keys, entries)
}

func (p *primary) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	if err := p.ask(ctx); err != nil {
		return false, err
	}
	return p.Cache.CompareAndSwap(ctx, key, old, new, ttl)
}

func (p *primary) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	if err := p.ask(ctx); err != nil {
		return cache.Grant{}, err
	}
	g, err := p.Cache.Acquire(ctx, key, r)
	if g.OK {
		g.Slot.At += p.ahead.Microseconds()
	}
	return g, err
}

func (p *primary) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	if err := p.ask(ctx); err != nil {
		return err
	}
	s.At -= p.ahead.Microseconds()
	return p.Cache.GiveBack(ctx, key, s)
}

func (p *primary) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	if err := p.ask(ctx); err != nil {
		return 0, err
	}
	return p.Cache.Used(ctx, key, window)
}

func (p *primary) Delete(ctx context.Context, key string) error {
	if err := p.ask(ctx); err != nil {
		return err
	}
	return p.Cache.Delete(ctx, key)
}

func (p *primary) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	if err := p.ask(ctx); err != nil {
		return err
	}
	return p.Cache.RecordHit(ctx, key, at, ttl)
}

func (p *primary) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	if err := p.ask(ctx); err != nil {
		return 0, err
	}
	return p.Cache.CountHits(ctx, key, since)
}

func (p *primary) OldestHit(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
	if err := p.ask(ctx); err != nil {
		return time.Time{}, false, err
	}
	return p.Cache.OldestHit(ctx, key, since)
}

func mustNew(t *testing.T, primary, local cache.Cache, cfg failover.Config) cache.Cache {
	t.Helper()
	c, err := failover.New(primary, local, cfg)
	require.NoError(t, err)
	return c
}

func TestItKeepsTheRulesOfACacheOnEitherSide(t *testing.T) {
	t.Parallel()
	for name, trip := range map[string]func(*primary){
		"primary": (*primary).heal,
		"local":   func(p *primary) { p.fail(refuse) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compliancetest.Cache(compliancetest.Harness[cache.Cache]{
				New: func() (cache.Cache, error) {
					p := newPrimary()
					trip(p)
					return failover.New(p, memory.New(), failover.Config{})
				},
				Bubble: true,
			}).Run(t)
		})
	}
}

func TestItGoesOnLocallyAndReturnsAfterTheCoolDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		p, local := newPrimary(), memory.New()
		var left []error
		var returned []time.Duration
		c := mustNew(t, p, local, failover.Config{
			CoolDown: 10 * time.Second,
			OnLeave:  func(_ context.Context, reason error) { left = append(left, reason) },
			OnReturn: func(_ context.Context, away time.Duration) { returned = append(returned, away) },
		})
		set := func(value string) {
			t.Helper()
			require.NoError(t, c.Set(ctx, "k", value, 0))
		}
		value := func(from cache.KeyValue) string {
			v, _, err := from.Get(ctx, "k")
			require.NoError(t, err)
			return v
		}

		set("shared")
		assert.Equal(t, "shared", value(p.Cache))
		assert.Empty(t, left)

		p.fail(refuse)
		set("alone") // the operation that meets the failure is done locally too
		assert.Equal(t, "alone", value(local))
		assert.Equal(t, "alone", value(c))
		assert.Equal(t, []error{errRefused}, left)

		before := p.asked.Load()
		time.Sleep(10*time.Second - 1)
		set("still alone")
		assert.Equal(t, before, p.asked.Load(), "left alone during the cool-down")

		time.Sleep(time.Nanosecond)
		set("one question")
		set("no other")
		assert.Equal(t, before+1, p.asked.Load(), "one caller asks, and then another cool-down passes")
		assert.Equal(t, "no other", value(local))

		p.heal()
		time.Sleep(10 * time.Second)
		set("back")
		assert.Equal(t, "back", value(p.Cache))
		assert.Equal(t, "no other", value(local))
		assert.Equal(t, []time.Duration{20 * time.Second}, returned)
		assert.Len(t, left, 1)
	})
}

func TestOneCallerAsksAndNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		c := mustNew(t, p, memory.New(), failover.Config{CoolDown: time.Second})
		p.fail(refuse)
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		time.Sleep(time.Second)

		p.fail(func(context.Context) error { time.Sleep(250 * time.Millisecond); return errRefused })
		before, start := p.asked.Load(), time.Now()
		var atOnce atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, _, err := c.Get(t.Context(), "k")
				assert.NoError(t, err)
				if time.Since(start) == 0 {
					atOnce.Add(1)
				}
			})
		}
		wg.Wait()
		assert.Equal(t, before+1, p.asked.Load())
		assert.EqualValues(t, 99, atOnce.Load())
		assert.Equal(t, 250*time.Millisecond, time.Since(start))
	})
}

func TestAFailureOfBeforeDoesNotProlongTheCoolDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		c := mustNew(t, p, memory.New(), failover.Config{CoolDown: time.Second})
		p.fail(func(context.Context) error { time.Sleep(900 * time.Millisecond); return errRefused })
		slow := make(chan error)
		go func() { slow <- c.Set(t.Context(), "k", "", 0) }()
		synctest.Wait()
		p.fail(refuse)
		require.NoError(t, c.Set(t.Context(), "k", "", 0)) // leaves, now
		require.NoError(t, <-slow)                         // fails 900 ms later
		p.heal()
		time.Sleep(100 * time.Millisecond)
		before := p.asked.Load()
		_, _, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Equal(t, before+1, p.asked.Load())
	})
}

func TestWhatFailsAfterAnAbsenceThatItBeganBeforeIsNoReasonToLeaveAgain(t *testing.T) {
	t.Parallel()
	for name, deadline := range map[string]time.Duration{"by itself": time.Hour, "at its caller's deadline": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPrimary()
				left := 0
				c := mustNew(t, p, memory.New(), failover.Config{
					CoolDown: time.Second,
					OnLeave:  func(context.Context, error) { left++ },
				})
				p.fail(func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-time.After(6 * time.Second):
						return errRefused
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				var slow sync.WaitGroup
				for range 3 {
					slow.Go(func() { _ = c.Set(ctx, "k", "", 0) })
				}
				synctest.Wait()
				p.fail(refuse)
				require.NoError(t, c.Set(t.Context(), "k", "", 0)) // leaves
				p.heal()
				time.Sleep(time.Second)
				require.NoError(t, c.Set(t.Context(), "k", "", 0)) // returns
				slow.Wait()
				assert.Equal(t, 1, left)
				before := p.asked.Load()
				require.NoError(t, c.Set(t.Context(), "k", "", 0))
				assert.Equal(t, before+1, p.asked.Load())
			})
		})
	}
}

func TestAnAnswerOfBeforeDoesNotBringAnybodyBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, local := newPrimary(), memory.New()
		c := mustNew(t, p, local, failover.Config{CoolDown: time.Minute})
		p.fail(func(context.Context) error { time.Sleep(time.Second); return nil })
		slow := make(chan error)
		go func() { slow <- c.Set(t.Context(), "k", "", 0) }()
		synctest.Wait()
		p.fail(refuse)
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		require.NoError(t, <-slow)
		before := p.asked.Load()
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		assert.Equal(t, before, p.asked.Load())
	})
}

func TestAnAnswerIsNoFailureHoweverUnwelcome(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"corrupt":     &cache.CorruptError{Op: "get", Key: "k", Err: errors.New("garbage")},
		"argument":    &cache.ArgumentError{Op: "get", Field: "ttl", Value: -1, Want: "zero or more"},
		"not integer": cache.ErrNotInteger,
		"overflow":    cache.ErrOverflow,
		"closed":      cache.ErrClosed,
	} {
		p := newPrimary()
		c := mustNew(t, p, memory.New(), failover.Config{OnLeave: func(context.Context, error) { t.Error(name) }})
		p.fail(func(context.Context) error { return answer })
		_, _, err := c.Get(t.Context(), "k")
		assert.ErrorIs(t, err, answer, name)
		assert.EqualValues(t, 1, p.asked.Load())
	}
}

func TestACallerWhoLeavesTellsNothingOfThePrimary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		var left int
		c := mustNew(t, p, memory.New(), failover.Config{
			CoolDown: time.Second, OnLeave: func(context.Context, error) { left++ },
		})
		gone := errors.New("gone")
		p.fail(hang)
		cancelled := func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(gone) })
			_, _, err := c.Get(ctx, "k")
			assert.ErrorIs(t, err, gone)
		}
		for range 10 {
			cancelled()
		}
		assert.Zero(t, left)

		// Nor does one who was to find out whether it is back: the next one asks.
		p.fail(refuse)
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		time.Sleep(time.Second)
		p.fail(hang)
		cancelled()
		p.heal()
		before := p.asked.Load()
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		assert.Equal(t, before+1, p.asked.Load())
	})
}

// A connection that minds the deadline may fail with an error of its own a moment before
// the context is done.
func TestADeadlineThatTheContextHasYetToNoticeIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		s := mustNew(t, p, memory.New(), failover.Config{OnLeave: func(context.Context, error) { t.Error("left") }})
		p.fail(func(context.Context) error { return errRefused })
		_, _, err := s.Get(late{t.Context(), time.Now()}, "a")
		require.ErrorIs(t, err, errRefused)
	})
}

// late is a context whose deadline has passed, and whose timer has not.
type late struct {
	context.Context
	deadline time.Time
}

func (c late) Deadline() (time.Time, bool) { return c.deadline, true }

func TestAPrimaryThatHangsIsLeftAfterThreeDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		c := mustNew(t, p, memory.New(), failover.Config{CoolDown: time.Minute})
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _, err := c.Get(ctx, "k")
			return err
		}
		p.fail(hang)
		require.ErrorIs(t, get(), context.DeadlineExceeded)
		require.ErrorIs(t, get(), context.DeadlineExceeded)
		p.heal()
		require.NoError(t, get(), "an answer in between")
		p.fail(hang)
		for range 3 {
			require.ErrorIs(t, get(), context.DeadlineExceeded)
		}
		start := time.Now()
		require.NoError(t, get())
		assert.Zero(t, time.Since(start), "nobody waits any more")

		time.Sleep(time.Minute)
		require.ErrorIs(t, get(), context.DeadlineExceeded, "the one who asks")
		require.NoError(t, get())
	})
}

func TestAContextThatIsDoneChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPrimary()
	c := mustNew(t, p, memory.New(), failover.Config{})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	assert.ErrorIs(t, c.Set(ctx, "k", "", 0), gone)
	assert.Zero(t, p.asked.Load())
}

func TestAPanicOfThePrimaryKeepsNobodyFromAsking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		c := mustNew(t, p, memory.New(), failover.Config{CoolDown: time.Second})
		p.fail(refuse)
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		time.Sleep(time.Second)
		p.fail(func(context.Context) error { panic("broken") })
		assert.Panics(t, func() { _ = c.Set(t.Context(), "k", "", 0) })
		p.heal()
		before := p.asked.Load()
		require.NoError(t, c.Set(t.Context(), "k", "", 0))
		assert.Equal(t, before+1, p.asked.Load())
	})
}

func TestASlotGoesBackToTheCacheItIsFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		p, local := newPrimary(), memory.New()
		c := mustNew(t, p, local, failover.Config{CoolDown: time.Second})
		a := c.(cache.Acquirer)
		one := cache.Request{Limit: 1, Window: time.Hour, Weight: 1}
		acquire := func() cache.Slot {
			t.Helper()
			g, err := a.Acquire(ctx, "k", one)
			require.NoError(t, err)
			require.True(t, g.OK)
			return g.Slot
		}
		used := func(of cache.Acquirer) int64 {
			n, err := of.Used(ctx, "k", time.Hour)
			require.NoError(t, err)
			return n
		}

		shared := acquire()
		p.fail(refuse)
		alone := acquire()
		assert.NotEqual(t, shared.Clock, alone.Clock, "slots of different clocks are not compared")
		require.NoError(t, a.GiveBack(ctx, "k", shared))
		assert.EqualValues(t, 1, used(local))
		assert.EqualValues(t, 1, used(p.Cache), "out of reach, so it goes unused")

		p.heal()
		time.Sleep(time.Second)
		require.NoError(t, a.GiveBack(ctx, "k", shared))
		assert.Zero(t, used(p.Cache))
		assert.EqualValues(t, 1, used(local))
		require.NoError(t, a.GiveBack(ctx, "k", alone))
		assert.Zero(t, used(local))
	})
}

func TestSlotsOfStoresInStoresAreToldApart(t *testing.T) {
	t.Parallel()
	first, second, third := newPrimary(), newPrimary(), memory.New()
	inner := mustNew(t, first, second, failover.Config{})
	c := mustNew(t, inner, third, failover.Config{}).(cache.Acquirer)
	one := cache.Request{Limit: 1, Window: time.Hour, Weight: 1}
	var slots []cache.Slot
	for _, cut := range []*primary{nil, first, second} {
		if cut != nil {
			cut.fail(refuse)
		}
		g, err := c.Acquire(t.Context(), "k", one)
		require.NoError(t, err)
		require.True(t, g.OK)
		slots = append(slots, g.Slot)
	}
	assert.Equal(t, []uint32{0, 2, 1}, []uint32{slots[0].Clock, slots[1].Clock, slots[2].Clock})
	require.NoError(t, c.GiveBack(t.Context(), "k", slots[2]))
	n, err := third.Used(t.Context(), "k", time.Hour)
	require.NoError(t, err)
	assert.Zero(t, n)
}

// Only the methods of the port: no capability.
type plain struct{ cache.Cache }

type withSwap struct {
	cache.Cache
	cache.CompareAndSwapper
}
type withMany struct {
	cache.Cache
	cache.MultiGetter
}
type withAcquire struct {
	cache.Cache
	cache.Acquirer
}

func TestItHasTheCapabilitiesThatBothHave(t *testing.T) {
	t.Parallel()
	m := memory.New()
	type set struct{ acquire, swap, many bool }
	of := func(c cache.Cache) set {
		_, a := c.(cache.Acquirer)
		_, s := c.(cache.CompareAndSwapper)
		_, g := c.(cache.MultiGetter)
		return set{a, s, g}
	}
	has := []cache.Cache{
		m, plain{m}, withSwap{m, m}, withMany{m, m}, withAcquire{m, m},
		struct {
			withSwap
			cache.MultiGetter
		}{withSwap{m, m}, m},
		struct {
			withSwap
			cache.Acquirer
		}{withSwap{m, m}, m},
		struct {
			withMany
			cache.Acquirer
		}{withMany{m, m}, m},
	}
	for _, a := range has {
		for _, b := range has {
			x, y := of(a), of(b)
			want := set{x.acquire && y.acquire, x.swap && y.swap, x.many && y.many}
			assert.Equal(t, want, of(mustNew(t, a, b, failover.Config{})), "%T, %T", a, b)
		}
	}
}

// timed is a cache that says how long it keeps its callers waiting at most.
type timed struct {
	cache.Cache
	longest time.Duration
	ok      bool
}

func (c timed) TimeLimit() (time.Duration, bool) { return c.longest, c.ok }

func TestItsTimeLimitIsThatOfBothIfBothHaveOne(t *testing.T) {
	t.Parallel()
	m := memory.New()
	none, most := timed{Cache: m}, timed{m, math.MaxInt64 - 1, true}
	for _, test := range []struct {
		primary, local cache.Cache
		longest        time.Duration
		ok             bool
	}{
		{m, m, 0, true},
		{timed{m, time.Second, true}, m, time.Second, true},
		{timed{m, time.Second, true}, timed{m, 10 * time.Millisecond, true}, 1010 * time.Millisecond, true},
		{timed{m, time.Second, true}, none, 0, false},
		{none, timed{m, time.Second, true}, 0, false},
		{plain{m}, m, 0, false},
		{timed{m, time.Second, true}, plain{m}, 0, false},
		{most, timed{m, 1, true}, math.MaxInt64, true},
		{most, timed{m, 2, true}, math.MaxInt64, true},
		{most, most, math.MaxInt64, true},
	} {
		longest, ok := cache.TimeLimit(mustNew(t, test.primary, test.local, failover.Config{}))
		assert.Equal(t, test.longest, longest)
		assert.Equal(t, test.ok, ok)
	}
}

func TestBadInputIsNamed(t *testing.T) {
	t.Parallel()
	m := memory.New()
	for want, try := range map[string]func() (cache.Cache, error){
		"primary is nil":    func() (cache.Cache, error) { return failover.New(nil, m, failover.Config{}) },
		"local is nil":      func() (cache.Cache, error) { return failover.New(m, nil, failover.Config{}) },
		"primary is nil,":   func() (cache.Cache, error) { return failover.New((*memory.Cache)(nil), m, failover.Config{}) },
		"CoolDown is -1ns,": func() (cache.Cache, error) { return failover.New(m, m, failover.Config{CoolDown: -1}) },
	} {
		_, err := try()
		assert.ErrorContains(t, err, "failover: "+want)
	}
	_, err := failover.New(m, m, failover.Config{CoolDown: math.MaxInt64})
	assert.NoError(t, err)
}

func TestLimiterAndBreakerGoOnByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		p := newPrimary()
		defer p.Close()
		local := memory.New()
		defer local.Close()
		store := mustNew(t, p, local, failover.Config{})
		limiter, err := ratelimit.New(10, time.Second, ratelimit.Config{Cache: store})
		require.NoError(t, err)
		circuit, err := breaker.New(breaker.Config{Cache: store})
		require.NoError(t, err)

		admitted := func() (n int) {
			for range 100 {
				if limiter.Acquire(ctx, "k") == nil {
					n++
				}
			}
			return n
		}
		assert.Equal(t, 10, admitted())
		p.fail(refuse)
		assert.Equal(t, 10, admitted(), "a limit of this process alone")

		down := errors.New("down")
		runs := 0
		for range 100 {
			err := circuit.Do(ctx, func(context.Context) error { runs++; return down })
			assert.True(t, errors.Is(err, down) || errors.Is(err, resilience.ErrRejected))
		}
		assert.Equal(t, 5, runs, "a circuit of this process alone")

		p.heal()
		time.Sleep(time.Second)
		assert.Equal(t, 10, admitted())
		state, err := circuit.State(ctx)
		require.NoError(t, err)
		assert.Equal(t, breaker.Closed, state, "shared state, within one operation")
	})
}

// Waiters of before and of during an absence are in one queue of the limiter, but
// their slots are of two clocks.
func TestWaitersOfBothSidesAreServedAtTheirSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrimary()
		p.ahead = time.Hour
		store := mustNew(t, p, memory.New(), failover.Config{CoolDown: time.Hour})
		limiter, err := ratelimit.New(1, 10*time.Second, ratelimit.Config{Cache: store, MaxWait: time.Hour})
		require.NoError(t, err)
		start := time.Now()
		var mu sync.Mutex
		var served []time.Duration
		var wg sync.WaitGroup
		wait := func(n int) {
			for range n {
				wg.Go(func() {
					assert.NoError(t, limiter.Acquire(t.Context(), "k"))
					mu.Lock()
					defer mu.Unlock()
					served = append(served, time.Since(start))
				})
				synctest.Wait()
			}
		}
		wait(4) // at 0, 10, 20 and 30 s of the primary
		time.Sleep(5 * time.Second)
		p.fail(refuse)
		wait(3) // at 5, 15 and 25 s, alone
		wg.Wait()
		seconds := func(n ...time.Duration) (d []time.Duration) {
			for _, s := range n {
				d = append(d, s*time.Second)
			}
			return d
		}
		assert.Equal(t, seconds(0, 5, 10, 15, 20, 25, 30), served)
	})
}
