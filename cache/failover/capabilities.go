package failover

import (
	"context"
	"math"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// withCapabilities returns s with the capabilities that both caches have. A type
// either has a method or not, so there is one for each set of them.
func withCapabilities(s *store) cache.Cache {
	a, swap, many := acquirer{s}, swapper{s}, multiGetter{s}
	switch hasA, hasS, hasM := both[cache.Acquirer](s), both[cache.CompareAndSwapper](s), both[cache.MultiGetter](s); {
	case hasA && hasS && hasM:
		return struct {
			*store
			acquirer
			swapper
			multiGetter
		}{s, a, swap, many}
	case hasA && hasS:
		return struct {
			*store
			acquirer
			swapper
		}{s, a, swap}
	case hasA && hasM:
		return struct {
			*store
			acquirer
			multiGetter
		}{s, a, many}
	case hasS && hasM:
		return struct {
			*store
			swapper
			multiGetter
		}{s, swap, many}
	case hasA:
		return struct {
			*store
			acquirer
		}{s, a}
	case hasS:
		return struct {
			*store
			swapper
		}{s, swap}
	case hasM:
		return struct {
			*store
			multiGetter
		}{s, many}
	}
	return s
}

// TimeLimit implements [cache.TimeLimiter]: an operation may be done by both caches, one
// after the other. What the functions of the [Config] take comes on top.
func (s *store) TimeLimit() (time.Duration, bool) {
	primary, ok := cache.TimeLimit(s.primary.Cache)
	local, also := cache.TimeLimit(s.local.Cache)
	if !ok || !also {
		return 0, false
	}
	if primary > math.MaxInt64-local {
		return math.MaxInt64, true
	}
	return primary + local, true
}

func both[C any](s *store) bool {
	_, primary := s.primary.Cache.(C)
	_, local := s.local.Cache.(C)
	return primary && local
}

type acquirer struct{ s *store }

// Slots of the two caches are of different clocks: the primary's have even numbers, the
// local one's odd ones, so that stores in stores are told apart as well.
const clocks = 2

// Acquire implements [cache.Acquirer].
func (a acquirer) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	return do(ctx, a.s, func(c side) (cache.Grant, error) {
		grant, err := c.Cache.(cache.Acquirer).Acquire(ctx, key, r)
		if grant.OK {
			grant.Slot.Clock *= clocks
			if c.local {
				grant.Slot.Clock++
			}
		}
		return grant, err
	})
}

// GiveBack implements [cache.Acquirer]. A slot is given back to the cache that it is
// from. One of the primary that is away goes unused.
func (a acquirer) GiveBack(ctx context.Context, key string, slot cache.Slot) error {
	local := slot.Clock%clocks == 1
	slot.Clock /= clocks
	if local {
		return a.s.local.Cache.(cache.Acquirer).GiveBack(ctx, key, slot)
	}
	_, err := do(ctx, a.s, func(c side) (nothing, error) {
		if c.local {
			return nothing{}, nil
		}
		return nothing{}, c.Cache.(cache.Acquirer).GiveBack(ctx, key, slot)
	})
	return err
}

// Used implements [cache.Acquirer].
func (a acquirer) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	return do(ctx, a.s, func(c side) (int64, error) { return c.Cache.(cache.Acquirer).Used(ctx, key, window) })
}

type swapper struct{ s *store }

// CompareAndSwap implements [cache.CompareAndSwapper].
func (w swapper) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	return do(ctx, w.s, func(c side) (bool, error) {
		return c.Cache.(cache.CompareAndSwapper).CompareAndSwap(ctx, key, old, new, ttl)
	})
}

type multiGetter struct{ s *store }

// GetMany implements [cache.MultiGetter].
func (m multiGetter) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	_, err := do(ctx, m.s, func(c side) (nothing, error) {
		return nothing{}, c.Cache.(cache.MultiGetter).GetMany(ctx, keys, entries)
	})
	return err
}
