package compliancetest

import (
	"context"
	"math"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// noon is an instant to count from. It has nothing to do with the clock, and nor
// have the answers of a HitWindow.
var noon = time.Date(2030, 3, 17, 12, 0, 0, 0, time.UTC)

var hitWindowRules = []rule[*trial]{
	{
		name: "no-hits-is-an-answer",
		why:  "a key that nobody has asked for has its whole allowance; an error here would be taken for a broken store",
		check: func(t *trial) {
			t.wantHits(t.key("a"), noon, 0)
			t.wantNoOldest(t.key("a"), noon)
			t.hit(t.key("a"), noon, long)
			t.wantNoOldest(t.key("a"), noon.Add(time.Second))
			t.wantHits(t.key("a"), noon.Add(time.Second), 0)
		},
	},
	{
		name: "hit-at-since-is-inside",
		why:  "windows are half-open, and an implementation that draws the line elsewhere admits one too many or one too few",
		check: func(t *trial) {
			for _, at := range []time.Time{noon, noon.Add(time.Microsecond), noon.Add(time.Second)} {
				t.hit(t.key("a"), at, long)
			}
			t.wantOldest(t.key("a"), noon, noon)
			t.wantHits(t.key("a"), noon, 3)
			t.wantOldest(t.key("a"), noon.Add(time.Microsecond), noon.Add(time.Microsecond))
			t.wantHits(t.key("a"), noon.Add(time.Microsecond), 2)
			t.wantHits(t.key("a"), noon.Add(2*time.Microsecond), 1)
			t.wantHits(t.key("a"), noon.Add(time.Second), 1)
			t.wantHits(t.key("a"), noon.Add(time.Second+time.Microsecond), 0)
		},
	},
	{
		name: "hits-at-one-instant-are-many",
		why:  "an instant that serves as the identity of a hit makes of a burst a single one",
		check: func(t *trial) {
			for range 100 {
				t.hit(t.key("a"), noon, long)
			}
			t.wantHits(t.key("a"), noon, 100)
		},
	},
	{
		name: "hits-come-in-any-order",
		why:  "the instants are read by callers before they reach the store, so the later one may arrive first",
		check: func(t *trial) {
			for _, s := range []int{3, 1, 4, 0, 5, 2} {
				t.hit(t.key("a"), noon.Add(time.Duration(s)*time.Second), long)
			}
			t.wantOldest(t.key("a"), noon, noon)
			for s := range 6 {
				since := noon.Add(time.Duration(s) * time.Second)
				t.wantOldest(t.key("a"), since, since)
				t.wantHits(t.key("a"), since, 6-s)
			}
			// One before all that is left, after older ones may have been discarded.
			t.hit(t.key("a"), noon.Add(10*time.Second), long)
			t.hit(t.key("a"), noon.Add(7*time.Second), long)
			t.wantOldest(t.key("a"), noon.Add(6*time.Second), noon.Add(7*time.Second))
			t.wantHits(t.key("a"), noon.Add(6*time.Second), 2)
		},
	},
	{
		name: "microseconds-are-told-apart",
		why:  "an instant that passed through a floating-point number, or was glued together from parts without padding, lands on the wrong side",
		check: func(t *trial) {
			for i, base := range []time.Time{noon, noon.Add(999 * time.Microsecond), noon.Add(time.Second - time.Microsecond)} {
				key := t.key(string(rune('a' + i)))
				for n := range 4 {
					t.hit(key, base.Add(time.Duration(n)*time.Microsecond), long)
				}
				for n := range 4 {
					since := base.Add(time.Duration(n) * time.Microsecond)
					t.wantOldest(key, since, since)
					t.wantHits(key, since, 4-n)
				}
			}
		},
	},
	{
		name: "finer-than-a-microsecond-is-cut-off",
		why:  "a boundary that one implementation draws in nanoseconds is another one in the next",
		check: func(t *trial) {
			t.hit(t.key("a"), noon.Add(999*time.Nanosecond), long)
			t.wantOldest(t.key("a"), noon, noon)
			t.wantOldest(t.key("a"), noon.Add(999*time.Nanosecond), noon)
			t.wantHits(t.key("a"), noon.Add(999*time.Nanosecond), 1)
			t.wantHits(t.key("a"), noon.Add(time.Microsecond), 0)
		},
	},
	{
		name: "instants-may-be-far-apart",
		why:  "an instant is the caller's and no clock of the store has a say in it, be it a century from now or before the Unix epoch",
		check: func(t *trial) {
			at := []time.Time{
				time.Date(1901, 1, 1, 0, 0, 0, 1000, time.UTC),
				time.Unix(-1, 0),
				time.Unix(0, 0),
				time.Unix(0, 1000),
				noon,
				time.Date(2200, 1, 1, 0, 0, 0, 1000, time.FixedZone("", 3600)),
			}
			for i := range at {
				t.hit(t.key("a"), at[len(at)-1-i], long)
			}
			t.wantOldest(t.key("a"), time.Time{}, at[0])
			t.wantHits(t.key("a"), time.Time{}, len(at))
			for i, since := range at {
				t.wantOldest(t.key("a"), since, since)
				t.wantHits(t.key("a"), since, len(at)-i)
			}
		},
	},
	{
		name: "count-discards-only-what-is-older",
		why:  "whoever counts again, from the same instant or a later one, must find the same",
		check: func(t *trial) {
			for s := range 10 {
				t.hit(t.key("a"), noon.Add(time.Duration(s)*time.Second), long)
			}
			for s := range 10 {
				since := noon.Add(time.Duration(s) * time.Second)
				t.wantHits(t.key("a"), since, 10-s)
				t.wantHits(t.key("a"), since, 10-s)
				t.wantOldest(t.key("a"), since, since)
			}
		},
	},
	{
		name: "oldest-discards-nothing",
		why:  "asking how long to wait must not change how many there are",
		check: func(t *trial) {
			for s := range 10 {
				t.hit(t.key("a"), noon.Add(time.Duration(s)*time.Second), long)
			}
			t.wantOldest(t.key("a"), noon.Add(9*time.Second), noon.Add(9*time.Second))
			t.wantNoOldest(t.key("a"), noon.Add(10*time.Second))
			t.wantOldest(t.key("a"), noon, noon)
			t.wantHits(t.key("a"), noon, 10)
		},
	},
	{
		name: "series-are-kept-apart",
		why:  "keys are made of what users send, and two that meet share one allowance",
		check: func(t *trial) {
			var keys []string
			for _, s := range oddStrings {
				keys = append(keys, t.prefix+s, s+t.prefix, cache.Key(t.prefix+s, s))
			}
			for i, key := range keys {
				for range i%3 + 1 {
					t.hit(key, noon.Add(time.Duration(i)*time.Second), long)
				}
			}
			for i, key := range keys {
				t.wantOldest(key, noon, noon.Add(time.Duration(i)*time.Second))
				t.wantHits(key, noon, i%3+1)
			}
			for _, key := range keys {
				t.delete(key)
			}
		},
	},
	{
		name: "empty-key-is-a-series",
		why:  "the empty key is a key like any other, and \"no tenant\" is a tenant too",
		check: func(t *trial) {
			t.delete("")
			// Without a Delete, instants of its own tell this run's hits from another's.
			at := time.Now().Truncate(time.Microsecond)
			t.hit("", at, long)
			t.hit("", at, long)
			t.wantHits("", at, 2)
			t.delete("")
		},
	},
	{
		name: "series-lives-for-its-ttl",
		why:  "a series that is gone while its window is open is an allowance handed out twice",
		check: func(t *trial) {
			ttl := t.span()
			t.hit(t.key("a"), noon, ttl)
			t.advance(ttl / 2)
			t.wantHits(t.key("a"), noon, 1)
			t.hit(t.key("b"), noon, long)
			t.outlive(short)
			t.wantHits(t.key("b"), noon, 1)
		},
	},
	{
		name: "series-expires",
		why:  "a key is seen once and never again, millions of times over",
		check: func(t *trial) {
			t.hit(t.key("a"), noon, short)
			t.hit(t.key("a"), noon.Add(time.Hour), short)
			t.outlive(short)
			t.wantNoOldest(t.key("a"), noon)
			t.wantHits(t.key("a"), noon, 0)
			t.hit(t.key("a"), noon, long)
			t.wantHits(t.key("a"), noon, 1)
		},
	},
	{
		name: "hit-extends-the-life-of-the-series",
		why:  "a series under load would otherwise vanish as a whole, with a window's worth of hits in it",
		check: func(t *trial) {
			t.hit(t.key("long"), noon, short)
			t.hit(t.key("long"), noon, long)
			ttl := t.span()
			t.hit(t.key("again"), noon, ttl)
			t.advance(ttl / 2)
			t.hit(t.key("again"), noon, ttl)
			t.outlive(ttl / 2)
			t.wantHits(t.key("again"), noon, 2)
			t.wantHits(t.key("long"), noon, 2)
		},
	},
	{
		name: "hit-never-shortens-the-life-of-the-series",
		why:  "a reservation far ahead has a long TTL, and the next hit's shorter one must not forget it",
		check: func(t *trial) {
			t.hit(t.key("a"), noon, long)
			t.hit(t.key("a"), noon, short)
			t.outlive(short)
			t.wantHits(t.key("a"), noon, 2)
		},
	},
	{
		name: "tiny-ttl-is-rounded-up",
		why:  "a window below the store's resolution must not make a series that never goes away, nor a command the server refuses",
		check: func(t *trial) {
			t.hit(t.key("a"), noon, time.Nanosecond)
			if t.bubble {
				t.wantHits(t.key("a"), noon, 1)
			}
			t.outlive(0)
			t.wantHits(t.key("a"), noon, 0)
		},
	},
	{
		name: "longest-ttl-does-not-overflow",
		why:  "a TTL for ever and a day, added to the clock, must not end before today",
		check: func(t *trial) {
			t.advance(time.Millisecond) // a clock may begin at zero with the cache
			t.hit(t.key("a"), noon, math.MaxInt64)
			t.hit(t.key("a"), noon, long)
			t.wantHits(t.key("a"), noon, 2)
		},
	},
	{
		name: "ttl-must-be-above-zero",
		why:  "a series without an end is a leak, one for every key ever seen",
		check: func(t *trial) {
			for _, ttl := range []time.Duration{0, -1, -time.Second} {
				mustFail(t.hits.RecordHit(t.ctx, t.key("a"), noon, ttl), "RecordHit with a TTL of %v", ttl)
			}
			t.wantHits(t.key("a"), noon, 0)
			t.hit(t.key("a"), noon, long)
			for _, ttl := range []time.Duration{0, -1, -time.Second} {
				mustFail(t.hits.RecordHit(t.ctx, t.key("a"), noon, ttl), "RecordHit with a TTL of %v", ttl)
			}
			t.wantHits(t.key("a"), noon, 1)
		},
	},
	{
		name: "hits-are-never-lost",
		why:  "callers come in crowds, and a limiter that counts some of them lets the others through twice",
		check: func(t *trial) {
			const callers, each = 64, 8
			t.together(callers, func(i int) {
				for n := range each {
					at := noon // half of the hits at one instant, half each at its own
					if n%2 == 1 {
						at = noon.Add(time.Duration(n*callers+i) * time.Microsecond)
					}
					t.hit(t.key("a"), at, long)
				}
			})
			t.wantHits(t.key("a"), noon, callers*each)
		},
	},
	{
		name: "done-context-changes-nothing",
		why:  "a caller that went away must leave no trace, and learn that it was the one who went",
		check: func(t *trial) {
			key := t.key("a")
			t.done("RecordHit", func(ctx context.Context) error { return t.hits.RecordHit(ctx, key, noon, long) })
			t.hit(key, noon, long)
			t.done("RecordHit", func(ctx context.Context) error { return t.hits.RecordHit(ctx, key, noon, long) })
			t.done("CountHits", func(ctx context.Context) error {
				_, err := t.hits.CountHits(ctx, key, noon.Add(time.Second))
				return err
			})
			t.done("OldestHit", func(ctx context.Context) error { _, _, err := t.hits.OldestHit(ctx, key, noon); return err })
			t.wantHits(key, noon, 1)
		},
	},
}
