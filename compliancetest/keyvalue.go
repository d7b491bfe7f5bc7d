package compliancetest

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// oddStrings are keys and values that something between here and a store is known
// to have altered, cut, taken for another or for a command.
var oddStrings = []string{
	" ", "a", "A", "a ", " a", "ab", "a\x00", "\x00", "\x00a", "a\x00b", "\x01", "\xff\xfe", "a\xc3", "\r\n", "a\nb",
	"{", "}", "{}", "{a}", "{a}b", "{a", "a}", "a{}b", "{}{a}", "*", "a*", "?", "[a]", "%", "%00", `\`, `\x00`, `"a"`, "'a'",
	"a:b", "a/b", "../a", "$-1", "nil", "null", "0", "1e3", "é", "e\u0301", "日本", "\u200b", "\ufeffa",
	strings.Repeat("long ", 2000),
}

var keyValueRules = []rule[*trial]{
	{
		name: "absent-is-an-answer",
		why:  "a circuit without a stored state is a closed one; an error here would be taken for a broken store",
		check: func(t *trial) {
			value, ok, err := t.kv.Get(t.ctx, t.key("a"))
			must(err, "Get of a key that was never set")
			if ok || value != "" {
				failf("Get of a key that was never set is %q, %t, want \"\", false", value, ok)
			}
		},
	},
	{
		name: "zero-value-is-present",
		why:  "a stored \"\" or \"0\" that reads as absence is a state that is lost",
		check: func(t *trial) {
			for _, value := range []string{"", "0"} {
				t.set(t.key("a"), value, 0)
				t.wantValue(t.key("a"), value)
			}
		},
	},
	{
		name: "values-are-not-altered",
		why:  "values are strings of any bytes: an encoding with exceptions loses just the state nobody tested",
		check: func(t *trial) {
			for _, value := range oddStrings {
				t.set(t.key("a"), value, 0)
				t.wantValue(t.key("a"), value)
			}
		},
	},
	{
		name: "keys-are-kept-apart",
		why:  "keys are made of what users send, and two that meet share one circuit or one allowance",
		check: func(t *trial) {
			var keys []string
			for _, s := range oddStrings {
				// The random part goes to either end, so that a brace may come first or last.
				keys = append(keys, t.prefix+s, s+t.prefix)
			}
			for i, a := range oddStrings {
				b := oddStrings[(i+1)%len(oddStrings)]
				keys = append(keys, cache.Key(t.prefix+a, b), cache.Key(a+t.prefix, b), cache.Key(t.prefix+a, ""))
			}
			keys = append(keys, cache.Key(t.prefix, "a"), cache.Key(t.prefix+"a", ""))
			slices.Sort(keys)
			keys = slices.Compact(keys)
			for i, key := range keys {
				t.set(key, strconv.Itoa(i), long)
			}
			for i, key := range keys {
				t.wantValue(key, strconv.Itoa(i))
			}
			t.delete(keys[0])
			t.wantNothing(keys[0])
			for i, key := range keys[1:] {
				t.wantValue(key, strconv.Itoa(i+1))
			}
			for _, key := range keys {
				t.delete(key)
			}
		},
	},
	{
		name: "empty-key-is-a-key",
		why:  "the empty key is a key like any other, and \"no tenant\" is a tenant too",
		check: func(t *trial) {
			t.delete("")
			t.wantNothing("")
			t.set("", "a", long)
			t.wantValue("", "a")
			t.delete("")
			t.increment("", long, 1)
			t.increment("", long, 2)
			t.delete("")
			t.wantNothing("")
		},
	},
	{
		name: "set-replaces-the-value",
		why:  "a circuit that has closed must not read as open again",
		check: func(t *trial) {
			t.set(t.key("a"), "a longer value", 0)
			t.set(t.key("a"), "b", 0)
			t.wantValue(t.key("a"), "b")
		},
	},
	{
		name: "value-lives-for-its-ttl",
		why:  "a TTL that is cut to whole seconds, or is taken in another unit, ends a cool-down before its time",
		check: func(t *trial) {
			ttl := t.span()
			t.set(t.key("a"), "a", ttl)
			t.advance(ttl / 2)
			t.wantValue(t.key("a"), "a")
			if t.bubble {
				t.advance(ttl/2 - time.Millisecond)
				t.wantValue(t.key("a"), "a")
			}
			t.set(t.key("b"), "b", long)
			t.expire(short)
			t.wantValue(t.key("b"), "b")
		},
	},
	{
		name: "value-expires",
		why:  "the half-open state is what a circuit is in once the marker of its cool-down has expired",
		check: func(t *trial) {
			t.set(t.key("a"), "a", short)
			t.increment(t.key("n"), short, 1)
			t.expire(short)
			t.wantNothing(t.key("a"))
			t.wantNothing(t.key("n"))
			t.increment(t.key("n"), short, 1)
		},
	},
	{
		name: "zero-ttl-is-no-expiry",
		why:  "a TTL of zero says until deleted; stores that take it for \"at once\" or for a default lose the value",
		check: func(t *trial) {
			t.set(t.key("a"), "a", 0)
			t.increment(t.key("n"), 0, 1)
			t.expire(short)
			t.wantValue(t.key("a"), "a")
			t.increment(t.key("n"), 0, 2)
		},
	},
	{
		name: "set-replaces-the-ttl",
		why:  "what is set belongs to this Set alone; a TTL left over from the last one ends it early or keeps it for ever",
		check: func(t *trial) {
			t.set(t.key("cleared"), "a", short)
			t.set(t.key("cleared"), "b", 0)
			t.set(t.key("longer"), "a", short)
			t.set(t.key("longer"), "b", long)
			t.set(t.key("shorter"), "a", long)
			t.set(t.key("shorter"), "b", short)
			t.set(t.key("given"), "a", 0)
			t.set(t.key("given"), "b", short)
			t.expire(short)
			t.wantValue(t.key("cleared"), "b")
			t.wantValue(t.key("longer"), "b")
			t.wantNothing(t.key("shorter"))
			t.wantNothing(t.key("given"))
		},
	},
	{
		name: "tiny-ttl-is-rounded-up",
		why:  "a TTL below the store's resolution that becomes zero is a value that never goes away, or a command the server refuses",
		check: func(t *trial) {
			t.set(t.key("a"), "a", time.Nanosecond)
			t.increment(t.key("n"), time.Nanosecond, 1)
			if t.bubble {
				t.wantValue(t.key("a"), "a")
				t.wantValue(t.key("n"), "1")
			}
			t.outlive(0)
			t.wantNothing(t.key("a"))
			t.wantNothing(t.key("n"))
		},
	},
	{
		name: "longest-ttl-does-not-overflow",
		why:  "a TTL for ever and a day, added to the clock, must not end before today",
		check: func(t *trial) {
			t.advance(time.Millisecond) // a clock may begin at zero with the cache
			t.set(t.key("a"), "a", math.MaxInt64)
			t.wantValue(t.key("a"), "a")
			t.increment(t.key("n"), math.MaxInt64, 1)
			t.increment(t.key("n"), math.MaxInt64, 2)
		},
	},
	{
		name: "negative-ttl-is-refused",
		why:  "a negative TTL is a mistake in somebody's arithmetic; one that deletes, or stays for ever, hides it",
		check: func(t *trial) {
			const ttl = -time.Second
			mustFail(t.kv.Set(t.ctx, t.key("a"), "a", ttl), "Set with a TTL of %v", ttl)
			t.wantNothing(t.key("a"))
			_, err := t.kv.Increment(t.ctx, t.key("n"), ttl)
			mustFail(err, "Increment with a TTL of %v", ttl)
			t.wantNothing(t.key("n"))

			t.set(t.key("a"), "1", 0)
			mustFail(t.kv.Set(t.ctx, t.key("a"), "b", ttl), "Set with a TTL of %v", ttl)
			_, err = t.kv.Increment(t.ctx, t.key("a"), ttl)
			mustFail(err, "Increment with a TTL of %v", ttl)
			t.wantValue(t.key("a"), "1")
		},
	},
	{
		name: "increment-starts-at-one",
		why:  "the first failure of a run is number one",
		check: func(t *trial) {
			t.increment(t.key("n"), 0, 1)
			t.increment(t.key("n"), 0, 2)
			t.increment(t.key("other"), 0, 1)
		},
	},
	{
		name: "counter-is-its-decimal-string",
		why:  "counters and values are one thing: a breaker reads its count with the rest of its state",
		check: func(t *trial) {
			for want := int64(1); want <= 11; want++ {
				t.increment(t.key("n"), 0, want)
				t.wantValue(t.key("n"), strconv.FormatInt(want, 10))
			}
			t.set(t.key("n"), "5", 0)
			t.increment(t.key("n"), 0, 6)
			t.set(t.key("n"), "text", 0)
			t.wantValue(t.key("n"), "text")
		},
	},
	{
		name: "increment-goes-on-from-what-was-set",
		why:  "a count can be put in place by Set, such as that of a state that was carried over",
		check: func(t *trial) {
			for _, c := range []struct {
				value string
				want  int64
			}{
				{"41", 42},
				{"0", 1},
				{"-1", 0},
				{"-42", -41},
				{"9007199254740992", 9007199254740993}, // 2^53: beyond it a double is inexact
				{"-9223372036854775808", math.MinInt64 + 1},
				{"9223372036854775806", math.MaxInt64},
			} {
				t.set(t.key("n"), c.value, 0)
				t.increment(t.key("n"), 0, c.want)
				t.wantValue(t.key("n"), strconv.FormatInt(c.want, 10))
			}
		},
	},
	{
		name: "increment-of-text-is-an-error",
		why:  "starting again from zero over something that is not a count destroys it, and hides that two users share a key",
		check: func(t *trial) {
			for _, value := range []string{"", "a", "1a", "1.5", "1e3", "0x1", "1 ", " 1", "+1", "-0", "007", "--1", "9223372036854775808", "-9223372036854775809"} {
				t.set(t.key("n"), value, 0)
				_, err := t.kv.Increment(t.ctx, t.key("n"), short)
				mustMatch(err, cache.ErrNotInteger, "Increment of %q", value)
				t.wantValue(t.key("n"), value)
			}
		},
	},
	{
		name: "increment-does-not-overflow",
		why:  "a counter that wraps to the most negative number is under every threshold",
		check: func(t *trial) {
			const largest = "9223372036854775807"
			t.set(t.key("n"), largest, 0)
			_, err := t.kv.Increment(t.ctx, t.key("n"), 0)
			mustMatch(err, cache.ErrOverflow, "Increment of %s", largest)
			t.wantValue(t.key("n"), largest)
		},
	},
	{
		name: "increment-keeps-the-ttl",
		why:  "a counter whose TTL every increment refreshed would never expire under load, which is just when it must",
		check: func(t *trial) {
			t.increment(t.key("made"), short, 1)
			t.increment(t.key("made"), long, 2)
			t.increment(t.key("forever"), short, 1)
			t.increment(t.key("forever"), 0, 2)
			t.set(t.key("set"), "1", short)
			t.increment(t.key("set"), long, 2)
			t.set(t.key("kept"), "1", 0)
			t.increment(t.key("kept"), short, 2)
			t.increment(t.key("longer"), long, 1)
			t.increment(t.key("longer"), short, 2)
			t.expire(short)
			t.wantNothing(t.key("made"))
			t.wantNothing(t.key("forever"))
			t.wantNothing(t.key("set"))
			t.wantValue(t.key("kept"), "2")
			t.wantValue(t.key("longer"), "2")
		},
	},
	{
		name: "increment-after-expiry-is-a-new-key",
		why:  "a counter that comes back without a TTL blocks its owner for ever",
		check: func(t *trial) {
			t.increment(t.key("n"), short, 1)
			t.expire(short)
			t.increment(t.key("n"), short, 1)
			t.expire(short)
			t.wantNothing(t.key("n"))
			t.increment(t.key("deleted"), 0, 1)
			t.delete(t.key("deleted"))
			t.increment(t.key("deleted"), short, 1)
			t.expire(short)
			t.wantNothing(t.key("deleted"))
		},
	},
	{
		name: "increments-are-never-lost",
		why:  "failures come in crowds, and a circuit that counts some of them opens late or never",
		check: func(t *trial) {
			const callers, each = 64, 8
			var mu sync.Mutex
			var sums []int64
			t.together(callers, func(int) {
				for range each {
					n, err := t.kv.Increment(t.ctx, t.key("n"), long)
					must(err, "Increment by one of %d goroutines", callers)
					mu.Lock()
					sums = append(sums, n)
					mu.Unlock()
				}
			})
			t.wantValue(t.key("n"), strconv.Itoa(callers*each))
			slices.Sort(sums)
			for i, n := range sums {
				if n != int64(i+1) {
					failf("%d goroutines incremented: the sums they got are %v, want each of 1 to %d once", callers, sums, callers*each)
				}
			}
		},
	},
	{
		name: "values-are-whole",
		why:  "whoever reads while others write sees one of their values, and no mixture of two",
		check: func(t *trial) {
			const writers, each = 8, 8
			whole := func(i int) string { return strings.Repeat(string(rune('a'+i)), 1000) }
			t.set(t.key("a"), whole(0), long)
			t.together(2*writers, func(i int) {
				for range each {
					runtime.Gosched() // writers and readers by turns, also on one processor
					if i%2 == 0 {
						t.set(t.key("a"), whole(i/2), long)
						continue
					}
					value, ok, err := t.kv.Get(t.ctx, t.key("a"))
					must(err, "Get while %d goroutines set", writers)
					if !ok || len(value) != 1000 || strings.Trim(value, value[:1]) != "" {
						failf("Get while %d goroutines set is %s, %t, want what one of them set", writers, brief(value), ok)
					}
				}
			})
		},
	},
	{
		name: "delete-removes-the-value",
		why:  "a circuit is reset by deleting what is known of it",
		check: func(t *trial) {
			t.set(t.key("a"), "a", 0)
			t.delete(t.key("a"))
			t.wantNothing(t.key("a"))
			t.increment(t.key("n"), 0, 1)
			t.increment(t.key("n"), 0, 2)
			t.delete(t.key("n"))
			t.wantNothing(t.key("n"))
			t.increment(t.key("n"), 0, 1)
		},
	},
	{
		name: "delete-of-nothing-is-no-error",
		why:  "whoever resets a circuit need not know whether it has a state",
		check: func(t *trial) {
			t.delete(t.key("a"))
			t.set(t.key("a"), "a", 0)
			t.delete(t.key("a"))
			t.delete(t.key("a"))
		},
	},
	{
		name: "done-context-changes-nothing",
		why:  "a caller that went away must leave no trace, and learn that it was the one who went",
		check: func(t *trial) {
			key, absentKey := t.key("a"), t.key("b")
			t.set(key, "1", 0)
			t.done("Get", func(ctx context.Context) error { _, _, err := t.kv.Get(ctx, key); return err })
			t.done("Set", func(ctx context.Context) error { return t.kv.Set(ctx, key, "2", 0) })
			t.done("Increment", func(ctx context.Context) error { _, err := t.kv.Increment(ctx, key, 0); return err })
			t.done("Delete", func(ctx context.Context) error { return t.kv.Delete(ctx, key) })
			t.wantValue(key, "1")
			t.done("Set", func(ctx context.Context) error { return t.kv.Set(ctx, absentKey, "2", 0) })
			t.done("Increment", func(ctx context.Context) error { _, err := t.kv.Increment(ctx, absentKey, 0); return err })
			t.wantNothing(absentKey)
		},
	},
}
