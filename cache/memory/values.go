package memory

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// Get implements [cache.KeyValue].
func (c *Cache) Get(ctx context.Context, key string) (value string, ok bool, err error) {
	sh, k := c.valueShard(key)
	if err := enter(ctx, sh); err != nil {
		return "", false, err
	}
	e := c.entry(sh, k, c.now())
	sh.mu.Unlock()
	return e.Value, e.Present, nil
}

// GetMany implements [cache.MultiGetter].
func (c *Cache) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	entries = entries[:len(keys):len(entries)] // panics if it is shorter, while nothing is locked
	if len(keys) == 0 {
		_, _, err := c.Get(ctx, "") // for what is wrong with ctx or the cache
		return err
	}
	for len(keys) > 0 {
		sh, k := c.valueShard(keys[0])
		if err := enter(ctx, sh); err != nil {
			return err
		}
		now := c.now()
		for next := sh; next == sh; {
			entries[0] = c.entry(sh, k, now)
			if keys, entries = keys[1:], entries[1:]; len(keys) == 0 {
				break
			}
			next, k = c.valueShard(keys[0])
		}
		sh.mu.Unlock()
	}
	return nil
}

// Set implements [cache.KeyValue].
func (c *Cache) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if err := checkTTL("set", ttl, 0); err != nil {
		return err
	}
	sh, k := c.valueShard(key)
	if err := enter(ctx, sh); err != nil {
		return err
	}
	now := c.now()
	c.set(sh, k, own(value), after(now, ttl))
	leave(c, sh, now)
	return nil
}

// Increment implements [cache.KeyValue]. A decimal integer is what Redis takes for
// one: no sign but a minus, no leading zero, no space. What is not one, or the
// largest, is a [cache.CorruptError] with [cache.ErrNotInteger] or
// [cache.ErrOverflow] inside.
func (c *Cache) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	if err := checkTTL("increment", ttl, 0); err != nil {
		return 0, err
	}
	sh, k := c.valueShard(key)
	if err := enter(ctx, sh); err != nil {
		return 0, err
	}
	now := c.now()
	var sum int64 = 1
	n := sh.get(k, now)
	if n == nil {
		n = sh.add(k, after(now, ttl))
	} else {
		var err error
		if sum, err = successor(n.v); err != nil {
			leave(c, sh, now)
			return 0, &cache.CorruptError{Op: "increment", Key: key, Err: err}
		}
	}
	n.v = strconv.FormatInt(sum, 10)
	leave(c, sh, now)
	return sum, nil
}

// successor returns one more than the number that value is.
func successor(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != value {
		return 0, cache.ErrNotInteger
	}
	if n == math.MaxInt64 {
		return 0, cache.ErrOverflow
	}
	return n + 1, nil
}

// CompareAndSwap implements [cache.CompareAndSwapper].
func (c *Cache) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	if new.Present {
		if err := checkTTL("compare and swap", ttl, 0); err != nil {
			return false, err
		}
	}
	sh, k := c.valueShard(key)
	if err := enter(ctx, sh); err != nil {
		return false, err
	}
	now := c.now()
	there := c.entry(sh, k, now)
	swap := there.Present == old.Present && (!old.Present || there.Value == old.Value)
	switch {
	case !swap:
	case new.Present:
		c.set(sh, k, own(new.Value), after(now, ttl))
	case old.Present:
		sh.remove(sh.find(k))
	}
	leave(c, sh, now)
	return swap, nil
}

// entry returns what is at a key.
func (c *Cache) entry(sh *shard[string], k name, now int64) cache.Entry {
	n := sh.get(k, now)
	if n == nil {
		return cache.Absent()
	}
	return cache.Present(n.v)
}

// set puts a value at a key.
func (c *Cache) set(sh *shard[string], k name, value string, deadline int64) {
	n := sh.find(k)
	if n == nil {
		n = sh.add(k, deadline)
	} else {
		sh.expire(n, deadline)
	}
	n.v = value
}
