package boltcache

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

var _ cache.Cache = (*Cache)(nil)

// Get implements [cache.KeyValue].
func (c *Cache) Get(ctx context.Context, key string) (value string, ok bool, err error) {
	err = c.read(ctx, "get", func(v view) error {
		var content []byte
		content, _, ok = v.get('v', key)
		value = string(content) // a copy: the content belongs to the transaction
		return nil
	})
	return value, ok, err
}

// Set implements [cache.KeyValue].
func (c *Cache) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if err := checkTTL("set", ttl, 0); err != nil {
		return err
	}
	return c.write(ctx, "set", func(v view) error {
		return v.put('v', key, []byte(value), v.after(ttl))
	})
}

// Increment implements [cache.KeyValue].
func (c *Cache) Increment(ctx context.Context, key string, ttl time.Duration) (n int64, err error) {
	if err := checkTTL("increment", ttl, 0); err != nil {
		return 0, err
	}
	err = c.write(ctx, "increment", func(v view) error {
		content, ends, ok := v.get('v', key)
		if ok {
			if n, err = strconv.ParseInt(string(content), 10, 64); err != nil || strconv.FormatInt(n, 10) != string(content) {
				return cache.ErrNotInteger
			}
		} else {
			n, ends = 0, v.after(ttl)
		}
		if n == math.MaxInt64 {
			return cache.ErrOverflow
		}
		n++
		return v.put('v', key, strconv.AppendInt(nil, n, 10), ends)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Delete implements [cache.KeyValue].
func (c *Cache) Delete(ctx context.Context, key string) error {
	return c.write(ctx, "delete", func(v view) error {
		value, series := name('v', key), name('h', key)
		if v.Get(value) == nil && v.Get(series) == nil {
			return errUnchanged
		}
		if err := v.Bucket.Delete(value); err != nil {
			return err
		}
		return v.Bucket.Delete(series)
	})
}

// checkTTL returns an error for a TTL that is below the least.
func checkTTL(op string, ttl, least time.Duration) error {
	if ttl >= least {
		return nil
	}
	return &cache.ArgumentError{Op: op, Field: "ttl", Value: ttl, Want: "at least " + least.String()}
}
