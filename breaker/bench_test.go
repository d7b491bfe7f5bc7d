package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func nothing(context.Context) error { return nil }

func benchmark(b *testing.B, cfg breaker.Config, prepare func(*breaker.Breaker)) {
	circuit, err := breaker.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	if prepare != nil {
		prepare(circuit)
	}
	ctx := context.Background()
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = circuit.Do(ctx, nothing)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_ = circuit.Do(ctx, nothing)
			}
		})
	})
}

func BenchmarkClosed(b *testing.B) { benchmark(b, breaker.Config{}, nil) }

func BenchmarkClosedUnderACancellableContext(b *testing.B) {
	circuit, err := breaker.New(breaker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		_ = circuit.Do(ctx, nothing)
	}
}

func BenchmarkRefused(b *testing.B) {
	benchmark(b, breaker.Config{}, func(c *breaker.Breaker) {
		if err := c.ForceOpen(context.Background(), time.Hour); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkFailureAndSuccess(b *testing.B) {
	circuit, err := breaker.New(breaker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	broken := errors.New("broken")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_ = circuit.Do(ctx, func(context.Context) error { return broken })
		_ = circuit.Do(ctx, nothing)
	}
}

func BenchmarkClosedOnASharedCacheInMemory(b *testing.B) {
	benchmark(b, breaker.Config{Cache: memory.New()}, nil)
}

func BenchmarkClosedOnASharedCacheWithStaleness(b *testing.B) {
	benchmark(b, breaker.Config{Cache: memory.New(), Staleness: time.Minute}, nil)
}
