package compliancetest

import (
	"context"
	"strconv"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// part returns a key of this trial's own group.
func (t *trial) part(name string) string { return cache.Key(t.prefix, name) }

func (t *trial) getMany(keys []string, entries []cache.Entry) {
	must(t.many.GetMany(t.ctx, keys, entries), "GetMany(%q)", keys)
}

func (t *trial) wantMany(keys []string, want ...cache.Entry) {
	entries := make([]cache.Entry, len(keys))
	t.getMany(keys, entries)
	sameEntries(keys, entries, want)
}

func sameEntries(keys []string, got, want []cache.Entry) {
	for i := range want {
		if got[i] != want[i] {
			failf("GetMany(%q): entry %d is %s, want %s", keys, i, entry(got[i]), entry(want[i]))
		}
	}
}

var multiGetterRules = []rule[*trial]{
	{
		name: "entries-are-in-the-order-of-the-keys",
		why:  "a breaker knows its state from its count by the place in the list",
		check: func(t *trial) {
			for i := range 9 {
				t.set(t.part(strconv.Itoa(i)), strconv.Itoa(i), 0)
			}
			t.wantMany([]string{t.part("7"), t.part("0"), t.part("3")}, cache.Present("7"), cache.Present("0"), cache.Present("3"))
			t.wantMany([]string{t.part("3"), t.part("7"), t.part("0")}, cache.Present("3"), cache.Present("7"), cache.Present("0"))
		},
	},
	{
		name: "absent-keys-have-absent-entries",
		why:  "an absent key that is left out moves all behind it to the wrong place",
		check: func(t *trial) {
			t.set(t.part("b"), "b", 0)
			t.set(t.part("d"), "", 0)
			t.wantMany([]string{t.part("a"), t.part("b"), t.part("c"), t.part("d"), t.part("e")},
				cache.Absent(), cache.Present("b"), cache.Absent(), cache.Present(""), cache.Absent())
			t.wantMany([]string{t.part("a"), t.part("c")}, cache.Absent(), cache.Absent())
		},
	},
	{
		name: "every-entry-is-filled",
		why:  "the caller's slice is used again, and what is left of the last circuit must not pass for this one's state",
		check: func(t *trial) {
			t.set(t.part("b"), "b", 0)
			keys := []string{t.part("a"), t.part("b"), t.part("a")}
			entries := []cache.Entry{cache.Present("old"), cache.Present("old"), {Value: "old"}}
			t.getMany(keys, entries)
			sameEntries(keys, entries, []cache.Entry{cache.Absent(), cache.Present("b"), cache.Absent()})
		},
	},
	{
		name: "a-key-may-come-twice",
		why:  "an implementation that collects into a map answers once where it was asked twice",
		check: func(t *trial) {
			t.set(t.part("a"), "a", 0)
			t.set(t.part("b"), "b", 0)
			t.wantMany([]string{t.part("a"), t.part("b"), t.part("a")}, cache.Present("a"), cache.Present("b"), cache.Present("a"))
		},
	},
	{
		name: "one-key-or-none-will-do",
		why:  "servers refuse a command without keys, and a caller with an empty list has asked nothing wrong",
		check: func(t *trial) {
			t.set(t.part("a"), "a", 0)
			t.wantMany([]string{t.part("a")}, cache.Present("a"))
			t.wantMany(nil)
			t.wantMany([]string{})
		},
	},
	{
		name: "values-are-not-altered",
		why:  "what GetMany shows is what Get shows: one encoding, not two",
		check: func(t *trial) {
			var keys []string
			var want []cache.Entry
			for i, s := range oddStrings {
				key := t.part(s)
				if i%5 == 4 {
					want = append(want, cache.Absent())
				} else {
					t.set(key, s, long)
					want = append(want, cache.Present(s))
				}
				keys = append(keys, key)
			}
			t.wantMany(keys, want...)
			for _, key := range keys {
				t.delete(key)
			}
		},
	},
	{
		name: "counters-are-decimal-strings",
		why:  "counters and values are one thing, here as in Get",
		check: func(t *trial) {
			t.increment(t.part("n"), 0, 1)
			t.increment(t.part("n"), 0, 2)
			t.set(t.part("m"), "41", 0)
			t.increment(t.part("m"), 0, 42)
			t.wantMany([]string{t.part("n"), t.part("m")}, cache.Present("2"), cache.Present("42"))
		},
	},
	{
		name: "expired-is-absent",
		why:  "the marker of a cool-down is read together with the state, and its absence is the whole message",
		check: func(t *trial) {
			t.set(t.part("a"), "a", short)
			t.set(t.part("b"), "b", long)
			t.expire(short)
			t.wantMany([]string{t.part("a"), t.part("b")}, cache.Absent(), cache.Present("b"))
		},
	},
	{
		name: "all-are-of-one-instant",
		why:  "a state of before a transition with a count of after it is a circuit that never was",
		check: func(t *trial) {
			// The writer raises a, then b: at any instant a is b or b+1. A reader who takes a
			// first and b later sees b ahead.
			a, b := t.part("a"), t.part("b")
			t.set(a, "0", long)
			t.set(b, "0", long)
			written := make(chan struct{})
			t.together(2, func(i int) {
				if i == 0 {
					defer close(written)
					for n := int64(1); n <= 100; n++ {
						t.increment(a, long, n)
						t.increment(b, long, n)
						time.Sleep(time.Microsecond)
					}
					return
				}
				for {
					entries := make([]cache.Entry, 2)
					t.getMany([]string{a, b}, entries)
					first, _ := strconv.Atoi(entries[0].Value)
					second, _ := strconv.Atoi(entries[1].Value)
					if first != second && first != second+1 {
						failf("GetMany while a is raised before b: a is %d and b is %d, want a to be b or b+1", first, second)
					}
					select {
					case <-written:
						return
					case <-time.After(time.Microsecond):
					}
				}
			})
		},
	},
	{
		name: "done-context-returns-its-cause",
		why:  "a caller that went away must learn that it was the one who went",
		check: func(t *trial) {
			t.set(t.part("a"), "a", 0)
			t.done("GetMany", func(ctx context.Context) error {
				return t.many.GetMany(ctx, []string{t.part("a")}, make([]cache.Entry, 1))
			})
		},
	},
}
