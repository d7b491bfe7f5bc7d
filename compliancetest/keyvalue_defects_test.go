package compliancetest_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

var keyValueDefects = []defect{
	{rule: "absent-is-an-answer", name: "a miss is an error", put: func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			v, ok, err := b.able.Get(ctx, key)
			if err == nil && !ok {
				err = errOops
			}
			return v, ok, err
		}
	}},
	{rule: "zero-value-is-present", name: "what is empty is absent", put: func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			v, _, err := b.able.Get(ctx, key)
			return v, v != "", err
		}
	}},
	{rule: "values-are-not-altered", name: "values are made valid text", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, strings.ToValidUTF8(v, "\ufffd"), ttl)
		}
	}},
	{rule: "values-are-not-altered", name: "values are trimmed", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, strings.TrimSpace(v), ttl)
		}
	}},
	{rule: "values-are-not-altered", name: "values are cut", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v[:min(len(v), 4096)], ttl)
		}
	}},
	{rule: "keys-are-kept-apart", name: "case is lost", put: func(b *broken) { b.rename = lower }},
	{rule: "keys-are-kept-apart", name: "a hash tag is the key", put: func(b *broken) { b.rename = tag }},
	{rule: "keys-are-kept-apart", name: "keys end at a zero byte", put: func(b *broken) { b.rename = cString }},
	{rule: "keys-are-kept-apart", name: "the group is the key", put: func(b *broken) { b.rename = cache.Group }},
	{rule: "keys-are-kept-apart", name: "keys are trimmed", put: func(b *broken) { b.rename = strings.TrimSpace }},
	{rule: "empty-key-is-a-key", name: "nothing is kept without a key", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if key == "" {
				return errOops
			}
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "set-replaces-the-value", name: "the first value stays", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if _, ok, _ := b.able.Get(ctx, key); ok {
				return nil
			}
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "value-lives-for-its-ttl", name: "the TTL is taken in another unit", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v, ttl/1000)
		}
	}},
	{rule: "value-lives-for-its-ttl", name: "the TTL is cut to hundredths of a second", virtual: true, put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v, (ttl - 1).Truncate(10*time.Millisecond))
		}
	}},
	{rule: "value-expires", name: "the TTL is rounded up to a second", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v, (ttl + time.Second - 1).Truncate(time.Second))
		}
	}},
	{rule: "value-expires", name: "it lasts a moment too long", virtual: true, put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v, ttl+1)
		}
	}},
	{rule: "value-expires", name: "counters stay", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, _ time.Duration) (int64, error) {
			return b.able.Increment(ctx, key, 0)
		}
	}},
	{rule: "zero-ttl-is-no-expiry", name: "zero is a default", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if ttl == 0 {
				ttl = 50 * time.Millisecond
			}
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "set-replaces-the-ttl", name: "the first TTL stays", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			b.mu.Lock()
			old, ok := b.lookUp(key)
			b.mu.Unlock()
			if err := b.able.Set(ctx, key, v, ttl); err != nil || !ok {
				return err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.values[key] = value{v, old.ends}
			return nil
		}
	}},
	{rule: "set-replaces-the-ttl", name: "zero leaves the TTL", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			b.mu.Lock()
			old := b.values[key]
			b.mu.Unlock()
			if err := b.able.Set(ctx, key, v, ttl); err != nil || ttl > 0 {
				return err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.values[key] = value{v, old.ends}
			return nil
		}
	}},
	{rule: "tiny-ttl-is-rounded-up", name: "the TTL is cut to milliseconds, and zero is no expiry", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v, ttl.Truncate(time.Millisecond))
		}
	}},
	{rule: "tiny-ttl-is-rounded-up", name: "what is below a millisecond has expired", virtual: true, put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if ttl > 0 && ttl < time.Millisecond {
				return b.able.Delete(ctx, key)
			}
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "longest-ttl-does-not-overflow", name: "the end wraps", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if ttl > 0 && time.Now().UnixNano()+int64(ttl) < 0 {
				return b.able.Delete(ctx, key) // it is over
			}
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "negative-ttl-is-refused", name: "it is no expiry", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			return b.able.Set(ctx, key, v, max(ttl, 0))
		}
	}},
	{rule: "negative-ttl-is-refused", name: "the counter is raised all the same", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, max(ttl, 0))
			if ttl < 0 {
				err = errOops
			}
			return n, err
		}
	}},
	{rule: "increment-starts-at-one", name: "the number before comes back", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, ttl)
			return n - 1, err
		}
	}},
	{rule: "counter-is-its-decimal-string", name: "counters are kept elsewhere", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			return b.able.Increment(ctx, key+"/counter", ttl)
		}
	}},
	{rule: "counter-is-its-decimal-string", name: "counters are stored in binary", put: func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			v, ok, err := b.able.Get(ctx, key)
			if n, e := strconv.Atoi(v); e == nil {
				v = string(rune(n))
			}
			return v, ok, err
		}
	}},
	{rule: "increment-goes-on-from-what-was-set", name: "numbers are doubles", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			v, ok, err := b.able.Get(ctx, key)
			if n, e := strconv.ParseFloat(v, 64); ok && e == nil {
				return int64(n + 1), b.able.Set(ctx, key, strconv.FormatInt(int64(n+1), 10), ttl)
			}
			if err != nil {
				return 0, err
			}
			return b.able.Increment(ctx, key, ttl)
		}
	}},
	{rule: "increment-of-text-is-an-error", name: "text counts as zero", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, ttl)
			if errors.Is(err, cache.ErrNotInteger) {
				return 1, b.able.Set(ctx, key, "1", ttl)
			}
			return n, err
		}
	}},
	{rule: "increment-of-text-is-an-error", name: "the text is lost", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, ttl)
			if errors.Is(err, cache.ErrNotInteger) {
				_ = b.able.Delete(ctx, key)
			}
			return n, err
		}
	}},
	{rule: "increment-does-not-overflow", name: "the largest wraps", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, ttl)
			if errors.Is(err, cache.ErrOverflow) {
				return math.MinInt64, b.able.Set(ctx, key, strconv.Itoa(math.MinInt64), ttl)
			}
			return n, err
		}
	}},
	{rule: "increment-keeps-the-ttl", name: "each increment refreshes it", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, ttl)
			if err != nil {
				return n, err
			}
			return n, b.able.Set(ctx, key, strconv.FormatInt(n, 10), ttl)
		}
	}},
	{rule: "increment-keeps-the-ttl", name: "a key without one gets it", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			n, err := b.able.Increment(ctx, key, ttl)
			if err != nil || !b.values[key].ends.IsZero() {
				return n, err
			}
			return n, b.able.Set(ctx, key, strconv.FormatInt(n, 10), ttl)
		}
	}},
	{rule: "increment-after-expiry-is-a-new-key", name: "only the first making has a TTL", put: func(b *broken) {
		made := map[string]bool{}
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			if made[key] {
				ttl = 0
			}
			made[key] = true
			return b.able.Increment(ctx, key, ttl)
		}
	}},
	{rule: "increments-are-never-lost", name: "it reads, then writes", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			v, _, _ := b.able.Get(ctx, key)
			n, _ := strconv.ParseInt(v, 10, 64)
			pause()
			return n + 1, b.able.Set(ctx, key, strconv.FormatInt(n+1, 10), ttl)
		}
	}},
	{rule: "increments-are-never-lost", name: "the sum is read afterwards", put: func(b *broken) {
		b.incr = func(ctx context.Context, key string, ttl time.Duration) (int64, error) {
			if _, err := b.able.Increment(ctx, key, ttl); err != nil {
				return 0, err
			}
			pause()
			v, _, err := b.able.Get(ctx, key)
			n, _ := strconv.ParseInt(v, 10, 64)
			return n, err
		}
	}},
	{rule: "values-are-whole", name: "it writes in two halves", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			old, _, _ := b.able.Get(ctx, key)
			half := len(v) / 2
			if err := b.able.Set(ctx, key, v[:half]+old[min(half, len(old)):], ttl); err != nil {
				return err
			}
			pause()
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "values-are-whole", name: "it is away while it is replaced", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			if err := b.able.Delete(ctx, key); err != nil {
				return err
			}
			pause()
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "delete-removes-the-value", name: "it leaves an empty one", put: func(b *broken) {
		b.del = func(ctx context.Context, key string) error { return b.able.Set(ctx, key, "", 0) }
	}},
	{rule: "delete-of-nothing-is-no-error", name: "it is one", put: func(b *broken) {
		b.del = func(ctx context.Context, key string) error {
			if _, ok, _ := b.able.Get(ctx, key); !ok {
				return errOops
			}
			return b.able.Delete(ctx, key)
		}
	}},
	{rule: "done-context-changes-nothing", name: "the value is set all the same", put: func(b *broken) {
		b.set = func(c context.Context, key, v string, ttl time.Duration) error {
			return late(c, func() error { return b.able.Set(ctx, key, v, ttl) })
		}
	}},
	{rule: "done-context-changes-nothing", name: "the counter is raised all the same", put: func(b *broken) {
		b.incr = func(c context.Context, key string, ttl time.Duration) (n int64, err error) {
			return n, late(c, func() error { n, err = b.able.Increment(ctx, key, ttl); return err })
		}
	}},
	{rule: "done-context-changes-nothing", name: "the value is deleted all the same", put: func(b *broken) {
		b.del = func(c context.Context, key string) error {
			return late(c, func() error { return b.able.Delete(ctx, key) })
		}
	}},
	{rule: "done-context-changes-nothing", name: "the cause is lost", put: func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			if ctx.Err() != nil {
				return "", false, ctx.Err()
			}
			return b.able.Get(ctx, key)
		}
	}},
}
