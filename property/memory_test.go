package property

import (
	"context"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// manyTimes checks a property in ten times as many cases as rapid does by default:
// they are cheap here, and it is the rare ones that matter.
func manyTimes(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range 10 {
		check(t, property)
	}
}

// keys are few, so that operations meet. Three are of one group.
var keys = rapid.SampledFrom([]string{
	"", "k", "k\x00", cache.Key("g", "1"), cache.Key("g", "2"), cache.Key("g", "1\x00"),
})

// ttls are few and of several scales, with none at all among them.
var ttls = rapid.SampledFrom([]time.Duration{
	0, 1, time.Microsecond, 1500, time.Millisecond, time.Second, time.Hour, math.MaxInt64,
})

// pauses makes time pass, most often by little, so that boundaries are met exactly.
var pauses = rapid.OneOf(
	rapid.SampledFrom([]time.Duration{1, 500, time.Microsecond, time.Millisecond, time.Second, time.Hour}),
	rapid.Map(rapid.IntRange(1, 3000), func(us int) time.Duration { return time.Duration(us) * time.Microsecond }),
)

// expiring is what a model knows of one key.
type expiring[V any] struct {
	v        V
	deadline time.Time
	eternal  bool
}

// A naiveTable maps keys to what expires, and looks at the clock whenever it is asked.
type naiveTable[V any] map[string]*expiring[V]

func (t naiveTable[V]) get(key string) *expiring[V] {
	e := t[key]
	if e == nil || !e.eternal && !time.Now().Before(e.deadline) {
		return nil
	}
	return e
}

func (t naiveTable[V]) set(key string, v V, ttl time.Duration) {
	t[key] = &expiring[V]{v, time.Now().Add(ttl), ttl == 0 || ttl == math.MaxInt64}
}

func TestValuesAndCountersBehaveAsANaiveModelDoes(t *testing.T) {
	values := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "a", "0", "-1", "41", "-0", "01", "+1", " 1", "1 ", "1_0", "0x1",
			"9223372036854775806", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		}),
		rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
		rapid.String(),
	)
	manyTimes(t, func(t *rapid.T) {
		ctx := context.Background()
		c := memory.New()
		defer c.Close()
		model := naiveTable[string]{}
		entry := func(key string) cache.Entry {
			if e := model.get(key); e != nil {
				return cache.Present(e.v)
			}
			return cache.Absent()
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				value, ok, err := c.Get(ctx, key)
				require.NoError(t, err)
				require.Equal(t, entry(key), cache.Entry{Value: value, Present: ok})
			},
			"pause": func(t *rapid.T) { time.Sleep(pauses.Draw(t, "pause")) },
			"get many": func(t *rapid.T) {
				ks := rapid.SliceOfN(keys, 0, 5).Draw(t, "keys")
				got := make([]cache.Entry, len(ks))
				require.NoError(t, c.GetMany(ctx, ks, got))
				for i, key := range ks {
					require.Equal(t, entry(key), got[i])
				}
			},
			"set": func(t *rapid.T) {
				key, value, ttl := keys.Draw(t, "key"), values.Draw(t, "value"), ttls.Draw(t, "ttl")
				require.NoError(t, c.Set(ctx, key, value, ttl))
				model.set(key, value, ttl)
			},
			"delete": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				require.NoError(t, c.Delete(ctx, key))
				delete(model, key)
			},
			"increment": func(t *rapid.T) {
				key, ttl := keys.Draw(t, "key"), ttls.Draw(t, "ttl")
				got, err := c.Increment(ctx, key, ttl)
				e := model.get(key)
				if e == nil {
					require.NoError(t, err)
					require.EqualValues(t, 1, got)
					model.set(key, "1", ttl)
					return
				}
				switch n, bad := strconv.ParseInt(e.v, 10, 64); {
				case bad != nil || strconv.FormatInt(n, 10) != e.v:
					require.ErrorIs(t, err, cache.ErrNotInteger)
				case n == math.MaxInt64:
					require.ErrorIs(t, err, cache.ErrOverflow)
				default:
					require.NoError(t, err)
					require.Equal(t, n+1, got)
					e.v = strconv.FormatInt(n+1, 10)
				}
			},
			"compare and swap": func(t *rapid.T) {
				key, ttl := keys.Draw(t, "key"), ttls.Draw(t, "ttl")
				entries := rapid.OneOf(
					rapid.Just(cache.Absent()), rapid.Just(entry(key)), rapid.Map(values, cache.Present))
				was, new := entries.Draw(t, "old"), entries.Draw(t, "new")
				swapped, err := c.CompareAndSwap(ctx, key, was, new, ttl)
				require.NoError(t, err)
				require.Equal(t, was == entry(key), swapped)
				switch {
				case swapped && new.Present:
					model.set(key, new.Value, ttl)
				case swapped:
					delete(model, key)
				}
			},
		})
	})
}

