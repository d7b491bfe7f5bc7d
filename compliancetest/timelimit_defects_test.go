package compliancetest_test

import (
	"context"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// promised has the cache say that it takes no longer than a millisecond.
func promised(put func(b *broken)) func(*broken) {
	return func(b *broken) {
		b.limit = func() (time.Duration, bool) { return time.Millisecond, true }
		put(b)
	}
}

var timeLimiterDefects = []defect{
	{rule: "limit-is-a-promise-or-nothing", name: "it is below zero", put: func(b *broken) {
		b.limit = func() (time.Duration, bool) { return -1, true }
	}},
	{rule: "limit-is-a-promise-or-nothing", name: "it is no promise and yet a limit", put: func(b *broken) {
		b.limit = func() (time.Duration, bool) { return time.Second, false }
	}},
	{rule: "limit-is-a-promise-or-nothing", name: "it is what the last call took", put: func(b *broken) {
		b.limit = func() (time.Duration, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return time.Duration(len(b.values)), true
		}
	}},
	{rule: "limit-is-a-promise-or-nothing", name: "it is forgotten", put: func(b *broken) {
		b.limit = func() (time.Duration, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return 0, len(b.values) == 0
		}
	}},
	{rule: "calls-keep-to-the-limit", name: "the promise is of the cache within", put: func(b *broken) {
		b.before = func() { time.Sleep(time.Second) }
	}},
	{rule: "calls-keep-to-the-limit", name: "get takes longer", put: promised(func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			time.Sleep(time.Second)
			return b.able.Get(ctx, key)
		}
	})},
	{rule: "calls-keep-to-the-limit", name: "set takes longer", put: promised(func(b *broken) {
		b.set = func(ctx context.Context, key, value string, ttl time.Duration) error {
			time.Sleep(time.Second)
			return b.able.Set(ctx, key, value, ttl)
		}
	})},
	{rule: "calls-keep-to-the-limit", name: "increment takes longer", put: promised(func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			time.Sleep(time.Second)
			return b.able.Increment(ctx, key, ttl)
		}
	})},
	{rule: "calls-keep-to-the-limit", name: "delete takes longer", put: promised(func(b *broken) {
		b.del = func(ctx context.Context, key string) error {
			time.Sleep(time.Second)
			return b.able.Delete(ctx, key)
		}
	})},
	{rule: "calls-keep-to-the-limit", name: "compare-and-swap takes longer", put: promised(func(b *broken) {
		b.swap = func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			time.Sleep(time.Second)
			return b.able.CompareAndSwap(ctx, key, old, new, ttl)
		}
	})},
	{rule: "calls-keep-to-the-limit", name: "getting many takes longer", put: promised(func(b *broken) {
		b.many = func(ctx context.Context, keys []string, entries []cache.Entry) error {
			time.Sleep(time.Second)
			return b.able.GetMany(ctx, keys, entries)
		}
	})},
}
