package ratelimit_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/ratelimit"
)

func nothing(context.Context) error { return nil }

func bench(b *testing.B, l *ratelimit.Limiter, do func(i int) error) {
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			_ = do(i)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				_ = do(i)
			}
		})
	})
}

func benchLimiter(b *testing.B, limit int, window time.Duration) *ratelimit.Limiter {
	l, err := ratelimit.New(limit, window, ratelimit.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// The window is short, so that hits leave as fast as they come and every one is
// admitted.
func BenchmarkAllow(b *testing.B) {
	l := benchLimiter(b, 1<<20, time.Millisecond)
	p, ctx := l.For("k"), context.Background()
	bench(b, l, func(int) error { return p.Do(ctx, nothing) })
}

func BenchmarkAllowTenThousandKeys(b *testing.B) {
	l := benchLimiter(b, 1<<20, time.Second)
	keys, ctx := make([]string, 10_000), context.Background()
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	bench(b, l, func(i int) error { return l.Acquire(ctx, keys[i%len(keys)]) })
}

func BenchmarkRefuse(b *testing.B) {
	l := benchLimiter(b, 1, time.Hour)
	p, ctx := l.For("k"), context.Background()
	bench(b, l, func(int) error { return p.Do(ctx, nothing) })
}