func TestHitsOfTheCallerBehaveAsANaiveModelDoes(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	instants := rapid.Map(rapid.IntRange(-3000, 60_000), func(ns int) time.Time {
		return start.Add(time.Duration(ns)) // few microseconds, so that hits share one
	})
	manyTimes(t, func(t *rapid.T) {
		ctx := context.Background()
		c := memory.New()
		defer c.Close()
		model := naiveTable[[]int64]{} // in microseconds, in order
		hits := func(key string) []int64 {
			if e := model.get(key); e != nil {
				return e.v
			}
			return nil
		}
		since := func(hits []int64, since time.Time) []int64 {
			i, _ := slices.BinarySearch(hits, since.UnixMicro())
			return hits[i:]
		}
		t.Repeat(map[string]func(*rapid.T){
			"pause": func(t *rapid.T) { time.Sleep(pauses.Draw(t, "pause")) },
			"record": func(t *rapid.T) {
				key, at := keys.Draw(t, "key"), instants.Draw(t, "at")
				ttl := max(1, ttls.Draw(t, "ttl"))
				require.NoError(t, c.RecordHit(ctx, key, at, ttl))
				e := model.get(key)
				if e == nil {
					model.set(key, []int64{at.UnixMicro()}, ttl)
					return
				}
				e.v = append(e.v, at.UnixMicro())
				slices.Sort(e.v)
				if deadline := time.Now().Add(ttl); deadline.After(e.deadline) {
					e.deadline = deadline
				}
				e.eternal = e.eternal || ttl == math.MaxInt64
			},
			"count": func(t *rapid.T) {
				key, at := keys.Draw(t, "key"), instants.Draw(t, "since")
				n, err := c.CountHits(ctx, key, at)
				require.NoError(t, err)
				require.Len(t, since(hits(key), at), n)
				if e := model.get(key); e != nil {
					e.v = since(e.v, at)
				}
			},
			"oldest": func(t *rapid.T) {
				key, at := keys.Draw(t, "key"), instants.Draw(t, "since")
				got, ok, err := c.OldestHit(ctx, key, at)
				require.NoError(t, err)
				want := since(hits(key), at)
				require.Equal(t, len(want) > 0, ok)
				if ok {
					require.Equal(t, want[0], got.UnixMicro())
				}
			},
			"delete": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				require.NoError(t, c.Delete(ctx, key))
				delete(model, key)
			},
		})
	})
}

// A naiveHit is one that a naive series never forgets.
type naiveHit struct {
	slot   cache.Slot
	weight int64
}

// A naiveSeries answers by looking at every hit for every instant that could be one.
type naiveSeries []naiveHit

// between returns the weight of the hits from one instant on and before another.
func (s naiveSeries) between(from, to int64) (sum int64) {
	for _, h := range s {
		if from <= h.slot.At && h.slot.At < to {
			sum += h.weight
		}
	}
	return sum
}

// within returns the weight of the hits less than one window old at an instant.
func (s naiveSeries) within(instant, window int64) (sum int64) {
	return s.between(instant-window+1, math.MaxInt64)
}

// slot returns the first instant with room.
func (s naiveSeries) slot(now, window, limit, weight int64) int64 {
	first := now
	for _, h := range s {
		first = max(first, h.slot.At)
	}
	candidates := []int64{first}
	for _, h := range s {
		if at := h.slot.At + window; at > first {
			candidates = append(candidates, at)
		}
	}
	slices.Sort(candidates)
	for _, at := range candidates {
		if s.within(at, window)+weight <= limit {
			return at
		}
	}
	panic("no slot after everything has left the window")
}

