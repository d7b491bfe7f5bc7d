package compliancetest_test

import (
	"context"
	"strings"
	"time"
)

var cacheDefects = []defect{
	{rule: "value-and-series-share-a-key", name: "a key has one type", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if err := b.able.Delete(ctx, key); err != nil {
				return err
			}
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "value-and-series-share-a-key", name: "a counter over hits is an error", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			if len(b.hits(key).hits) > 0 {
				return 0, errOops
			}
			return b.able.Increment(ctx, key, ttl)
		}
	}},
	{rule: "values-and-series-of-all-keys-are-kept-apart", name: "a series has the key with a mark", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if err := b.able.Set(ctx, key+":hits", "series", ttl); err != nil {
				return err
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "values-and-series-of-all-keys-are-kept-apart", name: "a value has the key with a mark", put: func(b *broken) {
		b.del = func(ctx context.Context, key string) error {
			if err := b.able.Delete(ctx, strings.TrimPrefix(key, "v:")); err != nil {
				return err
			}
			return b.able.Delete(ctx, key)
		}
	}},
	{rule: "value-and-series-expire-apart", name: "a value's TTL is the key's", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			err := b.able.RecordHit(ctx, key, at, ttl)
			if v, ok := b.values[key]; ok {
				b.series[key] = series{b.series[key].hits, v.ends}
			}
			return err
		}
	}},
	{rule: "delete-clears-both", name: "the hits stay", put: func(b *broken) {
		b.del = func(ctx context.Context, key string) error {
			s := b.series[key]
			err := b.able.Delete(ctx, key)
			b.series[key] = s
			return err
		}
	}},
	{rule: "delete-clears-both", name: "the TTL of the hits stays", put: func(b *broken) {
		b.del = func(ctx context.Context, key string) error {
			s := b.series[key]
			err := b.able.Delete(ctx, key)
			b.series[key] = series{nil, s.ends}
			return err
		}
	}},
}
