package redis_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// BenchmarkRoundTrip is what there is to compare with: the driver by itself, running a
// script that reads the clock, reads a key and writes it.
func BenchmarkRoundTrip(b *testing.B) {
	client := driver.NewClient(&driver.Options{Addr: redistest.Start(b).Addr()})
	defer client.Close()
	ctx := context.Background()
	sha := client.ScriptLoad(ctx, `redis.call('TIME') redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return 1`).Val()
	run := func(b *testing.B) {
		if err := client.EvalSha(ctx, sha, []string{"k"}, 1).Err(); err != nil {
			b.Error(err)
		}
	}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			run(b)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				run(b)
			}
		})
	})
}

func BenchmarkAcquire(b *testing.B) {
	url := redistest.Start(b).URL()
	for _, limit := range []int64{10, 1000, 100_000} {
		b.Run("limit="+strconv.FormatInt(limit, 10), func(b *testing.B) {
			c, err := redis.Open(url, redis.Config{Prefix: freshPrefix(), Timeout: 5 * time.Second})
			require.NoError(b, err)
			defer c.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r := cache.Request{Limit: limit, Window: time.Minute, Weight: 1}
			acquire := func(b *testing.B, key string) {
				if _, err := c.Acquire(ctx, key, r); err != nil {
					b.Error(err)
				}
			}
			b.Run("serial", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					acquire(b, "k")
				}
			})
			b.Run("parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						acquire(b, "k")
					}
				})
			})
			b.Run("parallel-keys", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				var n atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					key := strconv.FormatInt(n.Add(1), 10)
					for pb.Next() {
						acquire(b, key)
					}
				})
			})
		})
	}
}
