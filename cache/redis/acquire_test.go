package redis_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

var bg = context.Background()

func unit(limit int64, window, wait time.Duration) cache.Request {
	return cache.Request{Limit: limit, Window: window, Weight: 1, MaxWait: wait}
}

// keys returns the names of all keys of a server.
func keys(s *redistest.Server) []string {
	var list []string
	for _, k := range s.Do("KEYS", "*").([]any) {
		list = append(list, k.(string))
	}
	slices.Sort(list)
	return list
}

// serverTime returns the instant of the server's clock, in microseconds.
func serverTime(s *redistest.Server) int64 {
	t := s.Do("TIME").([]any)
	sec, _ := strconv.ParseInt(t[0].(string), 10, 64)
	us, _ := strconv.ParseInt(t[1].(string), 10, 64)
	return sec*1_000_000 + us
}

func TestAcquireIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s)
	c := open(t, "redis://"+p.Addr())
	_, err := c.Acquire(bg, "k", unit(5, time.Minute, 0))
	require.NoError(t, err)
	p.Drop(nil)
	for i := range 10 {
		g, err := c.Acquire(bg, "k", unit(5, time.Minute, 0))
		require.NoError(t, err)
		require.Equal(t, i < 4, g.OK)
	}
	require.Equal(t, 10, p.Replies())
}

func TestAcquireAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	c := open(t, redistest.Start(t).URL())
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	for name, limit := range map[string]int64{"granted": 1 << 40, "refused": 1} {
		key, r := name, unit(limit, time.Minute, 0)
		n := testing.AllocsPerRun(200, func() {
			if _, err := c.Acquire(ctx, key, r); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %v allocations", name, n)
		assert.LessOrEqual(t, n, 25.0, name)
	}
}

// What an entry costs is what MEMORY USAGE says of the whole series, by the number of its
// entries.
func TestEntriesAreSmall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	for _, heavy := range []bool{false, true} {
		r := unit(1<<40, time.Hour, 0)
		if heavy {
			r.Weight = 123_456
		}
		key := fmt.Sprint("tenant ", heavy)
		for n := 1; n <= 2000; n++ {
			_, err := c.Acquire(bg, key, r)
			require.NoError(t, err)
			if n < 8 || n > 128 && n%100 != 0 {
				continue
			}
			limit := 64.0
			if n > 128 {
				limit = 144
			}
			list := keys(s)
			i := slices.IndexFunc(list, func(k string) bool { return strings.Contains(k, key) })
			used := s.Do("MEMORY", "USAGE", list[i], "SAMPLES", "0").(int64)
			if n == 8 || n == 128 || n == 2000 {
				t.Logf("heavy: %t, %d entries: %.0f bytes each", heavy, n, float64(used)/float64(n))
			}
			require.LessOrEqual(t, float64(used)/float64(n), limit, "%d bytes for %d entries, heavy: %t", used, n, heavy)
		}
	}
}

func TestSeriesAlwaysHasATTLWithinTwoWindowsAndTheWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	for _, window := range []time.Duration{900 * time.Microsecond, 250 * time.Millisecond, 10 * time.Second} {
		for _, wait := range []time.Duration{0, time.Second} {
			key := fmt.Sprint(window, wait)
			for range 20 {
				_, err := c.Acquire(bg, key, unit(5, window, wait))
				require.NoError(t, err)
				for _, k := range keys(s) {
					if !strings.Contains(k, key) {
						continue
					}
					// Gone (-2) is as good; without TTL (-1) is what must not be.
					if ttl := s.Do("PTTL", k).(int64); ttl != -2 {
						require.GreaterOrEqual(t, ttl, int64(0), k)
						require.LessOrEqual(t, ttl, (2*window+wait).Milliseconds()+1, k)
					}
				}
			}
		}
	}
}