func TestSlotsAreTheOnesOfANaiveModel(t *testing.T) {
	const us = time.Microsecond
	manyTimes(t, func(t *rapid.T) {
		ctx := context.Background()
		c := memory.New()
		defer c.Close()

		window := rapid.SampledFrom([]time.Duration{2 * us, 10*us + 1, time.Millisecond, time.Second}).Draw(t, "window")
		windowUS := (window + us - 1).Microseconds()
		limit := rapid.SampledFrom([]int64{1, 2, 5, 9}).Draw(t, "limit")
		weights := rapid.Just(int64(1))
		if rapid.Bool().Draw(t, "weighted") {
			weights = rapid.SampledFrom([]int64{1, 1, 1, (limit + 1) / 2, limit})
		}
		key := rapid.SampledFrom([]string{"a", "a", "a", "b"})
		waits := rapid.SampledFrom([]time.Duration{0, window / 2, window, 2*window + us, math.MaxInt64, math.MaxInt64})
		lapses := rapid.SampledFrom([]time.Duration{1, us, window / 7, window / 2, window - us, window, window + us, 3 * window})
		model := map[string]naiveSeries{}
		gone := map[string]naiveSeries{} // what was given back or deleted
		var offset int64                 // of the cache's clock from this one, which may read other fractions
		var known bool                   // whether the offset is
		clock := func() int64 { return time.Now().UnixMicro() }

		acquire := func(t *rapid.T, k string, r cache.Request) cache.Grant {
			g, err := c.Acquire(ctx, k, r)
			require.NoError(t, err)
			if !known {
				require.True(t, g.OK)
				offset, known = g.Slot.At-clock(), true
			}
			now := clock() + offset
			want := model[k].slot(now, windowUS, r.Limit, r.Weight)
			wait := time.Duration(want-now) * us
			require.Equal(t, wait, g.Wait)
			require.Equal(t, wait <= r.MaxWait, g.OK)
			if !g.OK {
				require.Positive(t, g.Wait)
				require.Zero(t, g.Slot)
				return g
			}
			require.Equal(t, want, g.Slot.At)
			require.NotZero(t, g.Slot.ID)
			for _, h := range slices.Concat(gone[k], model[k]) {
				require.NotEqual(t, h.slot, g.Slot)
			}
			if n := len(model[k]); n > 0 {
				require.Positive(t, g.Slot.Compare(model[k][n-1].slot))
			}
			model[k] = append(model[k], naiveHit{g.Slot, r.Weight})
			return g
		}
		request := func(t *rapid.T) cache.Request {
			return cache.Request{
				Limit: limit, Window: window,
				Weight:  weights.Draw(t, "weight"),
				MaxWait: waits.Draw(t, "longest wait"),
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, s := range model {
					for _, h := range s { // every span that holds the most begins with a hit
						require.LessOrEqual(t, s.between(h.slot.At, h.slot.At+windowUS), limit)
					}
				}
			},
			"acquire": func(t *rapid.T) { acquire(t, key.Draw(t, "key"), request(t)) },
			"reserve": func(t *rapid.T) {
				k, r := key.Draw(t, "key"), request(t)
				r.MaxWait = math.MaxInt64
				acquire(t, k, r)
			},
			"acquire as long as there is room": func(t *rapid.T) {
				k, r := key.Draw(t, "key"), request(t)
				r.MaxWait = 0
				for acquire(t, k, r).OK {
				}
			},
			"sleep what a refusal says": func(t *rapid.T) {
				k, r := key.Draw(t, "key"), request(t)
				r.MaxWait = 0
				if g := acquire(t, k, r); !g.OK {
					time.Sleep(g.Wait - us)
					require.False(t, acquire(t, k, r).OK)
					time.Sleep(us)
					require.True(t, acquire(t, k, r).OK)
				}
			},
			"pause": func(t *rapid.T) { time.Sleep(lapses.Draw(t, "pause")) },
			"give back": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if len(model[k]) == 0 {
					t.Skip()
				}
				i := rapid.OneOf(rapid.IntRange(0, len(model[k])-1), rapid.Just(len(model[k])-1)).Draw(t, "index")
				require.NoError(t, c.GiveBack(ctx, k, model[k][i].slot))
				gone[k] = append(gone[k], model[k][i])
				model[k] = slices.Delete(model[k], i, i+1)
			},
			"give back what is not there": func(t *rapid.T) {
				k := key.Draw(t, "key")
				slots := []cache.Slot{{}, {At: clock() + offset}, {At: math.MinInt64, ID: math.MaxUint64}}
				for _, h := range gone[k] {
					slots = append(slots, h.slot)
				}
				for _, h := range model[k] {
					slots = append(slots, cache.Slot{At: h.slot.At + 1, ID: h.slot.ID})
				}
				require.NoError(t, c.GiveBack(ctx, k, rapid.SampledFrom(slots).Draw(t, "slot")))
			},
			"used": func(t *rapid.T) {
				k := key.Draw(t, "key")
				used, err := c.Used(ctx, k, window)
				require.NoError(t, err)
				require.Equal(t, model[k].within(clock()+offset, windowUS), used)
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				require.NoError(t, c.Delete(ctx, k))
				gone[k] = append(gone[k], model[k]...)
				delete(model, k)
			},
		})
	})
}
