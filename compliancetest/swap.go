package compliancetest

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

func (t *trial) compareAndSwap(key string, old, new cache.Entry, ttl time.Duration, want bool) {
	swapped, err := t.swap.CompareAndSwap(t.ctx, key, old, new, ttl)
	must(err, "CompareAndSwap(%q, %s, %s, %v)", key, entry(old), entry(new), ttl)
	if swapped != want {
		failf("CompareAndSwap(%q, %s, %s, %v) is %t, want %t", key, entry(old), entry(new), ttl, swapped, want)
	}
}

func entry(e cache.Entry) string {
	if !e.Present {
		return "absent"
	}
	return brief(e.Value)
}

var compareAndSwapperRules = []rule[*trial]{
	{
		name: "absent-to-present-adds",
		why:  "the first process to see a circuit fail makes its state, and only if there is none",
		check: func(t *trial) {
			t.compareAndSwap(t.key("a"), cache.Absent(), cache.Present("a"), 0, true)
			t.wantValue(t.key("a"), "a")
			t.compareAndSwap(t.key("a"), cache.Absent(), cache.Present("b"), 0, false)
			t.wantValue(t.key("a"), "a")
		},
	},
	{
		name: "present-to-present-replaces",
		why:  "a transition is made from the state that was seen and from no other",
		check: func(t *trial) {
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Present("b"), 0, false)
			t.wantNothing(t.key("a"))
			t.set(t.key("a"), "a", 0)
			t.compareAndSwap(t.key("a"), cache.Present("x"), cache.Present("b"), 0, false)
			t.wantValue(t.key("a"), "a")
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Present("b"), 0, true)
			t.wantValue(t.key("a"), "b")
		},
	},
	{
		name: "present-to-absent-deletes",
		why:  "a probe gives back its place, unless the lease ran out and another one holds it",
		check: func(t *trial) {
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Absent(), 0, false)
			t.set(t.key("a"), "a", 0)
			t.compareAndSwap(t.key("a"), cache.Present("x"), cache.Absent(), 0, false)
			t.wantValue(t.key("a"), "a")
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Absent(), 0, true)
			t.wantNothing(t.key("a"))
			// There is nothing to give a TTL to, so it is not looked at.
			t.set(t.key("a"), "a", 0)
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Absent(), -1, true)
			t.wantNothing(t.key("a"))
		},
	},
	{
		name: "absent-to-absent-compares",
		why:  "it is a question, whether there is still nothing, and makes nothing",
		check: func(t *trial) {
			t.compareAndSwap(t.key("a"), cache.Absent(), cache.Absent(), 0, true)
			t.wantNothing(t.key("a"))
			t.set(t.key("a"), "a", 0)
			t.compareAndSwap(t.key("a"), cache.Absent(), cache.Absent(), 0, false)
			t.wantValue(t.key("a"), "a")
		},
	},
	{
		name: "empty-value-is-not-absence",
		why:  "a stored \"\" is a value, and taking it for absence makes two owners of one place",
		check: func(t *trial) {
			t.compareAndSwap(t.key("a"), cache.Present(""), cache.Present("a"), 0, false)
			t.wantNothing(t.key("a"))
			t.set(t.key("a"), "", 0)
			t.compareAndSwap(t.key("a"), cache.Absent(), cache.Present("a"), 0, false)
			t.wantValue(t.key("a"), "")
			t.compareAndSwap(t.key("a"), cache.Present(""), cache.Present("a"), 0, true)
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Present(""), 0, true)
			t.wantValue(t.key("a"), "")
		},
	},
	{
		name: "values-are-compared-byte-for-byte",
		why:  "two states that differ in a byte are two states",
		check: func(t *trial) {
			for i, value := range oddStrings {
				next := oddStrings[(i+1)%len(oddStrings)]
				t.set(t.key("a"), value, 0)
				t.compareAndSwap(t.key("a"), cache.Present(next), cache.Present("x"), 0, false)
				t.compareAndSwap(t.key("a"), cache.Present(value+"\x00"), cache.Present("x"), 0, false)
				t.compareAndSwap(t.key("a"), cache.Present(value), cache.Present(next), 0, true)
				t.wantValue(t.key("a"), next)
			}
		},
	},
	{
		name: "counter-is-compared-by-its-string",
		why:  "counters and values are one thing: what Get showed is what is compared",
		check: func(t *trial) {
			t.increment(t.key("n"), 0, 1)
			t.increment(t.key("n"), 0, 2)
			t.compareAndSwap(t.key("n"), cache.Present("02"), cache.Present("7"), 0, false)
			t.compareAndSwap(t.key("n"), cache.Present("2"), cache.Present("7"), 0, true)
			t.increment(t.key("n"), 0, 8)
			t.compareAndSwap(t.key("n"), cache.Present("8"), cache.Absent(), 0, true)
			t.increment(t.key("n"), 0, 1)
		},
	},
	{
		name: "swap-gives-the-ttl",
		why:  "the TTL is that of the new value, as in Set; the old one's would end a cool-down early, or never",
		check: func(t *trial) {
			t.compareAndSwap(t.key("added"), cache.Absent(), cache.Present("a"), short, true)
			t.compareAndSwap(t.key("stays"), cache.Absent(), cache.Present("a"), long, true)
			t.set(t.key("shorter"), "a", 0)
			t.compareAndSwap(t.key("shorter"), cache.Present("a"), cache.Present("b"), short, true)
			t.set(t.key("longer"), "a", short)
			t.compareAndSwap(t.key("longer"), cache.Present("a"), cache.Present("b"), long, true)
			t.set(t.key("cleared"), "a", short)
			t.compareAndSwap(t.key("cleared"), cache.Present("a"), cache.Present("b"), 0, true)
			t.expire(short)
			t.wantNothing(t.key("added"))
			t.wantValue(t.key("stays"), "a")
			t.wantNothing(t.key("shorter"))
			t.wantValue(t.key("longer"), "b")
			t.wantValue(t.key("cleared"), "b")
		},
	},
	{
		name: "equal-values-renew-the-ttl",
		why:  "a probe that takes long keeps its lease by swapping its own name for itself",
		check: func(t *trial) {
			t.set(t.key("a"), "a", short)
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Present("a"), long, true)
			t.set(t.key("ends"), "a", long)
			t.compareAndSwap(t.key("ends"), cache.Present("a"), cache.Present("a"), short, true)
			t.expire(short)
			t.wantValue(t.key("a"), "a")
			t.wantNothing(t.key("ends"))
			t.compareAndSwap(t.key("ends"), cache.Present("a"), cache.Present("a"), long, false)
		},
	},
	{
		name: "refused-swap-keeps-the-ttl",
		why:  "whoever lost must not prolong the winner's lease, nor end it",
		check: func(t *trial) {
			t.set(t.key("a"), "a", short)
			t.compareAndSwap(t.key("a"), cache.Present("x"), cache.Present("y"), long, false)
			t.compareAndSwap(t.key("a"), cache.Absent(), cache.Present("a"), long, false)
			t.set(t.key("b"), "b", long)
			t.compareAndSwap(t.key("b"), cache.Present("x"), cache.Present("y"), short, false)
			t.compareAndSwap(t.key("b"), cache.Absent(), cache.Present("b"), short, false)
			t.expire(short)
			t.wantNothing(t.key("a"))
			t.wantValue(t.key("b"), "b")
		},
	},
	{
		name: "expired-is-absent",
		why:  "the place of a probe that died is free once its lease is over",
		check: func(t *trial) {
			t.set(t.key("a"), "a", short)
			t.set(t.key("b"), "b", short)
			t.expire(short)
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Present("b"), 0, false)
			t.compareAndSwap(t.key("b"), cache.Absent(), cache.Present("c"), 0, true)
			t.wantValue(t.key("b"), "c")
		},
	},
	{
		name: "ttl-is-checked-and-rounded-up-as-in-set",
		why:  "a negative TTL is somebody's mistake, and one below the store's resolution must not become \"for ever\"",
		check: func(t *trial) {
			_, err := t.swap.CompareAndSwap(t.ctx, t.key("a"), cache.Absent(), cache.Present("a"), -1)
			mustFail(err, "CompareAndSwap with a TTL of -1ns")
			t.wantNothing(t.key("a"))
			t.set(t.key("a"), "a", 0)
			_, err = t.swap.CompareAndSwap(t.ctx, t.key("a"), cache.Present("a"), cache.Present("b"), -1)
			mustFail(err, "CompareAndSwap with a TTL of -1ns")
			t.wantValue(t.key("a"), "a")
			t.compareAndSwap(t.key("a"), cache.Present("a"), cache.Present("b"), 1, true)
			if t.bubble {
				t.wantValue(t.key("a"), "b")
			}
			t.outlive(0)
			t.wantNothing(t.key("a"))
		},
	},
	{
		name: "one-caller-wins",
		why:  "a circuit is opened, and the place of a probe taken, by one of all who try at once",
		check: func(t *trial) {
			const callers = 64
			for round := range 4 {
				old := cache.Absent()
				if round > 0 {
					value, ok, err := t.kv.Get(t.ctx, t.key("a"))
					must(err, "Get(%q)", t.key("a"))
					old = cache.Entry{Value: value, Present: ok}
				}
				var winners atomic.Int64
				t.together(callers, func(i int) {
					mine := cache.Present(strconv.Itoa(round*callers + i))
					swapped, err := t.swap.CompareAndSwap(t.ctx, t.key("a"), old, mine, long)
					must(err, "CompareAndSwap by one of %d goroutines", callers)
					if swapped {
						winners.Add(1)
					}
				})
				if n := winners.Load(); n != 1 {
					failf("%d goroutines swapped %s for a value of their own: %d were told that they did, want 1", callers, entry(old), n)
				}
			}
		},
	},
	{
		name: "swaps-and-increments-are-one-order",
		why:  "a swap that overlooks an increment between its look and its change loses a failure",
		check: func(t *trial) {
			const callers, each = 16, 8
			t.set(t.key("n"), "0", long)
			t.together(callers, func(i int) {
				for range each {
					if i > 0 {
						_, err := t.kv.Increment(t.ctx, t.key("n"), long)
						must(err, "Increment by one of %d goroutines", callers)
						time.Sleep(time.Microsecond) // let the one who swaps in
						continue
					}
					for swapped, tries := false, 0; !swapped; tries++ {
						if tries > callers*each {
							failf("CompareAndSwap of what Get returned has refused %d times, more often than there were increments", tries)
						}
						value, ok, err := t.kv.Get(t.ctx, t.key("n"))
						must(err, "Get by one of %d goroutines", callers)
						n, _ := strconv.Atoi(value)
						swapped, err = t.swap.CompareAndSwap(t.ctx, t.key("n"),
							cache.Entry{Value: value, Present: ok}, cache.Present(strconv.Itoa(n+1)), long)
						must(err, "CompareAndSwap by one of %d goroutines", callers)
					}
				}
			})
			t.wantValue(t.key("n"), strconv.Itoa(callers*each))
		},
	},
	{
		name: "done-context-changes-nothing",
		why:  "a caller that went away must leave no trace, and learn that it was the one who went",
		check: func(t *trial) {
			t.set(t.key("a"), "a", 0)
			for _, c := range []struct {
				key      string
				old, new cache.Entry
			}{
				{t.key("a"), cache.Present("a"), cache.Present("b")},
				{t.key("a"), cache.Present("a"), cache.Absent()},
				{t.key("b"), cache.Absent(), cache.Present("b")},
			} {
				t.done("CompareAndSwap", func(ctx context.Context) error {
					_, err := t.swap.CompareAndSwap(ctx, c.key, c.old, c.new, 0)
					return err
				})
			}
			t.wantValue(t.key("a"), "a")
			t.wantNothing(t.key("b"))
		},
	},
}