func TestWindowsBelowASecondAreKept(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	const limit = 5
	for _, window := range []time.Duration{900 * time.Microsecond, 250 * time.Millisecond} {
		var slots []int64
		for burst := range 2 {
			start := time.Now()
			granted := 0
			for range 20 {
				g, err := c.Acquire(bg, window.String(), unit(limit, window, 0))
				require.NoError(t, err)
				if g.OK {
					granted++
					slots = append(slots, g.Slot.At)
				} else {
					require.LessOrEqual(t, g.Wait, window)
				}
				require.NotEqualValues(t, -1, s.Do("PTTL", seriesOf(s, window.String())))
			}
			if time.Since(start) < window {
				require.Equal(t, limit, granted, "burst %d", burst)
			}
			require.GreaterOrEqual(t, granted, limit)
			time.Sleep(window)
		}
		for i := limit; i < len(slots); i++ {
			require.GreaterOrEqual(t, slots[i]-slots[i-limit], window.Microseconds())
		}
	}
}

func TestTheLongestTimeoutIsOne(t *testing.T) {
	t.Parallel()
	c, err := redis.Open(redistest.Start(t).URL(), redis.Config{Timeout: math.MaxInt64})
	require.NoError(t, err)
	defer c.Close()
	warm(t, c)
	for op, run := range operations(c) {
		require.NoError(t, run(bg), op)
	}
}

func TestSeriesOutlivesItsLastSlot(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	const window = 20 * time.Millisecond
	for i := range 50 {
		key := strconv.Itoa(i)
		g, err := c.Acquire(bg, key, unit(1, window, 0))
		require.NoError(t, err)
		require.True(t, g.OK)
		for {
			before := serverTime(s)
			used, err := c.Used(bg, key, window)
			require.NoError(t, err)
			after := serverTime(s)
			if after < g.Slot.At+window.Microseconds() {
				require.EqualValues(t, 1, used, "a hit was lost before its time")
			}
			if before >= g.Slot.At+window.Microseconds() {
				require.Zero(t, used)
				break
			}
		}
	}
}

func TestPlantedSeriesWithoutTTLIsOutgrownAndGetsOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	const window = 200 * time.Millisecond
	_, err := c.Acquire(bg, "k", unit(3, window, 0))
	require.NoError(t, err)
	key := keys(s)[0]
	s.Do("DEL", key)
	now := serverTime(s)
	for i := range 3 {
		s.Do("ZADD", key, strconv.FormatInt(now, 10), "0000000000"+strconv.Itoa(i))
	}
	g, err := c.Acquire(bg, "k", unit(3, window, 0))
	require.NoError(t, err)
	require.False(t, g.OK)
	require.LessOrEqual(t, g.Wait, window)
	time.Sleep(g.Wait)
	g, err = c.Acquire(bg, "k", unit(3, window, 0))
	require.NoError(t, err)
	require.True(t, g.OK)
	require.Positive(t, s.Do("PTTL", key))
	require.EqualValues(t, 1, s.Do("ZCARD", key))
}

func TestNoStoredNumberHasAnExponent(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	for range 3 {
		_, err := c.Acquire(bg, "k", unit(1, time.Hour, 24*365*time.Hour))
		require.NoError(t, err)
	}
	require.NoError(t, c.RecordHit(bg, "k", time.Date(2250, 1, 1, 0, 0, 0, 999_000, time.UTC), time.Hour))
	for _, score := range s.Do("ZRANGE", keys(s)[0], "0", "-1", "WITHSCORES").([]any) {
		assert.NotContains(t, score, "e+")
	}
}

// A model of a series: all its hits, and the first slot by the words of the contract.
type model []hit

type hit struct {
	slot   cache.Slot
	weight int64
}

func (m model) first(now int64, r cache.Request) int64 {
	window := r.Window.Microseconds()
	at := now
	for _, h := range m {
		at = max(at, h.slot.At)
	}
	for {
		var used int64
		next := int64(1<<63 - 1)
		for _, h := range m {
			if h.slot.At > at-window {
				used += h.weight
				next = min(next, h.slot.At+window)
			}
		}
		if used <= r.Limit-r.Weight {
			return at
		}
		at = next
	}
}

