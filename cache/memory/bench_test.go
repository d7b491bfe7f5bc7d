package memory_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// hour is a window that nothing leaves, so that a limit of n is full after n hits.
func hour(limit int64) cache.Request {
	return cache.Request{Limit: limit, Window: time.Hour, Weight: 1}
}

// sliding is a request that is always admitted, at one of so many keys that are asked
// in turn: each finds some hits in its window, and one or a few to discard.
func sliding(keys int) cache.Request {
	window := time.Millisecond + time.Duration(keys)*10*time.Microsecond
	return cache.Request{Limit: math.MaxInt64, Window: window, Weight: 1}
}

func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "tenant/" + strconv.Itoa(i)
	}
	return names
}

func BenchmarkAcquireAdmitted(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := memory.New()
			defer c.Close()
			ctx, names, ask := context.Background(), names(keys), sliding(keys)
			for range 3 {
				for _, name := range names {
					c.Acquire(ctx, name, ask)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if g, _ := c.Acquire(ctx, names[i], ask); !g.OK {
					b.Fatal(g)
				}
				if i++; i == keys {
					i = 0
				}
			}
		})
	}
}

// BenchmarkAcquireFull fills the window first. Each further call is refused, or waits:
// it takes a slot, and gives it back.
func BenchmarkAcquireFull(b *testing.B) {
	for _, limit := range []int64{10, 1_000, 1_000_000} {
		for _, weight := range []int64{1, 2} {
			c := memory.New()
			ctx := context.Background()
			ask := hour(limit)
			ask.Weight = weight
			for range limit / weight {
				if g, err := c.Acquire(ctx, "k", ask); err != nil || !g.OK {
					b.Fatal(g, err)
				}
			}
			name := fmt.Sprintf("limit=%d/weight=%d", limit, weight)
			b.Run("refused/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if g, _ := c.Acquire(ctx, "k", ask); g.OK {
						b.Fatal(g)
					}
				}
			})
			b.Run("waits/"+name, func(b *testing.B) {
				ask := ask
				ask.MaxWait = 2 * time.Hour
				b.ReportAllocs()
				for b.Loop() {
					g, _ := c.Acquire(ctx, "k", ask)
					if !g.OK {
						b.Fatal(g)
					}
					c.GiveBack(ctx, "k", g.Slot)
				}
			})
			c.Close()
		}
	}
}

// BenchmarkAcquireSliding keeps a window of a millisecond as full as the machine can.
func BenchmarkAcquireSliding(b *testing.B) {
	for _, limit := range []int64{10, 1_000, 1_000_000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			c := memory.New()
			defer c.Close()
			ctx := context.Background()
			ask := cache.Request{Limit: limit, Window: time.Duration(limit) * 200, Weight: 1}
			b.ReportAllocs()
			admitted := 0
			for b.Loop() {
				if g, _ := c.Acquire(ctx, "k", ask); g.OK {
					admitted++
				}
			}
			b.ReportMetric(float64(admitted)/float64(b.N), "admitted/op")
		})
	}
}

func BenchmarkAcquireParallel(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := memory.New()
			defer c.Close()
			ctx, names, ask := context.Background(), names(keys), sliding(keys)
			var start atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i := int(start.Add(7919)) % keys
				for pb.Next() {
					c.Acquire(ctx, names[i], ask)
					if i++; i == keys {
						i = 0
					}
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	c := memory.New()
	defer c.Close()
	ctx := context.Background()
	c.Set(ctx, "k", "v", time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		c.Get(ctx, "k")
	}
}

// BenchmarkFloor is what no exact limiter of many keys can do without: one reading of
// the clock, a lock and a look-up.
func BenchmarkFloor(b *testing.B) {
	var mu sync.Mutex
	start := time.Now()
	m := map[string]time.Duration{"k": 0}
	for b.Loop() {
		mu.Lock()
		m["k"] = time.Since(start)
		mu.Unlock()
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkMemory reports what a key costs, its own bytes included (13 here), and what
// a further hit at it costs, with rings as full as they happen to be.
func BenchmarkMemory(b *testing.B) {
	ctx := context.Background()
	for b.Loop() {
		const keys = 200_000
		names := names(keys)

		c := memory.New()
		before := heap()
		for _, name := range names {
			c.Acquire(ctx, name, hour(1_000))
		}
		b.ReportMetric(float64(heap()-before)/keys, "B/series")
		c.Close()

		before = heap()
		c = memory.New()
		for _, name := range names {
			c.Set(ctx, name, "open", time.Hour)
		}
		b.ReportMetric(float64(heap()-before)/keys, "B/value")
		c.Close()

		for weight := range int64(2) {
			const hits = 3 << 20
			c = memory.New()
			before = heap()
			for range hits {
				c.Acquire(ctx, "k", cache.Request{Limit: math.MaxInt64, Window: time.Hour, Weight: 1 + weight})
			}
			b.ReportMetric(float64(heap()-before)/hits, "B/hit-of-weight-"+strconv.FormatInt(1+weight, 10))
			c.Close()
		}
		runtime.KeepAlive(names)
	}
}

// BenchmarkAcquireNewKeys has every call come with a key that was never seen, as the
// one before it expires: with so many alive, what a key costs from its making to its
// reclaiming.
func BenchmarkAcquireNewKeys(b *testing.B) {
	for _, window := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second} {
		b.Run("window="+window.String(), func(b *testing.B) {
			c := memory.New()
			defer c.Close()
			ctx, ask := context.Background(), cache.Request{Limit: 1, Window: window, Weight: 1}
			key := []byte("tenant/")
			most := 0
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				key = strconv.AppendInt(key[:7], i, 10)
				c.Acquire(ctx, string(key), ask)
				if i%100_000 == 0 {
					most = max(most, c.Len())
				}
			}
			b.ReportMetric(float64(most), "keys")
		})
	}
}
