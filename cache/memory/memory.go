package memory

import (
	"context"
	"hash/maphash"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A Cache keeps its state in the memory of the process. Make one with [New]; the
// zero Cache is not usable. All methods may be called by any number of goroutines
// at once.
type Cache struct {
	start  time.Time // wall and monotonic, read once: everything else is time since then
	base   int64     // start, in microseconds of the wall clock
	seed   maphash.Seed
	values []shard[string]
	series []shard[series]
	lastID atomic.Uint64 // the greatest ID of any series that was deleted
}

var (
	_ cache.Cache             = (*Cache)(nil)
	_ cache.Acquirer          = (*Cache)(nil)
	_ cache.CompareAndSwapper = (*Cache)(nil)
	_ cache.MultiGetter       = (*Cache)(nil)
	_ cache.TimeLimiter       = (*Cache)(nil)
)

// New returns an empty cache.
func New() *Cache {
	shards := 16
	for shards < 4*runtime.GOMAXPROCS(0) {
		shards *= 2
	}
	start := time.Now()
	return &Cache{
		start:  start,
		base:   start.UnixMicro(),
		seed:   maphash.MakeSeed(),
		values: make([]shard[string], shards),
		series: make([]shard[series], shards),
	}
}

// Close forgets everything and releases the memory. Every method called afterwards
// returns [cache.ErrClosed]; closing again does nothing. The error is always nil.
func (c *Cache) Close() error {
	closeAll(c.values)
	closeAll(c.series)
	return nil
}

// TimeLimit implements [cache.TimeLimiter]: there is nothing to wait for.
func (c *Cache) TimeLimit() (time.Duration, bool) { return 0, true }

// Len returns how many values and series are held, expired ones that were not yet
// reclaimed included. It is for tests and for monitoring.
func (c *Cache) Len() int {
	return count(c.values) + count(c.series)
}

// valueShard returns the shard of a value. Those of one group share it, so that they
// can be read at one instant.
func (c *Cache) valueShard(key string) (*shard[string], name) {
	group := c.name(cache.Group(key))
	return &c.values[group.hash&uint64(len(c.values)-1)], c.name(key)
}

// seriesShard returns the shard of a series.
func (c *Cache) seriesShard(key string) (*shard[series], name) {
	k := c.name(key)
	return &c.series[k.hash&uint64(len(c.series)-1)], k
}

func (c *Cache) name(key string) name { return name{key, maphash.String(c.seed, key)} }

// now returns the nanoseconds since the cache was made. It is read once per call, under
// the lock, so that instants in one shard never go back.
func (c *Cache) now() int64 { return int64(time.Since(c.start)) }

// after returns the deadline of a TTL, with zero for never.
func after(now int64, ttl time.Duration) int64 {
	if ttl == 0 || now > math.MaxInt64-int64(ttl) {
		return never
	}
	return now + int64(ttl)
}

// checkTTL returns an error for a TTL that is below the least.
func checkTTL(op string, ttl, least time.Duration) error {
	if ttl >= least {
		return nil
	}
	want := "zero or more"
	if least > 0 {
		want = "above zero"
	}
	return &cache.ArgumentError{Op: op, Field: "ttl", Value: ttl, Want: want}
}

// Delete implements [cache.KeyValue]. It removes first the value and then the series.
func (c *Cache) Delete(ctx context.Context, key string) error {
	values, k := c.valueShard(key)
	if err := enter(ctx, values); err != nil {
		return err
	}
	now := c.now()
	if n := values.find(k); n != nil {
		values.remove(n)
	}
	leave(c, values, now)

	hits, k := c.seriesShard(key)
	hits.mu.Lock()
	if n := hits.find(k); n != nil {
		c.drop(hits, n)
	}
	leave(c, hits, now)
	return nil
}

// drop removes a series before its time. The IDs of the next one of its key begin
// after its own, so that no slot of it is taken for one of the next.
func (c *Cache) drop(sh *shard[series], n *node[series]) {
	for last := c.lastID.Load(); n.v.next > last; last = c.lastID.Load() {
		if c.lastID.CompareAndSwap(last, n.v.next) {
			break
		}
	}
	sh.remove(n)
}

// own returns a copy of a key or value that is to be kept, since the caller's may be
// a small part of something large.
func own(s string) string { return strings.Clone(s) }
