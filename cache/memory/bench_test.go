package memory_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// hour is a window that nothing leaves, so that a limit of n is full after n hits.
func hour(limit int64) cache.Request {
	return cache.Request{Limit: limit, Window: time.Hour, Weight: 1}
}

// BenchmarkAcquireAdmitted has a window so narrow that there is always room, with
// each call finding one hit to discard or a few.
func BenchmarkAcquireAdmitted(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := memory.New()
			defer c.Close()
			names := make([]string, keys)
			for i := range names {
				names[i] = "tenant/" + strconv.Itoa(i)
			}
			ctx := context.Background()
			ask := cache.Request{Limit: 1_000, Window: time.Microsecond, Weight: 1}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := c.Acquire(ctx, names[i], ask); err != nil {
					b.Fatal(err)
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
			ctx := context.Background()
			ask := cache.Request{Limit: 1_000, Window: time.Microsecond, Weight: 1}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				names := make([]string, keys)
				for i := range names {
					names[i] = "tenant/" + strconv.Itoa(i)
				}
				for i := 0; pb.Next(); i = (i + 1) % keys {
					c.Acquire(ctx, names[i], ask)
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
