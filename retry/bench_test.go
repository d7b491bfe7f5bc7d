package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/retry"
)

// loop is a retry by hand, for comparison: four attempts, no wait, no context.
//
//go:noinline
func loop(ctx context.Context, op func(context.Context) error) error {
	var err error
	for range 4 {
		if err = op(ctx); err == nil {
			return nil
		}
	}
	return err
}

// failing returns an operation that fails twice and succeeds then, time and again.
func failing(n int) func(context.Context) error {
	i := 0
	return func(context.Context) error {
		if i++; i%(n+1) != 0 {
			return errBusy
		}
		return nil
	}
}

func BenchmarkSucceedsAtOnce(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	op := func(context.Context) error { return nil }
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = loop(ctx, op)
		}
	})
	p := mustNew(b, retry.Config{})
	b.Run("retry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = p.Do(ctx, op)
		}
	})
	b.Run("retry/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_ = p.Do(ctx, op)
			}
		})
	})
	timed := mustNew(b, retry.Config{MaxElapsed: time.Hour})
	b.Run("retry with MaxElapsed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = timed.Do(ctx, op)
		}
	})
}

func BenchmarkFailsTwiceThenSucceedsWithoutAWait(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		op := failing(2)
		for b.Loop() {
			_ = loop(ctx, op)
		}
	})
	p := mustNew(b, retry.Config{Backoff: retry.Constant(0)})
	b.Run("retry", func(b *testing.B) {
		b.ReportAllocs()
		op := failing(2)
		for b.Loop() {
			_ = p.Do(ctx, op)
		}
	})
	b.Run("retry/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			op := failing(2)
			for pb.Next() {
				_ = p.Do(ctx, op)
			}
		})
	})
}

func BenchmarkDelay(b *testing.B) {
	for name, backoff := range map[string]retry.Backoff{
		"exponential":  retry.DefaultBackoff(),
		"full jitter":  retry.FullJitter{Base: time.Second, Max: time.Minute},
		"equal jitter": retry.EqualJitter{Base: time.Second, Max: time.Minute},
		"decorrelated": retry.Decorrelated{Base: time.Second, Max: time.Minute},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = backoff.Delay(10, time.Second, 0.5)
			}
		})
	}
}
