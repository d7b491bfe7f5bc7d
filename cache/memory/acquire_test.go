package memory_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func acquire(t *testing.T, c *memory.Cache, r cache.Request) cache.Grant {
	t.Helper()
	g, err := c.Acquire(t.Context(), "k", r)
	require.NoError(t, err)
	return g
}

func used(t *testing.T, c *memory.Cache, window time.Duration) int64 {
	t.Helper()
	n, err := c.Used(t.Context(), "k", window)
	require.NoError(t, err)
	return n
}

// per returns a request for one of limit slots of a window.
func per(limit int64, window time.Duration) cache.Request {
	return cache.Request{Limit: limit, Window: window, Weight: 1}
}

func waiting(r cache.Request, most time.Duration) cache.Request {
	r.MaxWait = most
	return r
}

func weighing(r cache.Request, weight int64) cache.Request {
	r.Weight = weight
	return r
}

func TestHitsOfOneClockTickAreAllCounted(t *testing.T) {
	for _, goroutines := range []int{1, 50} {
		synctest.Test(t, func(t *testing.T) { // where no time passes by itself
			c := fresh(t)
			for range 3 {
				var mu sync.Mutex
				var wg sync.WaitGroup
				slots := map[cache.Slot]bool{}
				for range goroutines {
					wg.Go(func() {
						for range 1000 / goroutines {
							g, err := c.Acquire(t.Context(), "k", per(10, time.Second))
							assert.NoError(t, err)
							if g.OK {
								mu.Lock()
								slots[g.Slot] = true
								mu.Unlock()
							} else {
								assert.Equal(t, time.Second, g.Wait)
							}
						}
					})
				}
				wg.Wait()
				assert.Len(t, slots, 10, "each slot has a name of its own")
				assert.EqualValues(t, 10, used(t, c, time.Second))
				time.Sleep(time.Second)
			}
		})
	}
}

func TestAHitLeavesTheWindowAfterExactlyOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := per(1, time.Second)
		assert.True(t, acquire(t, c, ask).OK)
		time.Sleep(time.Second - time.Microsecond)
		assert.EqualValues(t, 1, used(t, c, time.Second))
		assert.Equal(t, cache.Grant{Wait: time.Microsecond}, acquire(t, c, ask))
		time.Sleep(time.Microsecond)
		assert.EqualValues(t, 0, used(t, c, time.Second))
		assert.True(t, acquire(t, c, ask).OK)
	})
}

func TestWhoSleepsTheWaitOfARefusalIsAdmittedAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := per(3, 10*time.Millisecond)
		for i := range 200 { // at instants with every kind of fraction of a microsecond
			for {
				g := acquire(t, c, ask)
				if g.OK {
					break
				}
				time.Sleep(g.Wait - time.Microsecond)
				require.False(t, acquire(t, c, ask).OK)
				time.Sleep(time.Microsecond)
				require.True(t, acquire(t, c, ask).OK)
			}
			time.Sleep(time.Duration(i*997) * time.Nanosecond)
		}
	})
}

func TestAWindowIsRoundedUpToWholeMicroseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := per(1, time.Microsecond+1)
		assert.True(t, acquire(t, c, ask).OK)
		assert.Equal(t, cache.Grant{Wait: 2 * time.Microsecond}, acquire(t, c, ask))
		time.Sleep(time.Microsecond)
		assert.EqualValues(t, 1, used(t, c, time.Microsecond+1))
		assert.EqualValues(t, 0, used(t, c, time.Microsecond))
		assert.False(t, acquire(t, c, ask).OK)
		time.Sleep(time.Microsecond)
		assert.True(t, acquire(t, c, ask).OK)
	})
}

func TestAWaitIsTakenIfItIsNotLongerThanTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := per(1, time.Second)
		acquire(t, c, ask)
		refused := cache.Grant{Wait: time.Second}
		assert.Equal(t, refused, acquire(t, c, waiting(ask, time.Second-1)))
		assert.EqualValues(t, 1, used(t, c, time.Second), "a refusal records nothing")
		g := acquire(t, c, waiting(ask, time.Second))
		assert.True(t, g.OK)
		assert.Equal(t, time.Second, g.Wait)
		assert.EqualValues(t, 2, used(t, c, time.Second), "the future counts")
	})
}

func TestSlotsAreGivenInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := waiting(per(10, time.Second), time.Hour)
		acquire(t, c, weighing(ask, 6))
		heavy := acquire(t, c, weighing(ask, 5))
		assert.Equal(t, time.Second, heavy.Wait)
		light := acquire(t, c, ask) // there would be room for it now
		assert.Equal(t, time.Second, light.Wait)
		assert.Equal(t, +1, light.Slot.Compare(heavy.Slot))

		last := light
		for range 100 {
			next := acquire(t, c, ask)
			require.Equal(t, +1, next.Slot.Compare(last.Slot))
			last = next
		}
		assert.EqualValues(t, 6+5+101, used(t, c, time.Second))
	})
}

