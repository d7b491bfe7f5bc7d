package memory

import (
	"context"
	"math"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// Acquire implements [cache.Acquirer]. The instant is read under the lock of the
// series.
func (c *Cache) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	if err := r.Validate(); err != nil {
		return cache.Grant{}, err
	}
	sh, k := c.seriesShard(key)
	if err := enter(ctx, sh); err != nil {
		return cache.Grant{}, err
	}
	elapsed := c.now()
	now, window := c.instant(elapsed), roundUp(r.Window)

	n, slot := sh.get(k, elapsed), now
	if n != nil {
		slot = n.v.slot(now, window, r.Limit, r.Weight)
	}
	wait := slot - now
	if wait > r.MaxWait.Microseconds() {
		leave(c, sh, elapsed)
		return cache.Grant{Wait: duration(wait)}, nil
	}

	deadline := after(elapsed, duration(wait+2*window))
	if n == nil {
		n = c.open(sh, k, elapsed, deadline)
	} else {
		n.extend(deadline)
	}
	id := n.v.push(slot, r.Weight)
	leave(c, sh, elapsed)
	return cache.Grant{OK: true, Wait: duration(wait), Slot: cache.Slot{At: slot, ID: id}}, nil
}

// GiveBack implements [cache.Acquirer]. It costs the same for the last slot of a
// series however long it is; for any other one, it moves those behind it in memory.
func (c *Cache) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	sh, k := c.seriesShard(key)
	if err := enter(ctx, sh); err != nil {
		return err
	}
	now := c.now()
	if n := sh.get(k, now); n != nil {
		if i, ok := n.v.find(s.At, s.ID); ok {
			n.v.remove(i, s.ID)
			if n.v.n == 0 {
				c.drop(sh, n)
			}
		}
	}
	leave(c, sh, now)
	return nil
}

// Used implements [cache.Acquirer]. A sum beyond the range of int64, which
// many waiting hits may have, is returned as the largest int64.
func (c *Cache) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	if window < time.Microsecond {
		return 0, &cache.ArgumentError{Op: "used", Field: "window", Value: window, Want: "at least 1µs"}
	}
	sh, k := c.seriesShard(key)
	if err := enter(ctx, sh); err != nil {
		return 0, err
	}
	var used uint64
	now := c.now()
	if n := sh.get(k, now); n != nil {
		used = n.v.from(n.v.search(c.instant(now) - roundUp(window) + 1))
	}
	sh.mu.Unlock()
	return int64(min(used, math.MaxInt64)), nil
}

// instant returns the instant of the store's clock, in microseconds. What is cut
// off is the same for every whole wait from now, so that who sleeps a wait finds its
// slot, and not before.
func (c *Cache) instant(elapsed int64) int64 { return c.base + elapsed/1000 }

// roundUp returns d in microseconds.
func roundUp(d time.Duration) int64 {
	us := d.Microseconds()
	if d%time.Microsecond != 0 {
		us++
	}
	return us
}

// duration returns microseconds as a duration, or the longest one.
func duration(us int64) time.Duration {
	if us > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
