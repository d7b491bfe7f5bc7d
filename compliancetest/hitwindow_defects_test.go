package compliancetest_test

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"
)

var hitWindowDefects = []defect{
	{rule: "no-hits-is-an-answer", name: "it is an error", put: func(b *broken) {
		b.oldest = func(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
			at, ok, err := b.able.OldestHit(ctx, key, since)
			if err == nil && !ok {
				err = errOops
			}
			return at, ok, err
		}
	}},
	{rule: "hit-at-since-is-inside", name: "a count begins after it", put: func(b *broken) {
		b.count = func(ctx context.Context, key string, since time.Time) (int, error) {
			return b.able.CountHits(ctx, key, since.Add(time.Microsecond))
		}
	}},
	{rule: "hit-at-since-is-inside", name: "the oldest is after it", put: func(b *broken) {
		b.oldest = func(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
			return b.able.OldestHit(ctx, key, since.Add(time.Microsecond))
		}
	}},
	{rule: "hits-at-one-instant-are-many", name: "an instant is the identity of a hit", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if old, ok, _ := b.able.OldestHit(ctx, key, at); ok && old.Equal(at) {
				return nil
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "hits-come-in-any-order", name: "one that comes late is put last", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			b.mu.Lock()
			if s := b.hits(key).hits; len(s) > 0 {
				at = time.UnixMicro(max(at.UnixMicro(), s[len(s)-1]))
			}
			b.mu.Unlock()
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "hits-come-in-any-order", name: "what is before the last count is dropped", put: func(b *broken) {
		newest := map[string]time.Time{}
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if at.Before(newest[key]) {
				return nil
			}
			newest[key] = at
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "microseconds-are-told-apart", name: "instants are milliseconds", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			return b.able.RecordHit(ctx, key, at.Truncate(time.Millisecond), ttl)
		}
	}},
	{rule: "microseconds-are-told-apart", name: "nanoseconds are doubles", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			return b.able.RecordHit(ctx, key, time.Unix(0, int64(float64(at.UnixNano()))), ttl)
		}
	}},
	{rule: "microseconds-are-told-apart", name: "parts are glued together without padding", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			glued, _ := strconv.ParseInt(strconv.FormatInt(at.Unix(), 10)+strconv.Itoa(at.Nanosecond()/1000), 10, 64)
			return b.able.RecordHit(ctx, key, time.UnixMicro(glued), ttl)
		}
	}},
	{rule: "finer-than-a-microsecond-is-cut-off", name: "a hit is rounded", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			return b.able.RecordHit(ctx, key, at.Round(time.Microsecond), ttl)
		}
	}},
	{rule: "finer-than-a-microsecond-is-cut-off", name: "since is rounded up", put: func(b *broken) {
		b.count = func(ctx context.Context, key string, since time.Time) (int, error) {
			return b.able.CountHits(ctx, key, since.Add(999*time.Nanosecond))
		}
	}},
	{rule: "instants-may-be-far-apart", name: "there is nothing before 1970", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			return b.able.RecordHit(ctx, key, time.UnixMicro(max(0, at.UnixMicro())), ttl)
		}
	}},
	{rule: "instants-may-be-far-apart", name: "what the clock says is long past is dropped", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if time.Since(at) > time.Hour {
				return nil
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "instants-may-be-far-apart", name: "a since of zero is now", put: func(b *broken) {
		b.count = func(ctx context.Context, key string, since time.Time) (int, error) {
			if since.IsZero() {
				since = time.Now()
			}
			return b.able.CountHits(ctx, key, since)
		}
	}},
	{rule: "count-discards-only-what-is-older", name: "what was counted is gone", put: func(b *broken) {
		b.count = func(ctx context.Context, key string, since time.Time) (int, error) {
			n, err := b.able.CountHits(ctx, key, since)
			if err == nil {
				_, err = b.able.CountHits(ctx, key, since.Add(time.Microsecond))
			}
			return n, err
		}
	}},
	{rule: "oldest-discards-nothing", name: "it discards what is older", put: func(b *broken) {
		b.oldest = func(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
			if _, err := b.able.CountHits(ctx, key, since); err != nil {
				return time.Time{}, false, err
			}
			return b.able.OldestHit(ctx, key, since)
		}
	}},
	{rule: "series-are-kept-apart", name: "case is lost", put: func(b *broken) { b.rename = lower }},
	{rule: "series-are-kept-apart", name: "keys end at a zero byte", put: func(b *broken) { b.rename = cString }},
	{rule: "empty-key-is-a-series", name: "nothing is kept without a key", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if key == "" {
				return nil
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "series-lives-for-its-ttl", name: "the TTL is taken in another unit", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			return b.able.RecordHit(ctx, key, at, ttl/1000)
		}
	}},
	{rule: "series-expires", name: "it does not", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			return b.able.RecordHit(ctx, key, at, max(ttl, time.Hour))
		}
	}},
	{rule: "hit-extends-the-life-of-the-series", name: "the first hit gives the TTL", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			b.mu.Lock()
			old := b.hits(key)
			b.mu.Unlock()
			err := b.able.RecordHit(ctx, key, at, ttl)
			if len(old.hits) > 0 {
				b.series[key] = series{b.series[key].hits, old.ends}
			}
			return err
		}
	}},
	{rule: "hit-extends-the-life-of-the-series", name: "the longest TTL counts from the first hit", put: func(b *broken) {
		made := map[string]time.Time{}
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if made[key].IsZero() {
				made[key] = time.Now()
			}
			return b.able.RecordHit(ctx, key, at, ttl-time.Since(made[key]))
		}
	}},
	{rule: "hit-never-shortens-the-life-of-the-series", name: "the last hit gives the TTL", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			err := b.able.RecordHit(ctx, key, at, ttl)
			b.series[key] = series{b.series[key].hits, time.Now().Add(ttl)}
			return err
		}
	}},
	{rule: "tiny-ttl-is-rounded-up", name: "what is below a millisecond stays", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if ttl < time.Millisecond {
				ttl = time.Hour
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "tiny-ttl-is-rounded-up", name: "what is below a millisecond has expired", virtual: true, put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if ttl < time.Millisecond {
				return nil
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "longest-ttl-does-not-overflow", name: "the end wraps", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if time.Now().UnixNano()+int64(ttl) < 0 {
				return nil
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "ttl-must-be-above-zero", name: "zero is no expiry", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			if ttl == 0 {
				ttl = math.MaxInt64
			}
			return b.able.RecordHit(ctx, key, at, ttl)
		}
	}},
	{rule: "ttl-must-be-above-zero", name: "the hit is recorded before the TTL is looked at", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			err := b.able.RecordHit(ctx, key, at, max(ttl, time.Second))
			if ttl <= 0 {
				err = errOops
			}
			return err
		}
	}},
	{rule: "hits-are-never-lost", name: "it reads, then writes", put: func(b *broken) {
		b.hit = func(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
			b.mu.Lock()
			hits := slices.Clone(b.hits(key).hits)
			b.mu.Unlock()
			pause()
			b.mu.Lock()
			defer b.mu.Unlock()
			hits = append(hits, at.UnixMicro())
			slices.Sort(hits)
			b.series[key] = series{hits, time.Now().Add(ttl)}
			return nil
		}
	}},
	{rule: "done-context-changes-nothing", name: "the hit is recorded all the same", put: func(b *broken) {
		b.hit = func(c context.Context, key string, at time.Time, ttl time.Duration) error {
			return late(c, func() error { return b.able.RecordHit(ctx, key, at, ttl) })
		}
	}},
	{rule: "done-context-changes-nothing", name: "what is older is discarded all the same", put: func(b *broken) {
		b.count = func(c context.Context, key string, since time.Time) (n int, err error) {
			return n, late(c, func() error { n, err = b.able.CountHits(ctx, key, since); return err })
		}
	}},
	{rule: "done-context-changes-nothing", name: "the question is answered all the same", put: func(b *broken) {
		b.oldest = func(_ context.Context, key string, since time.Time) (time.Time, bool, error) {
			return b.able.OldestHit(ctx, key, since)
		}
	}},
}