func TestAcquireAgreesWithItsContractForAnyWeights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for series := range 12 {
		c := open(t, s.URL())
		r := cache.Request{Limit: 1 + rng.Int64N(30), Window: time.Duration(1+rng.IntN(20)) * time.Millisecond}
		heavy := series%3 != 0 // some series have none, and some come to have some
		var m model
		for step := range 250 {
			r.Weight = 1
			if heavy && step > series*5 && rng.IntN(3) > 0 {
				r.Weight = 1 + rng.Int64N(r.Limit)
			}
			r.MaxWait = time.Duration(rng.IntN(3)) * r.Window
			before := serverTime(s)
			g, err := c.Acquire(bg, "k", r)
			require.NoError(t, err)
			after := serverTime(s)
			switch {
			case g.OK:
				now := g.Slot.At - g.Wait.Microseconds()
				require.True(t, before <= now && now <= after)
				require.LessOrEqual(t, g.Wait, r.MaxWait)
				require.Equal(t, m.first(now, r), g.Slot.At, "step %d of series %d", step, series)
				m = append(m, hit{g.Slot, r.Weight})
			default:
				require.Greater(t, g.Wait, r.MaxWait)
				// A slot that is not now does not depend on when now is.
				now := m.first(before, r) - g.Wait.Microseconds()
				require.True(t, before <= now && now <= after, "step %d of series %d", step, series)
			}
			if rng.IntN(4) == 0 && len(m) > 0 {
				i := rng.IntN(len(m))
				require.NoError(t, c.GiveBack(bg, "k", m[i].slot))
				m = slices.Delete(m, i, i+1)
			}
			if rng.IntN(8) == 0 {
				// Too wide a window to be ambiguous: everything that is ahead, and no more.
				before := serverTime(s)
				used, err := c.Used(bg, "k", r.Window)
				require.NoError(t, err)
				after := serverTime(s)
				var least, most int64
				for _, h := range m {
					if h.slot.At > after-r.Window.Microseconds() {
						least += h.weight
					}
					if h.slot.At > before-r.Window.Microseconds() {
						most += h.weight
					}
				}
				require.True(t, least <= used && used <= most, "%d <= %d <= %d", least, used, most)
			}
			if rng.IntN(10) == 0 {
				time.Sleep(time.Duration(rng.Int64N(int64(r.Window))))
			}
		}
	}
}

// Slots of one instant are all there is to a series at times: the instants of those that
// wait are the instants of those before, one window on.
func TestTiesOfHeavyAndLightHitsAreWeighedRight(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rng := rand.New(rand.NewPCG(1, 2))
	caches := []*redis.Cache{}
	prefix := freshPrefix()
	for range 3 {
		c, err := redis.Open(s.URL(), redis.Config{Prefix: prefix, Timeout: 5 * time.Second})
		require.NoError(t, err)
		defer c.Close()
		caches = append(caches, c)
	}
	r := cache.Request{Limit: 20, Window: time.Minute, MaxWait: time.Hour}
	var m model
	for range 300 {
		r.Weight = 1
		if rng.IntN(2) == 0 {
			r.Weight = 1 + rng.Int64N(6)
		}
		g, err := caches[rng.IntN(3)].Acquire(bg, "k", r)
		require.NoError(t, err)
		require.True(t, g.OK)
		require.Equal(t, m.first(g.Slot.At-g.Wait.Microseconds(), r), g.Slot.At)
		m = append(m, hit{g.Slot, r.Weight})
		if rng.IntN(5) == 0 {
			i := rng.IntN(len(m))
			require.NoError(t, caches[0].GiveBack(bg, "k", m[i].slot))
			m = slices.Delete(m, i, i+1)
		}
	}
}

func TestLimitIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	var all sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 200 {
		all.Go(func() {
			g, err := c.Acquire(bg, "k", unit(50, time.Minute, 0))
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			if g.OK {
				granted++
			}
		})
	}
	all.Wait()
	require.Equal(t, 50, granted)
}

func TestWeightThatADoubleCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	c, err := redis.Open("redis://127.0.0.1:1", redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Acquire(bg, "k", cache.Request{Limit: 1 << 60, Window: time.Second, Weight: 1<<53 + 1})
	var bad *cache.ArgumentError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "Weight", bad.Field)
}

