package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
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

// watched counts what is asked of a cache, and can be made slow.
type watched struct {
	*memory.Cache
	acquires, gifts atomic.Int64
	after           func(ctx context.Context, call int64) // what happens before the answer of Acquire arrives
	giving          func(ctx context.Context)             // and before GiveBack begins
}

func (w *watched) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	call := w.acquires.Add(1)
	g, err := w.Cache.Acquire(ctx, key, r)
	if w.after != nil {
		w.after(ctx, call)
	}
	return g, err
}

func (w *watched) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	w.gifts.Add(1)
	if w.giving != nil {
		w.giving(ctx)
	}
	return w.Cache.GiveBack(ctx, key, s)
}

// A crowd is callers who arrive at one key one after the other, and what became of
// each.
type crowd struct {
	l     *ratelimit.Limiter
	start time.Time
	all   sync.WaitGroup
	stop  []context.CancelFunc

	mu     sync.Mutex
	order  []int // in which they were admitted
	times  map[int]time.Duration
	errors map[int]error
}

func gather(l *ratelimit.Limiter) *crowd {
	return &crowd{l: l, start: time.Now(), times: map[int]time.Duration{}, errors: map[int]error{}}
}

// arrive adds a caller, and returns once it waits or is through.
func (c *crowd) arrive(ctx context.Context, cost int) {
	ctx, stop := context.WithCancel(ctx)
	i := len(c.stop)
	c.stop = append(c.stop, stop)
	c.all.Go(func() {
		err := c.l.AcquireN(ctx, "k", cost)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.times[i] = time.Since(c.start)
		if c.errors[i] = err; err == nil {
			c.order = append(c.order, i)
		}
	})
	synctest.Wait()
}

func (c *crowd) wait() {
	c.all.Wait()
	for _, stop := range c.stop {
		stop()
	}
}

func TestAThousandWaitersAreServedInOrderOfArrivalWithOneAcquireEach(t *testing.T) {
	t.Run("atomic", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &watched{Cache: memory.New()}
			queueUp(t, w)
			assert.EqualValues(t, 1000, w.acquires.Load())
			assert.Zero(t, w.gifts.Load())
		})
	})
	t.Run("plain methods", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { queueUp(t, plain{memory.New()}) })
	})
}

func queueUp(t *testing.T, c cache.Cache) {
	l := limiter(t, 10, time.Second, ratelimit.Config{Cache: c, MaxWait: time.Hour})
	crowd := gather(l)
	for range 1000 {
		crowd.arrive(t.Context(), 1)
	}
	crowd.wait()
	for i := range 1000 {
		require.NoError(t, crowd.errors[i])
		require.Equal(t, time.Duration(i/10)*time.Second, crowd.times[i], "caller %d", i)
	}
	// Those of one instant may overtake each other on the way out.
	for batch := range slices.Chunk(crowd.order, 10) {
		slices.Sort(batch)
	}
	assert.True(t, slices.IsSorted(crowd.order))
}

func TestWhenHalfOfTheWaitersCancelTheOthersMoveUpAndNoSlotGoesUnused(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 10, time.Second, ratelimit.Config{Cache: c, MaxWait: time.Hour})
		crowd := gather(l)
		for range 1010 { // ten are admitted
			crowd.arrive(t.Context(), 1)
		}
		time.Sleep(500 * time.Millisecond)
		left := map[int]bool{}
		for _, i := range rand.Perm(1000)[:500] {
			left[10+i] = true
			crowd.stop[10+i]()
		}
		synctest.Wait()
		for range 100 { // newcomers find the slots that were given back
			crowd.arrive(t.Context(), 1)
		}
		crowd.wait()
		place := 0
		for i := range 1110 {
			if left[i] {
				require.ErrorIs(t, crowd.errors[i], context.Canceled)
				require.Equal(t, 500*time.Millisecond, crowd.times[i], "who cancels goes at once")
				continue
			}
			require.NoError(t, crowd.errors[i])
			require.Equal(t, time.Duration(place/10)*time.Second, crowd.times[i], "caller %d, the %dth to stay", i, place)
			place++
		}
	})
}