func TestAHeavyHitWaitsForEnoughLightOnesToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := per(10, time.Second)
		for range 10 {
			require.True(t, acquire(t, c, ask).OK)
			time.Sleep(10 * time.Millisecond)
		}
		for weight, want := range map[int64]time.Duration{1: 900, 2: 910, 7: 960, 10: 990} {
			assert.Equal(t, want*time.Millisecond, acquire(t, c, weighing(ask, weight)).Wait, "%d", weight)
		}
		time.Sleep(960 * time.Millisecond)
		assert.True(t, acquire(t, c, weighing(ask, 7)).OK)
		assert.False(t, acquire(t, c, ask).OK)
		assert.EqualValues(t, 10, used(t, c, time.Second))
	})
}

func TestASlotIsGivenBackAsIfItHadNeverBeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := waiting(per(2, time.Second), time.Hour)
		giveBack := func(s cache.Slot) { require.NoError(t, c.GiveBack(t.Context(), "k", s)) }

		var g []cache.Grant
		for range 6 { // at 0 0 1 1 2 2 s
			g = append(g, acquire(t, c, ask))
		}
		giveBack(g[5].Slot)
		again := acquire(t, c, ask)
		assert.Equal(t, 2*time.Second, again.Wait, "the last slot is free again")
		assert.NotEqual(t, g[5].Slot, again.Slot)
		giveBack(g[5].Slot)
		assert.EqualValues(t, 6, used(t, c, time.Second), "nobody else's slot was given back")

		giveBack(g[2].Slot)
		giveBack(g[2].Slot)
		assert.EqualValues(t, 5, used(t, c, time.Second))
		next := acquire(t, c, ask)
		assert.Equal(t, 3*time.Second, next.Wait, "a slot in the middle goes unused")
		giveBack(next.Slot)

		giveBack(again.Slot)
		giveBack(g[4].Slot)
		giveBack(g[3].Slot)
		assert.Equal(t, time.Second, acquire(t, c, ask).Wait)
		assert.Equal(t, time.Second, acquire(t, c, ask).Wait)
		assert.Equal(t, 2*time.Second, acquire(t, c, ask).Wait)
	})
}

func TestGivingBackTheOnlySlotForgetsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		first := acquire(t, c, per(1, time.Hour))
		require.NoError(t, c.GiveBack(t.Context(), "k", first.Slot))
		assert.Zero(t, c.Len())
		second := acquire(t, c, per(1, time.Hour))
		assert.True(t, second.OK)
		assert.Equal(t, +1, second.Slot.Compare(first.Slot))
		require.NoError(t, c.GiveBack(t.Context(), "k", first.Slot))
		assert.EqualValues(t, 1, used(t, c, time.Hour))
	})
}

func TestASlotThatIsNotThereIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		require.NoError(t, c.GiveBack(t.Context(), "k", cache.Slot{}))
		g := acquire(t, c, per(9, time.Second))
		acquire(t, c, per(9, time.Second))
		for _, s := range []cache.Slot{
			{},
			{At: g.Slot.At},
			{ID: g.Slot.ID},
			{At: g.Slot.At + 1, ID: g.Slot.ID},
			{At: g.Slot.At, ID: g.Slot.ID + 2},
			{At: g.Slot.At, ID: math.MaxUint64},
			{At: math.MinInt64, ID: math.MaxUint64},
		} {
			require.NoError(t, c.GiveBack(t.Context(), "k", s))
			require.NoError(t, c.GiveBack(t.Context(), "another", s))
		}
		assert.EqualValues(t, 2, used(t, c, time.Second))

		require.NoError(t, c.Delete(t.Context(), "k"))
		after := acquire(t, c, per(9, time.Second))
		assert.Equal(t, g.Slot.At, after.Slot.At, "the same instant")
		require.NoError(t, c.GiveBack(t.Context(), "k", g.Slot))
		assert.EqualValues(t, 1, used(t, c, time.Second), "a slot from before Delete is not one from after it")
	})
}

func TestASeriesLivesAsLongAsItsFurthestReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ask := waiting(per(1, time.Second), time.Hour)
		for range 60 {
			acquire(t, c, ask)
		}
		for range 60 {
			require.Equal(t, cache.Grant{Wait: 60 * time.Second}, acquire(t, c, waiting(ask, time.Minute-1)))
			acquire(t, c, ask)
			time.Sleep(time.Second)
		}
	})
}

