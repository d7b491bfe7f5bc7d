package compliancetest_test

import (
	"context"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// broken is a good cache in which single methods can be replaced by worse ones.
type broken struct {
	*able
	before func()                  // runs before every call
	rename func(key string) string // applies to the keys of all methods
	close  func() error            // and from here on, each stands for its method
	get    func(ctx context.Context, key string) (string, bool, error)
	set    func(ctx context.Context, key, value string, ttl time.Duration) error
	incr   func(ctx context.Context, key string, ttl time.Duration) (int64, error)
	del    func(ctx context.Context, key string) error
	hit    func(ctx context.Context, key string, at time.Time, ttl time.Duration) error
	count  func(ctx context.Context, key string, since time.Time) (int, error)
	oldest func(ctx context.Context, key string, since time.Time) (time.Time, bool, error)
	swap   func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error)
	many   func(ctx context.Context, keys []string, entries []cache.Entry) error
	take   func(ctx context.Context, key string, r cache.Request) (cache.Grant, error)
	give   func(ctx context.Context, key string, s cache.Slot) error
	used   func(ctx context.Context, key string, window time.Duration) (int64, error)
	limit  func() (time.Duration, bool)
}

// in is what happens to a key on its way in.
func (b *broken) in(key string) string {
	if b.before != nil {
		b.before()
	}
	if b.rename != nil {
		return b.rename(key)
	}
	return key
}

func or[F any](replaced bool, f, method F) F {
	if replaced {
		return f
	}
	return method
}

func (b *broken) Close() error { return or(b.close != nil, b.close, b.able.Close)() }

func (b *broken) Get(ctx context.Context, key string) (string, bool, error) {
	return or(b.get != nil, b.get, b.able.Get)(ctx, b.in(key))
}

func (b *broken) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	return or(b.set != nil, b.set, b.able.Set)(ctx, b.in(key), value, ttl)
}

func (b *broken) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	return or(b.incr != nil, b.incr, b.able.Increment)(ctx, b.in(key), ttl)
}

func (b *broken) Delete(ctx context.Context, key string) error {
	return or(b.del != nil, b.del, b.able.Delete)(ctx, b.in(key))
}

func (b *broken) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	return or(b.hit != nil, b.hit, b.able.RecordHit)(ctx, b.in(key), at, ttl)
}

func (b *broken) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	return or(b.count != nil, b.count, b.able.CountHits)(ctx, b.in(key), since)
}

func (b *broken) OldestHit(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
	return or(b.oldest != nil, b.oldest, b.able.OldestHit)(ctx, b.in(key), since)
}

func (b *broken) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	return or(b.swap != nil, b.swap, b.able.CompareAndSwap)(ctx, b.in(key), old, new, ttl)
}

func (b *broken) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	in := make([]string, len(keys))
	for i, key := range keys {
		in[i] = b.in(key)
	}
	return or(b.many != nil, b.many, b.able.GetMany)(ctx, in, entries)
}

func (b *broken) TimeLimit() (time.Duration, bool) {
	return or(b.limit != nil, b.limit, b.able.TimeLimit)()
}

func (b *broken) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	return or(b.take != nil, b.take, b.able.Acquire)(ctx, b.in(key), r)
}

func (b *broken) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	return or(b.give != nil, b.give, b.able.GiveBack)(ctx, b.in(key), s)
}

func (b *broken) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	return or(b.used != nil, b.used, b.able.Used)(ctx, b.in(key), window)
}
