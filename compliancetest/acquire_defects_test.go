package compliancetest_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// asked breaks Acquire by what it does to the request.
func asked(change func(*cache.Request)) func(*broken) {
	return func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			change(&r)
			return b.able.Acquire(ctx, key, r)
		}
	}
}

// found breaks Acquire by how it finds the slot.
func found(slot func(hits []entry, now int64, r cache.Request) int64) func(*broken) {
	return func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			return b.acquire(ctx, key, r, slot)
		}
	}
}

// recorded breaks Acquire by what it makes of a slot that it has found, but not yet
// recorded.
func recorded(record func(b *broken, key string, at int64, r cache.Request) cache.Slot) func(*broken) {
	return func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			g, err := b.able.Acquire(ctx, key, r)
			if err != nil || !g.OK {
				return g, err
			}
			if err := b.able.GiveBack(ctx, key, g.Slot); err != nil {
				return g, err
			}
			g.Slot = record(b, key, g.Slot.At, r)
			return g, nil
		}
	}
}

func (b *broken) locked(f func() cache.Slot) cache.Slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f()
}

var acquirerDefects = []defect{
	{rule: "limit-is-exact", name: "one more gets in", put: asked(func(r *cache.Request) { r.Limit++ })},
	{rule: "limit-is-exact", name: "one fewer gets in", put: asked(func(r *cache.Request) {
		if r.Limit > 1 {
			r.Limit--
		}
	})},
	{rule: "hit-leaves-after-a-window", name: "it leaves a microsecond late", virtual: true, put: asked(func(r *cache.Request) { r.Window += time.Microsecond })},
	{rule: "hit-leaves-after-a-window", name: "it leaves a microsecond early", virtual: true, put: asked(func(r *cache.Request) { r.Window -= time.Microsecond })},
	{rule: "hit-leaves-after-a-window", name: "the wait is too short", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			g, err := b.able.Acquire(ctx, key, r)
			g.Wait = min(g.Wait, r.Window/10)
			return g, err
		}
	}},
	{rule: "window-slides", name: "it begins at the clock's edge", virtual: true, put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			return b.acquire(ctx, key, r, func(hits []entry, now int64, r cache.Request) int64 {
				window := micros(r.Window)
				edge := now - now%window
				if weight(slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.slot.At < edge })) < r.Limit {
					return now
				}
				return edge + window
			})
		}
	}},
	{rule: "window-slides", name: "it starts afresh when the first hit leaves", virtual: true, put: found(func(hits []entry, now int64, r cache.Request) int64 {
		window := micros(r.Window)
		for len(hits) > 0 && hits[0].slot.At <= now-window {
			start := hits[0].slot.At
			for len(hits) > 0 && hits[0].slot.At < start+window {
				hits = hits[1:]
			}
		}
		return slotFor(hits, now, r)
	})},
	{rule: "window-is-rounded-up-to-microseconds", name: "it is rounded down", virtual: true, put: asked(func(r *cache.Request) {
		r.Window = r.Window.Truncate(time.Microsecond)
	})},
	{rule: "refusal-records-nothing", name: "it is recorded as well", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			g, err := b.able.Acquire(ctx, key, r)
			if err == nil && !g.OK {
				b.record(key, time.Now().UnixMicro(), r.Weight)
			}
			return g, err
		}
	}},
	{rule: "weights-add-up", name: "each counts as one", put: asked(func(r *cache.Request) { r.Weight = min(r.Weight, 1) })},
	{rule: "weights-add-up", name: "those of one are not counted beside others", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		if slices.ContainsFunc(hits, func(h entry) bool { return h.weight > 1 }) {
			hits = slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.weight == 1 })
		}
		return slotFor(hits, now, r)
	})},
	{rule: "weights-leave-with-the-window", name: "a total is kept, and lowered by one for each that leaves", put: func(b *broken) {
		total, gone := map[string]int64{}, map[string]int{}
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			return b.acquire(ctx, key, r, func(hits []entry, now int64, r cache.Request) int64 {
				for ; gone[key] < len(hits) && hits[gone[key]].slot.At <= now-micros(r.Window); gone[key]++ {
					total[key]--
				}
				if total[key]+r.Weight > r.Limit {
					return max(now+1, slotFor(hits, now, r))
				}
				total[key] += r.Weight
				return slotFor(hits, now, r)
			})
		}
	}},
	{rule: "heavy-hit-waits-for-several", name: "it waits for the first to leave", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		at := slotFor(hits, now, r)
		if at == now || r.Weight == 1 {
			return at
		}
		r.Weight = 1
		return max(slotFor(hits, now, r), now+1)
	})},
	{rule: "heavy-hit-waits-for-several", name: "it waits for as many hits as it weighs", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		at := slotFor(hits, now, r)
		if at == now || int64(len(hits)) < r.Weight {
			return at
		}
		return hits[r.Weight-1].slot.At + micros(r.Window)
	})},
	{rule: "huge-weights-do-not-overflow", name: "the sum wraps", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		if weight(hits)+r.Weight <= r.Limit {
			return now
		}
		return slotFor(hits, now, r)
	})},
	{rule: "huge-weights-do-not-overflow", name: "weights are doubles", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		if float64(weight(hits))+float64(r.Weight) <= float64(r.Limit) {
			return now
		}
		return slotFor(hits, now, r)
	})},
	{rule: "far-slots-do-not-overflow", name: "the wait wraps", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			longest := r.MaxWait
			r.MaxWait = math.MaxInt64
			g, err := b.able.Acquire(ctx, key, r)
			g.Wait = time.Duration(g.Slot.At-time.Now().UnixMicro()) * time.Microsecond
			g.OK = g.Wait <= longest
			if !g.OK {
				return g, b.able.GiveBack(ctx, key, g.Slot)
			}
			return g, err
		}
	}},
	{rule: "slots-are-given-in-order", name: "all who wait get the next slot", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		return slotFor(slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.slot.At > now }), now, r)
	})},
	{rule: "slots-are-given-in-order", name: "they are a whole window apart", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		if at := slotFor(hits, now, r); at == now {
			return at
		}
		return hits[len(hits)-1].slot.At + micros(r.Window)
	})},
	{rule: "light-hit-does-not-overtake", name: "whatever fits now goes now", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		if weight(slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.slot.At > now })) <= r.Limit-r.Weight {
			return now
		}
		return slotFor(hits, now, r)
	})},
	{rule: "reservation-holds", name: "it is recorded at the instant of asking", put: recorded(func(b *broken, key string, _ int64, r cache.Request) cache.Slot {
		return b.locked(func() cache.Slot { return b.record(key, time.Now().UnixMicro(), r.Weight) })
	})},
	{rule: "reservation-holds", name: "whoever does not wait overtakes", put: found(func(hits []entry, now int64, r cache.Request) int64 {
		if r.MaxWait == 0 {
			hits = slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.slot.At > now-micros(r.Window)*3/5 })
		}
		return slotFor(hits, now, r)
	})},
	{rule: "series-lives-for-its-last-reservation", name: "it is forgotten a window after the last question", put: func(b *broken) {
		last := map[string]time.Time{}
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			last[key] = time.Now()
			return b.able.Acquire(ctx, key, r)
		}
		b.used = func(ctx context.Context, key string, window time.Duration) (int64, error) {
			if time.Since(last[key]) > window {
				return 0, nil
			}
			return b.able.Used(ctx, key, window)
		}
	}},
	{rule: "series-lives-for-its-last-reservation", name: "it is forgotten at the last slot", put: func(b *broken) {
		b.used = func(ctx context.Context, key string, window time.Duration) (int64, error) {
			if hits := b.acquired[key]; hits[len(hits)-1].slot.At <= time.Now().UnixMicro() {
				return 0, nil
			}
			return b.able.Used(ctx, key, window)
		}
	}},
	{rule: "longest-wait-is-kept", name: "any wait will do", put: asked(func(r *cache.Request) { r.MaxWait = math.MaxInt64 })},
	{rule: "longest-wait-is-kept", name: "the last instant of a wait wraps", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			r.MaxWait = max(0, time.Duration(time.Now().UnixNano()+int64(r.MaxWait)-time.Now().UnixNano()))
			if time.Now().UnixNano()+int64(r.MaxWait) < 0 {
				r.MaxWait = 0
			}
			g, err := b.able.Acquire(ctx, key, r)
			return g, err
		}
	}},
	{rule: "longest-wait-is-kept", name: "a wait of just the longest is too long", virtual: true, put: asked(func(r *cache.Request) {
		r.MaxWait = max(0, r.MaxWait-time.Microsecond)
	})},
	{rule: "longest-wait-is-kept", name: "what is refused takes the slot", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			longest := r.MaxWait
			r.MaxWait = math.MaxInt64
			g, err := b.able.Acquire(ctx, key, r)
			g.OK = g.Wait <= longest
			return g, err
		}
	}},
	{rule: "give-back-frees-the-last-slot", name: "it does nothing", put: func(b *broken) {
		b.give = func(context.Context, string, cache.Slot) error { return nil }
	}},
	{rule: "give-back-frees-a-slot-between", name: "only the last can be given back", put: func(b *broken) {
		b.give = func(ctx context.Context, key string, s cache.Slot) error {
			if hits := b.acquired[key]; len(hits) > 0 && hits[len(hits)-1].slot != s {
				return nil
			}
			return b.able.GiveBack(ctx, key, s)
		}
	}},
	{rule: "give-back-frees-a-slot-between", name: "those behind move up", put: func(b *broken) {
		b.give = func(ctx context.Context, key string, s cache.Slot) error {
			hits := b.acquired[key]
			for i := len(hits) - 1; i > 0 && hits[i-1].slot.Compare(s) >= 0; i-- {
				hits[i].slot.At = hits[i-1].slot.At
			}
			return b.able.GiveBack(ctx, key, s)
		}
	}},
	{rule: "give-back-returns-the-whole-weight", name: "it returns one", put: func(b *broken) {
		b.give = func(_ context.Context, key string, s cache.Slot) error {
			for i := range b.acquired[key] {
				if e := &b.acquired[key][i]; e.slot == s {
					e.weight--
				}
			}
			return nil
		}
	}},
	{rule: "give-back-in-any-order", name: "slots are found by their number in the line", put: func(b *broken) {
		b.give = func(_ context.Context, key string, s cache.Slot) error {
			hits := b.acquired[key]
			first := slices.MinFunc(hits, func(x, y entry) int { return cmp.Compare(x.slot.ID, y.slot.ID) }).slot.ID
			if i := int(s.ID - first); i < len(hits) && hits[i].slot.At == s.At {
				b.acquired[key] = slices.Delete(hits, i, i+1)
			}
			return nil
		}
	}},
	{rule: "give-back-of-nothing-is-no-error", name: "it is one", put: func(b *broken) {
		b.give = func(ctx context.Context, key string, s cache.Slot) error {
			if !slices.ContainsFunc(b.acquired[key], func(e entry) bool { return e.slot == s }) {
				return errOops
			}
			return b.able.GiveBack(ctx, key, s)
		}
	}},
	{rule: "give-back-of-nothing-is-no-error", name: "any slot of the instant goes", put: func(b *broken) {
		b.give = func(_ context.Context, key string, s cache.Slot) error {
			b.acquired[key] = slices.DeleteFunc(b.acquired[key], func(e entry) bool { return e.slot.At == s.At })
			return nil
		}
	}},
	{rule: "give-back-of-nothing-is-no-error", name: "it returns a weight and not a slot", put: func(b *broken) {
		b.give = func(_ context.Context, key string, _ cache.Slot) error {
			if hits := b.acquired[key]; len(hits) > 0 {
				b.acquired[key] = hits[:len(hits)-1]
			}
			return nil
		}
	}},
	{rule: "used-is-what-the-window-holds", name: "those of the future do not count", put: func(b *broken) {
		b.used = func(_ context.Context, key string, window time.Duration) (int64, error) {
			now := time.Now()
			return weight(slices.DeleteFunc(slices.Clone(b.acquired[key]), func(e entry) bool {
				return e.slot.At > now.UnixMicro() || e.slot.At <= now.Add(-window).UnixMicro()
			})), nil
		}
	}},
	{rule: "used-is-what-the-window-holds", name: "it counts entries", put: func(b *broken) {
		b.used = func(ctx context.Context, key string, window time.Duration) (int64, error) {
			n, err := b.able.Used(ctx, key, window)
			return min(n, int64(len(b.acquired[key]))), err
		}
	}},
	{rule: "used-is-what-the-window-holds", name: "those that have left still count", put: func(b *broken) {
		b.used = func(_ context.Context, key string, _ time.Duration) (int64, error) {
			return weight(b.acquired[key]), nil
		}
	}},
	{rule: "used-changes-nothing", name: "it discards what is older", put: func(b *broken) {
		b.used = func(ctx context.Context, key string, window time.Duration) (int64, error) {
			since := time.Now().Add(-window).UnixMicro()
			b.acquired[key] = slices.DeleteFunc(b.acquired[key], func(e entry) bool { return e.slot.At <= since })
			return b.able.Used(ctx, key, window)
		}
	}},
	{rule: "used-changes-nothing", name: "looking is a hit", put: func(b *broken) {
		b.used = func(ctx context.Context, key string, window time.Duration) (int64, error) {
			n, err := b.able.Used(ctx, key, window)
			b.record(key, time.Now().UnixMicro(), 1)
			return n, err
		}
	}},
	{rule: "bad-request-leaves-no-trace", name: "a weight that never fits waits for ever", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			if r.Weight > r.Limit {
				return cache.Grant{Wait: math.MaxInt64}, nil
			}
			return b.able.Acquire(ctx, key, r)
		}
	}},
	{rule: "bad-request-leaves-no-trace", name: "a weight below one gives back", put: func(b *broken) {
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			if r.Weight < 1 {
				b.record(key, time.Now().UnixMicro(), r.Weight)
			}
			return b.able.Acquire(ctx, key, r)
		}
	}},
	{rule: "slots-are-told-apart", name: "the instant is the name", put: recorded(func(b *broken, key string, at int64, r cache.Request) cache.Slot {
		return b.locked(func() cache.Slot {
			b.acquired[key] = append(b.acquired[key], entry{cache.Slot{At: at}, r.Weight})
			return cache.Slot{At: at}
		})
	})},
	{rule: "slots-are-told-apart", name: "the later name is the smaller", put: recorded(func(b *broken, key string, at int64, r cache.Request) cache.Slot {
		return b.locked(func() cache.Slot {
			slot := cache.Slot{At: at, ID: math.MaxUint64 - uint64(len(b.acquired[key]))}
			b.acquired[key] = append(b.acquired[key], entry{slot, r.Weight})
			return slot
		})
	}), virtual: true},
	{rule: "slot-names-are-not-used-again", name: "they are numbers from one", virtual: true, put: recorded(func(b *broken, key string, at int64, r cache.Request) cache.Slot {
		return b.locked(func() cache.Slot {
			slot := cache.Slot{At: at, ID: uint64(len(b.acquired[key]) + 1)}
			b.acquired[key] = append(b.acquired[key], entry{slot, r.Weight})
			return slot
		})
	})},
	{rule: "slot-names-are-not-used-again", name: "Delete begins again at one", virtual: true, put: func(b *broken) {
		b.del = func(ctx context.Context, key string) error {
			b.lastID = 1
			return b.able.Delete(ctx, key)
		}
	}},
	{rule: "series-are-kept-apart", name: "case is lost", put: func(b *broken) { b.rename = lower }},
	{rule: "series-are-kept-apart", name: "a hash tag is the key", put: func(b *broken) { b.rename = tag }},
	{rule: "series-and-value-share-a-key", name: "the slots outlive Delete", put: func(b *broken) { b.del = b.plain.Delete }},
	{rule: "series-and-value-share-a-key", name: "a value replaces the series", put: func(b *broken) {
		b.set = func(ctx context.Context, key, v string, ttl time.Duration) error {
			delete(b.acquired, key)
			return b.able.Set(ctx, key, v, ttl)
		}
	}},
	{rule: "limit-holds-in-a-crowd", name: "it decides, then records", put: recorded(func(b *broken, key string, at int64, r cache.Request) cache.Slot {
		pause()
		return b.locked(func() cache.Slot { return b.record(key, at, r.Weight) })
	})},
	{rule: "crowd-waits-in-line", name: "it decides, then records", put: recorded(func(b *broken, key string, at int64, r cache.Request) cache.Slot {
		pause()
		return b.locked(func() cache.Slot { return b.record(key, at, r.Weight) })
	})},
	{rule: "no-span-of-a-window-holds-more", name: "the clock is read before the step", put: func(b *broken) {
		var calls atomic.Int64
		b.take = func(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
			read := time.Now().UnixMicro()
			if calls.Add(1)%2 == 0 {
				pause() // every other one waits for the lock
			}
			g, err := b.acquire(ctx, key, r, func(hits []entry, _ int64, r cache.Request) int64 {
				return slotFor(slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.slot.At > read }), read, r)
			})
			g.Wait = max(g.Wait, 0)
			return g, err
		}
	}},
	{rule: "give-back-in-a-crowd", name: "it reads, then writes", put: func(b *broken) {
		b.give = func(_ context.Context, key string, s cache.Slot) error {
			b.mu.Lock()
			hits := slices.DeleteFunc(slices.Clone(b.acquired[key]), func(e entry) bool { return e.slot == s })
			b.mu.Unlock()
			pause()
			b.mu.Lock()
			b.acquired[key] = hits
			b.mu.Unlock()
			return nil
		}
	}},
	{rule: "done-context-changes-nothing", name: "the slot is taken all the same", put: func(b *broken) {
		b.take = func(c context.Context, key string, r cache.Request) (g cache.Grant, err error) {
			return g, late(c, func() error { g, err = b.able.Acquire(ctx, key, r); return err })
		}
	}},
	{rule: "done-context-changes-nothing", name: "the slot is given back all the same", put: func(b *broken) {
		b.give = func(c context.Context, key string, s cache.Slot) error {
			return late(c, func() error { return b.able.GiveBack(ctx, key, s) })
		}
	}},
}
