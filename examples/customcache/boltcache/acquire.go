package boltcache

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// Where the store has transactions, the capabilities cost no more than the plain
// methods: the same steps, in one transaction.
var (
	_ cache.Acquirer          = (*Cache)(nil)
	_ cache.CompareAndSwapper = (*Cache)(nil)
)

// Acquire implements [cache.Acquirer].
func (c *Cache) Acquire(ctx context.Context, key string, r cache.Request) (g cache.Grant, err error) {
	if err := r.Validate(); err != nil {
		return cache.Grant{}, err
	}
	err = c.write(ctx, "acquire", func(v view) error {
		hits, ends, err := v.series("acquire", key)
		if err != nil {
			return err
		}
		window := micros(r.Window)
		hits = hits[from(hits, v.now-window+1):]
		at := slot(hits, v.now, window, r.Limit-r.Weight)
		g.Wait = duration(at - v.now)
		if g.Wait > r.MaxWait {
			return errUnchanged
		}
		hits, h, err := v.add(hits, at, r.Weight)
		if err != nil {
			return err
		}
		g.OK, g.Slot = true, h.slot()
		return v.putSeries(key, hits, max(ends, at+2*window))
	})
	if err != nil {
		return cache.Grant{}, err
	}
	return g, nil
}

// slot returns the first instant, not before now and not before the last hit, at which
// the hits less than one window old weigh no more than room.
func slot(hits []hit, now, window, room int64) int64 {
	if len(hits) == 0 {
		return now
	}
	at := max(now, hits[len(hits)-1].At)
	for _, h := range slices.Backward(hits) {
		if h.Weight > room { // this one has to leave, and all before it then have left
			return max(at, h.At+window)
		}
		room -= h.Weight
	}
	return at
}

// weight returns what hits weigh together, or the largest number if that is less.
func weight(hits []hit) (sum int64) {
	for _, h := range hits {
		if h.Weight > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += h.Weight
	}
	return sum
}

// GiveBack implements [cache.Acquirer].
func (c *Cache) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	return c.write(ctx, "give back", func(v view) error {
		hits, ends, err := v.series("give back", key)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(hits, func(h hit) bool { return h.slot() == s })
		if i < 0 {
			return errUnchanged
		}
		return v.putSeries(key, slices.Delete(hits, i, i+1), ends)
	})
}

// Used implements [cache.Acquirer].
func (c *Cache) Used(ctx context.Context, key string, window time.Duration) (n int64, err error) {
	err = c.read(ctx, "used", func(v view) error {
		hits, _, err := v.series("used", key)
		n = weight(hits[from(hits, v.now-micros(window)+1):])
		return err
	})
	return n, err
}

// CompareAndSwap implements [cache.CompareAndSwapper].
func (c *Cache) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (swapped bool, err error) {
	if new.Present {
		if err := checkTTL("compare and swap", ttl, 0); err != nil {
			return false, err
		}
	}
	err = c.write(ctx, "compare and swap", func(v view) error {
		content, _, ok := v.get('v', key)
		swapped = cache.Entry{Value: string(content), Present: ok} == old
		switch {
		case !swapped:
			return errUnchanged
		case new.Present:
			return v.put('v', key, []byte(new.Value), v.after(ttl))
		default:
			return v.Bucket.Delete(name('v', key))
		}
	})
	return swapped && err == nil, err
}
