package memory

import (
	"context"
	"time"
)

// RecordHit implements [cache.HitWindow]. It discards nothing, so that a series that
// is never counted grows for as long as its hits extend its life.
func (c *Cache) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	if err := checkTTL("record hit", ttl, 1); err != nil {
		return err
	}
	sh, k := c.seriesShard(key)
	if err := enter(ctx, sh); err != nil {
		return err
	}
	now := c.now()
	n := c.open(sh, k, now, after(now, ttl))
	n.v.insert(at.UnixMicro())
	leave(c, sh, now)
	return nil
}

// CountHits implements [cache.HitWindow]. It discards the hits before since.
func (c *Cache) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	sh, k := c.seriesShard(key)
	if err := enter(ctx, sh); err != nil {
		return 0, err
	}
	count := 0
	if n := sh.get(k, c.now()); n != nil {
		n.v.discard(since.UnixMicro())
		count = n.v.n
	}
	sh.mu.Unlock()
	return count, nil
}

// OldestHit implements [cache.HitWindow].
func (c *Cache) OldestHit(ctx context.Context, key string, since time.Time) (at time.Time, ok bool, err error) {
	sh, k := c.seriesShard(key)
	if err := enter(ctx, sh); err != nil {
		return time.Time{}, false, err
	}
	if n := sh.get(k, c.now()); n != nil {
		if i := n.v.search(since.UnixMicro()); i < n.v.n {
			at, ok = time.UnixMicro(n.v.at(i)), true
		}
	}
	sh.mu.Unlock()
	return at, ok, nil
}

// open returns the series of a key, a new one if need be, with its life extended to at
// least the deadline.
func (c *Cache) open(sh *shard[series], k name, now, deadline int64) *node[series] {
	n := sh.get(k, now)
	if n == nil {
		n = sh.add(k, deadline)
		n.v.next = c.lastID.Load() + 1
	} else {
		n.extend(deadline)
	}
	return n
}
