package compliancetest

import "time"

var cacheRules = []rule[*trial]{
	{
		name: "value-and-series-share-a-key",
		why:  "a limiter and a breaker on one cache may well have chosen the same name",
		check: func(t *trial) {
			t.set(t.key("a"), "a", 0)
			t.hit(t.key("a"), noon, long)
			t.wantValue(t.key("a"), "a")
			t.wantHits(t.key("a"), noon, 1)
			t.set(t.key("a"), "b", 0)
			t.wantHits(t.key("a"), noon, 1)

			t.hit(t.key("n"), noon, long)
			t.wantNothing(t.key("n"))
			t.increment(t.key("n"), 0, 1)
			t.hit(t.key("n"), noon, long)
			t.increment(t.key("n"), 0, 2)
			t.wantOldest(t.key("n"), noon, noon)
			t.wantHits(t.key("n"), noon, 2)
		},
	},
	{
		name: "values-and-series-of-all-keys-are-kept-apart",
		why:  "a series that is stored under its key and a few letters more meets the value of whoever has chosen just that key",
		check: func(t *trial) {
			key := t.key("a")
			var others []string
			for _, mark := range []string{"h", "hits", "s", "series", "w", "window", "v", "value", "c", "counter", "z", "zset", "ttl", "seq", "id"} {
				for _, sep := range []string{"", ":", "/", ".", "-", "_", "#", "\x00"} {
					others = append(others, key+sep+mark, mark+sep+key, "{"+key+"}"+sep+mark)
				}
			}
			t.hit(key, noon, long)
			for _, other := range others {
				t.wantNothing(other)
				t.set(other, "a", long)
			}
			t.hit(key, noon, long)
			t.wantHits(key, noon, 2)
			t.wantNothing(key)
			for _, other := range others {
				t.wantValue(other, "a")
				t.delete(other)
			}
			t.wantHits(key, noon, 2)
		},
	},
	{
		name: "value-and-series-expire-apart",
		why:  "each has a TTL of its own, and one must not take the other with it nor keep it alive",
		check: func(t *trial) {
			t.set(t.key("value"), "a", short)
			t.hit(t.key("value"), noon, long)
			t.hit(t.key("series"), noon, short)
			t.set(t.key("series"), "a", long)
			t.increment(t.key("counter"), short, 1)
			t.hit(t.key("counter"), noon, long)
			t.outlive(short)
			t.wantNothing(t.key("value"))
			t.wantHits(t.key("value"), noon, 1)
			t.wantHits(t.key("series"), noon, 0)
			t.wantValue(t.key("series"), "a")
			t.wantNothing(t.key("counter"))
			t.wantHits(t.key("counter"), noon, 1)
		},
	},
	{
		name: "delete-clears-both",
		why:  "a limiter is reset by Delete; hits that stay behind refuse a caller who was given a fresh start",
		check: func(t *trial) {
			t.set(t.key("a"), "a", 0)
			for s := range 3 {
				t.hit(t.key("a"), noon.Add(time.Duration(s)*time.Second), long)
			}
			t.hit(t.key("other"), noon, long)
			t.delete(t.key("a"))
			t.wantNothing(t.key("a"))
			t.wantNoOldest(t.key("a"), noon)
			t.wantHits(t.key("a"), noon, 0)
			t.wantHits(t.key("other"), noon, 1)

			t.hit(t.key("a"), noon, short)
			t.delete(t.key("a"))
			t.hit(t.key("a"), noon, short)
			t.wantNothing(t.key("a"))
			t.outlive(short)
			t.wantHits(t.key("a"), noon, 0)
		},
	},
}