func TestWaitersWhoGiveUpLeaveNothingBehind(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 2, 10*time.Second, ratelimit.Config{Cache: c, MaxWait: time.Hour})
		require.Equal(t, 2, admitted(l, "k", 2))
		crowd := gather(l)
		for range 50 {
			crowd.arrive(t.Context(), 1)
		}
		time.Sleep(time.Second)
		for _, stop := range crowd.stop {
			stop()
		}
		crowd.wait()
		for i := range 50 {
			require.ErrorIs(t, crowd.errors[i], context.Canceled)
			require.Equal(t, time.Second, crowd.times[i])
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wait, _ := resilience.RetryAfter(l.Acquire(short, "k"))
		assert.Equal(t, 9*time.Second, wait, "no slot is taken any more")
		time.Sleep(9 * time.Second)
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), "k"))
		require.NoError(t, l.Acquire(t.Context(), "k"))
		assert.Equal(t, start, time.Now(), "two fresh calls are admitted at once")
	})
}

func TestAContextThatIsDoneTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		l := limiter(t, 2, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute, WhenUnavailable: ratelimit.Admit})
		reason := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		for range 100 {
			err := l.Acquire(ctx, "k")
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, reason)
			require.NotErrorIs(t, err, resilience.ErrRejected)
		}
		_, err := l.Remaining(ctx, "k")
		require.ErrorIs(t, err, reason)
		require.ErrorIs(t, l.Reset(ctx, "k"), reason)
		late, cancelLate := context.WithTimeout(t.Context(), 0)
		defer cancelLate()
		require.ErrorIs(t, l.Acquire(late, "k"), context.DeadlineExceeded)

		require.Zero(t, w.acquires.Load(), "the cache was not asked")
		require.Equal(t, 2, admitted(l, "k", 2))
	})
}

func TestAWaitThatTheDeadlineCannotCoverIsRefusedAtOnceAndReservesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: c, MaxWait: time.Minute})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		start := time.Now()
		for _, patience := range []time.Duration{time.Nanosecond, time.Second, 10*time.Second - 1, 10 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := l.Acquire(ctx, "k")
			cancel()
			var exceeded *ratelimit.ExceededError
			require.ErrorAs(t, err, &exceeded, "%v", patience)
			require.Equal(t, 10*time.Second, exceeded.RetryAfter(), "nobody has reserved anything")
		}
		require.Equal(t, start, time.Now())

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Microsecond)
		defer cancel()
		require.NoError(t, l.Acquire(ctx, "k"), "a deadline just behind the slot is enough")
		require.Equal(t, 10*time.Second, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, l.Acquire(ctx, "k"), resilience.ErrRejected)
		assert.Zero(t, w.gifts.Load(), "what was not taken need not be given back")
	})
}

func TestAWaitBeyondMaxWaitIsRefusedAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: c, MaxWait: 20 * time.Second})
		crowd := gather(l)
		for range 4 {
			crowd.arrive(t.Context(), 1)
		}
		crowd.mu.Lock()
		assert.Zero(t, crowd.times[3], "the fourth would wait for half a minute")
		wait, _ := resilience.RetryAfter(crowd.errors[3])
		assert.Equal(t, 30*time.Second, wait)
		distant, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.ErrorIs(t, l.Acquire(distant, "k"), resilience.ErrRejected, "a distant deadline allows no more")
		crowd.mu.Unlock()
		crowd.wait()
		assert.Equal(t, []int{0, 1, 2}, crowd.order)
		assert.Equal(t, 20*time.Second, crowd.times[2])
	})
}

