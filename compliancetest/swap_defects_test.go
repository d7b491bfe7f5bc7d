package compliancetest_test

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

type swap = func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error)

// swapped breaks CompareAndSwap by what it does to the good one.
func swapped(change func(b *broken, good swap) swap) func(*broken) {
	return func(b *broken) { b.swap = change(b, b.able.CompareAndSwap) }
}

var compareAndSwapperDefects = []defect{
	{rule: "absent-to-present-adds", name: "it adds over what is there", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if !old.Present && new.Present {
				return true, b.able.Set(ctx, key, new.Value, ttl)
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "present-to-present-replaces", name: "any value will do", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if v, ok, _ := b.able.Get(ctx, key); ok && old.Present {
				old.Value = v
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "present-to-absent-deletes", name: "it leaves an empty value", put: swapped(func(_ *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			return good(ctx, key, old, cache.Present(new.Value), ttl)
		}
	})},
	{rule: "present-to-absent-deletes", name: "a TTL for nothing is checked", put: swapped(func(_ *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if ttl < 0 {
				return false, errTTL
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "absent-to-absent-compares", name: "it adds an empty value", put: swapped(func(_ *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			new.Present = new.Present || !old.Present
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "absent-to-absent-compares", name: "it is never true", put: swapped(func(_ *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if !old.Present && !new.Present {
				return false, nil
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "empty-value-is-not-absence", name: "it is", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if v, ok, _ := b.able.Get(ctx, key); v == "" && old.Value == "" {
				old = cache.Entry{Present: ok}
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "values-are-compared-byte-for-byte", name: "they end at a zero byte", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if v, _, _ := b.able.Get(ctx, key); cString(v) == cString(old.Value) {
				old.Value = v
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "values-are-compared-byte-for-byte", name: "case makes no difference", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if v, _, _ := b.able.Get(ctx, key); strings.EqualFold(v, old.Value) {
				old.Value = v
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "counter-is-compared-by-its-string", name: "it is compared by its number", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			v, _, _ := b.able.Get(ctx, key)
			n, err := strconv.Atoi(v)
			if m, e := strconv.Atoi(old.Value); err == nil && e == nil && n == m {
				old.Value = v
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "swap-gives-the-ttl", name: "the old TTL stays", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			was, there := b.values[key]
			ok, err := good(ctx, key, old, new, ttl)
			if ok && there && new.Present && old != new {
				b.values[key] = value{new.Value, was.ends}
			}
			return ok, err
		}
	})},
	{rule: "equal-values-renew-the-ttl", name: "equal values are nothing to do", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if v, ok, err := b.able.Get(ctx, key); err == nil && old == new && (cache.Entry{Value: v, Present: ok}) == old {
				return true, nil
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "refused-swap-keeps-the-ttl", name: "it renews it", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			ok, err := good(ctx, key, old, new, ttl)
			if v, there := b.values[key]; there && err == nil && !ok {
				b.values[key] = value{v.text, time.Now().Add(ttl)}
			}
			return ok, err
		}
	})},
	{rule: "expired-is-absent", name: "what has expired is still compared", put: swapped(func(b *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if v, ok := b.values[key]; ok && old == cache.Present(v.text) {
				return true, b.able.Set(ctx, key, new.Value, ttl)
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "ttl-is-checked-and-rounded-up-as-in-set", name: "a negative one is no expiry", put: swapped(func(_ *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			return good(ctx, key, old, new, max(ttl, 0))
		}
	})},
	{rule: "ttl-is-checked-and-rounded-up-as-in-set", name: "it is cut to milliseconds", put: swapped(func(_ *broken, good swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			if ttl > 0 {
				ttl = ttl.Truncate(time.Millisecond)
			}
			return good(ctx, key, old, new, ttl)
		}
	})},
	{rule: "one-caller-wins", name: "it compares, then swaps", put: swapped(func(b *broken, _ swap) swap {
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			return cache.CompareAndSwap(ctx, pausing{b.able}, key, old, new, ttl)
		}
	})},
	{rule: "swaps-and-increments-are-one-order", name: "swaps have a lock of their own", put: swapped(func(b *broken, _ swap) swap {
		lock := make(chan struct{}, 1)
		return func(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
			lock <- struct{}{}
			defer func() { <-lock }()
			return cache.CompareAndSwap(ctx, pausing{b.able}, key, old, new, ttl)
		}
	})},
	{rule: "swaps-and-increments-are-one-order", name: "it never swaps", put: swapped(func(*broken, swap) swap {
		return func(context.Context, string, cache.Entry, cache.Entry, time.Duration) (bool, error) {
			return false, nil
		}
	})},
	{rule: "done-context-changes-nothing", name: "it swaps all the same", put: swapped(func(_ *broken, good swap) swap {
		return func(c context.Context, key string, old, new cache.Entry, ttl time.Duration) (ok bool, err error) {
			return ok, late(c, func() error { ok, err = good(ctx, key, old, new, ttl); return err })
		}
	})},
}

// pausing is the plain half of a cache, with a pause after every look.
type pausing struct{ cache.KeyValue }

func (p pausing) Get(ctx context.Context, key string) (string, bool, error) {
	v, ok, err := p.KeyValue.Get(ctx, key)
	pause()
	return v, ok, err
}
