package memory

import (
	"context"
	"sync"

	"github.com/resilience-toolkit/resilience/cache"
)

// A shard is a part of the keys, under a lock of its own.
type shard[V any] struct {
	mu     sync.Mutex
	closed bool
	calls  uint32 // how many writes there were
	table[V]
	_ [64]byte // keeps neighbours' locks off one cache line
}

// The work of reclaiming that one write does. Each makes at most one node, so that
// looking at two of its own shard catches up; and now and then it looks after another
// shard, whose keys perhaps nobody writes any more.
const (
	ownShare   = 2
	visitEvery = 8
	visitShare = ownShare * visitEvery
)

// enter locks the shard of a key, unless ctx is done or the cache closed.
func enter[V any](ctx context.Context, sh *shard[V]) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return cache.ErrClosed
	}
	return nil
}

// leave ends a write: it reclaims a little and unlocks the shard.
func leave[V any](c *Cache, sh *shard[V], now int64) {
	sh.reclaim(now, ownShare)
	sh.calls++
	calls := sh.calls
	sh.mu.Unlock()
	if calls%visitEvery == 0 {
		turn := calls / visitEvery
		visit(c.series, turn, now)
		visit(c.values, turn, now)
	}
}

// visit reclaims in the shard whose turn it is, if nobody else is there.
func visit[V any](shards []shard[V], turn uint32, now int64) {
	sh := &shards[turn&uint32(len(shards)-1)]
	if sh.mu.TryLock() {
		sh.reclaim(now, visitShare)
		sh.mu.Unlock()
	}
}

func closeAll[V any](shards []shard[V]) {
	for i := range shards {
		sh := &shards[i]
		sh.mu.Lock()
		sh.closed = true
		sh.table = table[V]{}
		sh.mu.Unlock()
	}
}

func count[V any](shards []shard[V]) (n int) {
	for i := range shards {
		sh := &shards[i]
		sh.mu.Lock()
		n += sh.len()
		sh.mu.Unlock()
	}
	return n
}