func TestAnAnswerThatComesTooLateForTheDeadlineIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		w.after = func(_ context.Context, call int64) {
			if call == 2 {
				time.Sleep(2 * time.Second) // a slow network
			}
		}
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		crowd := gather(l)
		crowd.arrive(t.Context(), 1)
		crowd.arrive(ctx, 1)
		crowd.arrive(t.Context(), 1) // it gets the slot behind
		crowd.wait()
		assert.ErrorIs(t, crowd.errors[1], resilience.ErrRejected)
		// The slot's true instant is 10 s, but all that is known is that it is no later than 12.
		assert.Equal(t, map[int]time.Duration{0: 0, 1: 2 * time.Second, 2: 12 * time.Second}, crowd.times)
		require.NoError(t, l.Acquire(t.Context(), "k"))
		require.Equal(t, 20*time.Second, time.Since(crowd.start), "the other slot was given back")
	})
}

func TestOneLateAnswerDoesNotHoldUpThoseBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		w.after = func(_ context.Context, call int64) {
			if call == 2 {
				time.Sleep(5 * time.Second)
			}
		}
		l := limiter(t, 1, time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute})
		crowd := gather(l)
		for range 9 {
			crowd.arrive(t.Context(), 1)
		}
		crowd.wait()
		for i := 2; i < 9; i++ {
			require.Equal(t, time.Duration(i)*time.Second, crowd.times[i], "caller %d", i)
		}
		require.GreaterOrEqual(t, crowd.times[1], 5*time.Second)
		require.LessOrEqual(t, crowd.times[1], 6*time.Second)
	})
}

func TestAWaiterWithALateAnswerIsServedNoLaterThanTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		w.after = func(_ context.Context, call int64) {
			if call == 3 {
				time.Sleep(500 * time.Millisecond)
			}
		}
		l := limiter(t, 2, time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute})
		crowd := gather(l)
		for range 3 {
			crowd.arrive(t.Context(), 1)
		}
		time.Sleep(600 * time.Millisecond)
		crowd.arrive(t.Context(), 1) // it shows that the slots are due at one second
		crowd.wait()
		assert.Equal(t, map[int]time.Duration{0: 0, 1: 0, 2: time.Second, 3: time.Second}, crowd.times)
	})
}

// scripted gives the grants that it was told to, and notes what it is given back.
type scripted struct {
	*memory.Cache
	grants []cache.Grant
	back   []cache.Slot
}

func (s *scripted) Acquire(context.Context, string, cache.Request) (cache.Grant, error) {
	g := s.grants[0]
	s.grants = s.grants[1:]
	return g, nil
}

func (s *scripted) GiveBack(_ context.Context, _ string, slot cache.Slot) error {
	s.back = append(s.back, slot)
	return nil
}

func TestSlotsOfTwoClocksAreNotExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Cache: memory.New(), grants: []cache.Grant{
			{OK: true, Wait: 3 * time.Second, Slot: cache.Slot{At: 9, Clock: 1}},
			{OK: true, Wait: 9 * time.Second, Slot: cache.Slot{At: 2, Clock: 2}},
			{OK: true, Wait: 5 * time.Second, Slot: cache.Slot{At: 10, Clock: 1}},
			{OK: true, Wait: 10 * time.Second, Slot: cache.Slot{At: 3, Clock: 2}},
		}}
		crowd := gather(limiter(t, 1, time.Second, ratelimit.Config{Cache: s, MaxWait: time.Minute}))
		for range 4 {
			crowd.arrive(t.Context(), 1)
		}
		crowd.stop[0]()
		crowd.wait()
		assert.Equal(t, []cache.Slot{{At: 10, Clock: 1}}, s.back)
		second := func(s int) time.Duration { return time.Duration(s) * time.Second }
		assert.Equal(t, map[int]time.Duration{0: 0, 1: second(9), 2: second(3), 3: second(10)}, crowd.times)
	})
}

func TestWaitersOfOtherCostsKeepTheirSlots(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 10, time.Second, ratelimit.Config{Cache: c, MaxWait: time.Minute})
		crowd := gather(l)
		for _, cost := range []int{10, 10, 1, 1, 9, 8} { // at 0, 1, 2, 2, 3, 4
			crowd.arrive(t.Context(), cost)
		}
		crowd.stop[2]()
		synctest.Wait()
		crowd.wait()
		second := func(s int) time.Duration { return time.Duration(s) * time.Second }
		assert.Equal(t, map[int]time.Duration{
			0: 0, 1: second(1), 2: 0, 3: second(2), 4: second(3), 5: second(4),
		}, crowd.times)
		assert.Equal(t, []int{0, 1, 3, 4, 5}, crowd.order, "a light one does not overtake a heavy one")
	})
}

func TestTheSlotsOfTwoProcessesAreInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		cfg := ratelimit.Config{Cache: shared, MaxWait: time.Hour}
		a, b := gather(limiter(t, 1, time.Second, cfg)), gather(limiter(t, 1, time.Second, cfg))
		for range 50 {
			a.arrive(t.Context(), 1)
			b.arrive(t.Context(), 1)
		}
		a.wait()
		b.wait()
		for i := range 50 {
			require.Equal(t, time.Duration(2*i)*time.Second, a.times[i])
			require.Equal(t, time.Duration(2*i+1)*time.Second, b.times[i])
		}
	})
}

func TestClosingEndsAllWaitsAndGivesTheirSlotsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		l, err := ratelimit.New(2, 10*time.Second, ratelimit.Config{Cache: shared, MaxWait: time.Hour})
		require.NoError(t, err)
		crowd := gather(l)
		for range 52 {
			crowd.arrive(t.Context(), 1)
		}
		require.NoError(t, l.Close())
		crowd.wait()
		for i := 2; i < 52; i++ {
			require.ErrorIs(t, crowd.errors[i], cache.ErrClosed)
			require.ErrorIs(t, crowd.errors[i], resilience.ErrRejected)
			require.Zero(t, crowd.times[i])
		}
		other := limiter(t, 2, 10*time.Second, ratelimit.Config{Cache: shared})
		wait, _ := resilience.RetryAfter(other.Acquire(t.Context(), "k"))
		require.Equal(t, 10*time.Second, wait, "nothing is reserved any more")
	})
}

func TestWhoArrivesWhileTheLimiterClosesDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		l, err := ratelimit.New(1, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Hour})
		require.NoError(t, err)
		require.NoError(t, l.Acquire(t.Context(), "k"))
		w.after = func(context.Context, int64) { require.NoError(t, l.Close()) }
		start := time.Now()
		require.ErrorIs(t, l.Acquire(t.Context(), "k"), cache.ErrClosed)
		require.Equal(t, start, time.Now())
		require.EqualValues(t, 1, w.gifts.Load())
	})
}

func TestACacheThatHangsHoldsWhoeverGivesUpForASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New(), giving: func(ctx context.Context) { <-ctx.Done() }}
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Hour})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		require.ErrorIs(t, l.Acquire(ctx, "k"), context.Canceled)
		assert.LessOrEqual(t, time.Since(start), 4*time.Second)
	})
}

func TestAHookThatPanicsLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := true
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{MaxWait: time.Hour, OnWait: func(context.Context, ratelimit.Wait) {
			if bad {
				panic("bad hook")
			}
		}})
		require.NoError(t, l.Acquire(t.Context(), "k"))
		require.PanicsWithValue(t, "bad hook", func() { _ = l.Acquire(t.Context(), "k") })
		bad = false
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), "k"))
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

func TestAHundredThousandWaitersAllLeaveOrAreServed(t *testing.T) {
	callers := 100_000
	if raceEnabled {
		callers /= 10
	}
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, 1000, time.Second, ratelimit.Config{MaxWait: 24 * time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var served, gone atomic.Int64
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				mine := t.Context()
				if i%2 == 1 {
					mine = ctx
				}
				if err := l.Acquire(mine, "k"); err == nil {
					served.Add(1)
				} else if assert.ErrorIs(t, err, context.Canceled) {
					gone.Add(1)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		cancel()
		all.Wait()
		assert.EqualValues(t, callers, served.Load()+gone.Load())
		assert.LessOrEqual(t, gone.Load(), int64(callers/2))
		batches := (served.Load() + 999) / 1000
		assert.Equal(t, time.Duration(batches-1)*time.Second, time.Since(start), "no slot went unused")
	})
}