// The largest window there is passes the year 2255 with its first wait.
func TestASlotThatNoDoubleHoldsExactlyIsTooFarForAnyWait(t *testing.T) {
	t.Parallel()
	c := open(t, redistest.Start(t).URL())
	for _, weight := range []int64{1, 3} {
		r := cache.Request{Limit: weight, Weight: weight, Window: math.MaxInt64, MaxWait: math.MaxInt64}
		key := strconv.FormatInt(weight, 10)
		for i := range 4 {
			g, err := c.Acquire(bg, key, r)
			require.NoError(t, err)
			require.Equal(t, i == 0, g.OK)
			require.Equal(t, i > 0, g.Wait > 0)
			used, err := c.Used(bg, key, r.Window)
			require.NoError(t, err)
			require.Equal(t, weight, used)
		}
	}
}

// After a step back of the server's clock, what was recorded before is in the future.
func TestAfterAClockSetBackSlotsFollowTheLastOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const step = time.Hour
	for _, weight := range []int64{1, 2} {
		c := open(t, s.URL())
		r := cache.Request{Limit: 2 * weight, Weight: weight, Window: time.Second}
		key := fmt.Sprint("weight ", weight)
		_, err := c.Acquire(bg, key, r)
		require.NoError(t, err)
		list := keys(s)
		series := list[slices.IndexFunc(list, func(k string) bool { return strings.Contains(k, key) })]
		member := s.Do("ZRANGE", series, "0", "0").([]any)[0].(string)
		s.Do("ZADD", series, strconv.FormatInt(serverTime(s)+step.Microseconds(), 10), member)

		g, err := c.Acquire(bg, key, r)
		require.NoError(t, err)
		require.False(t, g.OK)
		require.InDelta(t, step, g.Wait, float64(10*time.Second))
		r.MaxWait = 2 * step
		last := int64(0)
		for range 4 {
			g, err := c.Acquire(bg, key, r)
			require.NoError(t, err)
			require.True(t, g.OK)
			require.GreaterOrEqual(t, g.Wait, step-10*time.Second)
			require.GreaterOrEqual(t, g.Slot.At, last)
			last = g.Slot.At
		}
		used, err := c.Used(bg, key, r.Window)
		require.NoError(t, err)
		require.Equal(t, 5*weight, used)
		require.Greater(t, s.Do("PTTL", series), step.Milliseconds()-10_000)
	}
}

func TestASeriesKeepsItsTTLWhenAHeavyHitIsGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	r := cache.Request{Limit: 8, Weight: 3, Window: time.Minute}
	first, err := c.Acquire(bg, "k", r)
	require.NoError(t, err)
	_, err = c.Acquire(bg, "k", r)
	require.NoError(t, err)
	require.NoError(t, c.GiveBack(bg, "k", first.Slot))
	used, err := c.Used(bg, "k", time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 3, used)
	require.Positive(t, s.Do("PTTL", seriesOf(s, "k")), "the one behind was written anew")
}

func TestEveryKeyHasATTLInRangeWhateverIsUnderWay(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	const window, wait, ttl = 30 * time.Millisecond, 60 * time.Millisecond, 40 * time.Millisecond
	until := time.Now().Add(time.Second)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				key := strconv.Itoa(n % 3)
				r := cache.Request{Limit: 8, Weight: int64(1 + i%2*2), Window: window, MaxWait: wait}
				g, err := c.Acquire(bg, key, r)
				assert.NoError(t, err)
				if g.OK && n%3 == 0 {
					assert.NoError(t, c.GiveBack(bg, key, g.Slot))
				}
				_, err = c.Increment(bg, "n"+key, ttl)
				assert.NoError(t, err)
				_, err = c.CompareAndSwap(bg, "v"+key, cache.Absent(), cache.Present("v"), ttl)
				assert.NoError(t, err)
				assert.NoError(t, c.RecordHit(bg, "h"+key, time.Now(), ttl))
			}
		})
	}
	defer all.Wait()
	seen := 0
	for time.Now().Before(until) {
		for _, k := range keys(s) {
			left := s.Do("PTTL", k).(int64)
			if left == -2 {
				continue // gone
			}
			seen++
			most := (2*window + wait).Milliseconds() + 1
			if strings.Contains(k, ":o:") {
				most = 15_000
			}
			require.GreaterOrEqual(t, left, int64(0), k)
			require.LessOrEqual(t, left, most, k)
		}
	}
	all.Wait()
	require.Greater(t, seen, 50)
}