func TestNoLimitWindowOrWaitOverflows(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	t.Run("window", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fresh(t)
			ask := per(1, longest)
			require.True(t, acquire(t, c, ask).OK)
			for range 3 {
				g := acquire(t, c, ask)
				require.False(t, g.OK)
				require.Greater(t, g.Wait, longest/2)
				require.EqualValues(t, 1, used(t, c, longest))
				time.Sleep(50 * 365 * 24 * time.Hour)
			}
		})
	})
	t.Run("wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fresh(t)
			ask := waiting(per(1, longest/4), longest)
			for i := range time.Duration(4) {
				g := acquire(t, c, ask)
				require.True(t, g.OK, i)
				require.InDelta(t, float64(i*(longest/4)), float64(g.Wait), 1e4)
			}
			for range 3 {
				g := acquire(t, c, ask)
				require.False(t, g.OK)
				require.Equal(t, longest, g.Wait, "the longest there is, for what is longer")
			}
			require.EqualValues(t, 4, used(t, c, time.Hour))
		})
	})
	t.Run("weight", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := fresh(t)
			const most = math.MaxInt64
			ask := waiting(weighing(per(most, time.Second), most), time.Hour)
			for i := range time.Duration(10) {
				require.Equal(t, i*time.Second, acquire(t, c, ask).Wait)
			}
			for i := range time.Duration(10) {
				require.Equal(t, (10+i)*time.Second, acquire(t, c, weighing(ask, most-1)).Wait)
			}
			require.Equal(t, 19*time.Second, acquire(t, c, weighing(ask, 1)).Wait)
			require.Equal(t, 20*time.Second, acquire(t, c, weighing(ask, 1)).Wait)
			time.Sleep(19 * time.Second)
			require.EqualValues(t, most, used(t, c, time.Second), "the largest there is, for what is larger")
		})
	})
}

func TestARequestOutOfRangeIsAnError(t *testing.T) {
	c := fresh(t)
	var bad *cache.ArgumentError
	_, err := c.Acquire(t.Context(), "k", cache.Request{})
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "Limit", bad.Field)
	for _, window := range []time.Duration{0, -1, time.Microsecond - 1} {
		_, err = c.Used(t.Context(), "k", window)
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, cache.ArgumentError{Op: "used", Field: "window", Value: window, Want: "at least 1µs"}, *bad)
	}
	assert.Zero(t, c.Len())
}

// Virtual time stands still while code runs, and so hides what two readings of the
// clock can do to each other. This is the one
// test in real time.
func TestNeverMoreThanTheLimitInAnySpanInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes four seconds of real time")
	}
	const (
		goroutines = 64
		limit      = 50
		window     = time.Second
		windows    = 3
	)
	hammer := func(t *testing.T, c *memory.Cache) {
		var mu sync.Mutex
		var slots []cache.Slot
		var wg sync.WaitGroup
		start := time.Now()
		for range goroutines {
			wg.Go(func() {
				var mine []cache.Slot
				for time.Since(start) < windows*window+window/10 {
					g, err := c.Acquire(t.Context(), "k", per(limit, window))
					if !assert.NoError(t, err) {
						return
					}
					if g.OK {
						mine = append(mine, g.Slot)
					} else if !assert.True(t, 0 < g.Wait && g.Wait <= window) {
						return
					}
				}
				mu.Lock()
				slots = append(slots, mine...)
				mu.Unlock()
			})
		}
		wg.Wait()
		slices.SortFunc(slots, cache.Slot.Compare)
		for i := limit; i < len(slots); i++ {
			require.GreaterOrEqual(t, slots[i].At-slots[i-limit].At, window.Microseconds())
		}
		assert.GreaterOrEqual(t, len(slots), windows*limit, "and none is lost")
	}
	t.Run("with weights, waits and slots given back", func(t *testing.T) {
		t.Parallel()
		c := fresh(t)
		ask := waiting(per(limit, 10*time.Millisecond), 30*time.Millisecond)
		var mu sync.Mutex
		type hit struct {
			cache.Slot
			weight int64
		}
		var hits []hit
		var wg sync.WaitGroup
		start := time.Now()
		for g := range goroutines {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			wg.Go(func() {
				var mine []hit
				for time.Since(start) < window/2 {
					weight := 1 + rng.Int64N(limit/2)
					g, err := c.Acquire(t.Context(), "k", weighing(ask, weight))
					switch {
					case !assert.NoError(t, err):
						return
					case !g.OK:
					case rng.IntN(3) == 0:
						assert.NoError(t, c.GiveBack(t.Context(), "k", g.Slot))
					default:
						mine = append(mine, hit{g.Slot, weight})
					}
				}
				mu.Lock()
				hits = append(hits, mine...)
				mu.Unlock()
			})
		}
		wg.Wait()
		slices.SortFunc(hits, func(a, b hit) int { return a.Compare(b.Slot) })
		sum, first := int64(0), 0
		for _, h := range hits {
			for sum += h.weight; h.At-hits[first].At >= ask.Window.Microseconds(); first++ {
				sum -= hits[first].weight
			}
			require.LessOrEqual(t, sum, int64(limit))
		}
		assert.Greater(t, len(hits), 100)
	})
	t.Run("from any instant", func(t *testing.T) {
		t.Parallel()
		hammer(t, fresh(t))
	})
	t.Run("from just before a second's edge", func(t *testing.T) {
		t.Parallel()
		c := fresh(t)
		for time.Until(time.Now().Truncate(time.Second).Add(time.Second)) > 20*time.Millisecond {
			runtime.Gosched()
		}
		hammer(t, c)
	})
}
