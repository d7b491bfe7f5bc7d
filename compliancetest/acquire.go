package compliancetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A wide window is one that no rule lives to see the end of: what is asked within it
// has its slots at instants that can be reckoned without a clock.
const wide = time.Minute

// one asks for one of limit, now or at any time later.
func one(limit int64, window, maxWait time.Duration) cache.Request {
	return cache.Request{Limit: limit, Window: window, Weight: 1, MaxWait: maxWait}
}

func (t *trial) acquire(key string, r cache.Request) cache.Grant {
	g, err := t.acq.Acquire(t.ctx, key, r)
	must(err, "Acquire(%q, %+v)", key, r)
	switch {
	case g.OK && (g.Wait < 0 || g.Wait > r.MaxWait):
		failf("Acquire(%q, %+v) grants a slot after %v, want one after 0 to MaxWait", key, r, g.Wait)
	case !g.OK && g.Wait <= r.MaxWait:
		failf("Acquire(%q, %+v) refuses what is free after %v, want a Wait above MaxWait, or the slot", key, r, g.Wait)
	}
	return g
}

func (t *trial) granted(key string, r cache.Request) cache.Grant {
	g := t.acquire(key, r)
	if !g.OK {
		failf("Acquire(%q, %+v) refuses, for %v; want a grant", key, r, g.Wait)
	}
	return g
}

func (t *trial) refused(key string, r cache.Request) cache.Grant {
	g := t.acquire(key, r)
	if g.OK {
		failf("Acquire(%q, %+v) grants a slot after %v, want a refusal", key, r, g.Wait)
	}
	return g
}

// at wants the slot of g to be d after that of first.
func at(g, first cache.Grant, d time.Duration, what string) {
	if got := time.Duration(g.Slot.At-first.Slot.At) * time.Microsecond; got != d {
		failf("%s has a slot %v after the first, want %v", what, got, d)
	}
}

func (t *trial) giveBack(key string, s cache.Slot) {
	must(t.acq.GiveBack(t.ctx, key, s), "GiveBack(%q, %+v)", key, s)
}

func (t *trial) wantUsed(key string, window time.Duration, want int64) {
	n, err := t.acq.Used(t.ctx, key, window)
	must(err, "Used(%q, %v)", key, window)
	if n != want {
		failf("Used(%q, %v) is %d, want %d", key, window, n, want)
	}
}

// wantLimit wants no span of a window with more than limit of the slots, which it puts
// in order.
func (t *trial) wantLimit(slots []cache.Slot, limit int, window time.Duration) {
	slices.SortFunc(slots, cache.Slot.Compare)
	for i, s := range slots {
		if i > 0 && s == slots[i-1] {
			failf("slot %+v is given out twice", s)
		}
		if i < limit {
			continue
		}
		if span := time.Duration(s.At-slots[i-limit].At) * time.Microsecond; span < window {
			failf("of %d slots, there are %d within %v, want no more than %d within %v", len(slots), limit+1, span, limit, window)
		}
	}
}

var acquirerRules = []rule[*trial]{
	{
		name: "limit-is-exact",
		why:  "a limiter that admits one more than it was told breaks somebody's contract with the host",
		check: func(t *trial) {
			for _, limit := range []int64{1, 3, 100} {
				key := t.key(strconv.FormatInt(limit, 10))
				for range limit {
					if g := t.granted(key, one(limit, wide, 0)); g.Wait != 0 {
						failf("Acquire of a free slot is %v ahead, want now", g.Wait)
					}
				}
				for range 3 {
					if g := t.refused(key, one(limit, wide, 0)); g.Wait > wide {
						failf("Acquire is refused for %v, want no more than the window, %v", g.Wait, wide)
					}
				}
				t.wantUsed(key, wide, limit)
			}
		},
	},
	{
		name: "hit-leaves-after-a-window",
		why:  "a hit at t stops counting at t + window exactly: a caller who waits as long as it was told is admitted",
		check: func(t *trial) {
			window := t.span()
			t.granted(t.key("a"), one(1, window, 0))
			t.advance(window / 2)
			wait := t.refused(t.key("a"), one(1, window, 0)).Wait
			if t.bubble {
				if wait != window/2 {
					failf("Acquire, half a window after the hit, is refused for %v, want %v", wait, window/2)
				}
				t.advance(wait - time.Microsecond)
				if wait = t.refused(t.key("a"), one(1, window, 0)).Wait; wait != time.Microsecond {
					failf("Acquire, a microsecond before the slot is free, is refused for %v, want %v", wait, time.Microsecond)
				}
			}
			t.advance(wait)
			t.granted(t.key("a"), one(1, window, 0))
		},
	},
	{
		name: "window-slides",
		why:  "a window that is counted from the clock's edge admits twice the limit around it",
		check: func(t *trial) {
			window := t.span()
			r := one(2, window, 0)
			t.granted(t.key("a"), r)
			t.advance(window / 2)
			t.granted(t.key("a"), r)
			t.advance(t.refused(t.key("a"), r).Wait)
			t.granted(t.key("a"), r)
			if t.bubble {
				t.refused(t.key("a"), r)
				t.advance(window / 2)
				t.granted(t.key("a"), r)
				t.refused(t.key("a"), r)
			}
		},
	},
	{
		name: "window-is-rounded-up-to-microseconds",
		why:  "rounding down admits before the window is over",
		check: func(t *trial) {
			if !t.bubble {
				return // there is no telling a microsecond from the next on a server
			}
			r := one(1, 1500*time.Nanosecond, 0)
			t.granted(t.key("a"), r)
			t.advance(time.Microsecond)
			t.refused(t.key("a"), r)
			t.advance(time.Microsecond)
			t.granted(t.key("a"), r)
		},
	},
	{
		name: "refusal-records-nothing",
		why:  "callers who keep asking must not keep each other out",
		check: func(t *trial) {
			window := t.span()
			t.granted(t.key("a"), one(1, window, 0))
			for range 10 {
				t.refused(t.key("a"), one(1, window, 0))
			}
			t.wantUsed(t.key("a"), wide, 1)
			t.advance(t.refused(t.key("a"), one(1, window, 0)).Wait)
			t.granted(t.key("a"), one(1, window, 0))
		},
	},
	{
		name: "weights-add-up",
		why:  "tokens per minute are a weight, not a number of entries",
		check: func(t *trial) {
			r := func(weight int64) cache.Request { return cache.Request{Limit: 10, Window: wide, Weight: weight} }
			t.granted(t.key("a"), r(7))
			t.refused(t.key("a"), r(4))
			t.granted(t.key("a"), r(3))
			t.refused(t.key("a"), r(1))
			t.wantUsed(t.key("a"), wide, 10)
			t.granted(t.key("all"), r(10))
			t.refused(t.key("all"), r(1))
			for _, weight := range []int64{1, 1, 1, 4, 1, 2} {
				t.granted(t.key("mixed"), r(weight))
			}
			t.wantUsed(t.key("mixed"), wide, 10)
			t.refused(t.key("mixed"), r(1))
		},
	},
	{
		name: "weights-leave-with-the-window",
		why:  "a hit takes its whole weight with it when it leaves, and no more",
		check: func(t *trial) {
			window := t.span()
			r := func(weight int64) cache.Request { return cache.Request{Limit: 10, Window: window, Weight: weight} }
			t.granted(t.key("a"), r(4))
			t.advance(window / 2)
			t.granted(t.key("a"), r(6))
			t.advance(t.refused(t.key("a"), r(1)).Wait)
			t.refused(t.key("a"), r(5))
			t.granted(t.key("a"), r(4))
			t.refused(t.key("a"), r(1))
			t.wantUsed(t.key("a"), window, 10)
		},
	},
	{
		name: "heavy-hit-waits-for-several",
		why:  "a weight needs as many hits to leave as make room for it, and not just the first",
		check: func(t *trial) {
			r := func(weight int64) cache.Request {
				return cache.Request{Limit: 10, Window: wide, Weight: weight, MaxWait: long}
			}
			t.granted(t.key("a"), r(2))
			t.advance(time.Millisecond)
			second := t.granted(t.key("a"), r(3))
			t.advance(time.Millisecond)
			t.granted(t.key("a"), r(5))

			// 2, 3 and 5 are in the window; 5 more fit when 2 and 3 have left.
			at(t.granted(t.key("a"), r(5)), second, wide, "a hit that needs two to leave")
			// 5 is left, and 5 a window ahead; 6 more fit when both have left.
			at(t.granted(t.key("a"), r(6)), second, 2*wide, "a hit that needs one of the window and one ahead to leave")
			// 6 is two windows ahead, so another 4 fit beside it, and 1 must wait.
			at(t.granted(t.key("a"), r(4)), second, 2*wide, "a hit that fits beside the last one")
			at(t.granted(t.key("a"), r(1)), second, 3*wide, "a hit that no longer fits")
		},
	},
	{
		name: "huge-weights-do-not-overflow",
		why:  "a sum that wraps below zero, or a double that cannot count to it, is a limit without effect",
		check: func(t *trial) {
			for _, limit := range []int64{1 << 53, math.MaxInt64} {
				r := cache.Request{Limit: limit, Window: wide, Weight: limit}
				key := t.key(strconv.FormatInt(limit, 10))
				g, err := t.acq.Acquire(t.ctx, key, r)
				if err != nil && limit > 1<<53 {
					return // it says that it cannot count that far
				}
				must(err, "Acquire(%q, %+v)", key, r)
				if !g.OK {
					failf("Acquire(%q, %+v) refuses, for %v; want a grant", key, r, g.Wait)
				}
				t.wantUsed(key, wide, limit)
				t.refused(key, r)
				r.Weight = 1
				t.refused(key, r)
			}
		},
	},
	{
		name: "far-slots-do-not-overflow",
		why:  "a wait that wraps below zero is a slot right now",
		check: func(t *trial) {
			const century = 876_000 * time.Hour // three of them are beyond a time.Duration
			for range 3 {
				t.granted(t.key("a"), one(1, century, math.MaxInt64))
			}
			t.refused(t.key("a"), one(1, century, long))
			t.refused(t.key("a"), one(1, century, 0))
		},
	},
	{
		name: "slots-are-given-in-order",
		why:  "waiting is a reservation: each caller takes the next slot to come free, so that nobody has to ask again and nobody overtakes",
		check: func(t *trial) {
			const limit = 3
			var grants []cache.Grant
			for i := range 4 * limit {
				g := t.granted(t.key("a"), one(limit, wide, long))
				if i > 0 {
					if last := grants[i-1]; g.Slot.Compare(last.Slot) <= 0 {
						failf("slot %d, %+v, is not after the one before it, %+v", i, g.Slot, last.Slot)
					}
				}
				if i >= limit {
					at(g, grants[i-limit], wide, "the third after a hit")
					ahead := time.Duration(g.Slot.At-grants[0].Slot.At) * time.Microsecond
					if t.bubble && g.Wait != ahead || g.Wait > ahead || g.Wait < ahead-wide/2 {
						failf("slot %d is %v after the first, which was just now, and Wait says %v", i, ahead, g.Wait)
					}
				} else if g.Wait != 0 {
					failf("slot %d of %d free ones is %v ahead, want now", i, limit, g.Wait)
				}
				grants = append(grants, g)
			}
			t.wantUsed(t.key("a"), wide, 4*limit)
		},
	},
	{
		name: "light-hit-does-not-overtake",
		why:  "where there is always room for something small, something heavy would wait for ever",
		check: func(t *trial) {
			r := func(weight int64) cache.Request {
				return cache.Request{Limit: 10, Window: wide, Weight: weight, MaxWait: long}
			}
			t.granted(t.key("a"), r(8))
			heavy := t.granted(t.key("a"), r(5)) // waits for the first to leave
			now := r(2)                          // would fit beside the first
			now.MaxWait = 0
			t.refused(t.key("a"), now)
			at(t.granted(t.key("a"), r(2)), heavy, 0, "a light hit behind a heavy one that waits")

			var slots []cache.Slot
			for range 3 {
				slots = append(slots, t.granted(t.key("b"), one(3, wide, long)).Slot)
			}
			waiting := t.granted(t.key("b"), one(3, wide, long))
			t.giveBack(t.key("b"), slots[0])
			t.giveBack(t.key("b"), slots[1])
			at(t.granted(t.key("b"), one(3, wide, long)), waiting, 0, "a hit behind one that waits, though there is room now,")
		},
	},
	{
		name: "reservation-holds",
		why:  "a slot that was promised to a waiter must not be given to whoever asks at the moment it comes free",
		check: func(t *trial) {
			window := t.span()
			t.granted(t.key("a"), one(1, window, 0))
			t.advance(t.granted(t.key("a"), one(1, window, window)).Wait)
			t.refused(t.key("a"), one(1, window, 0))
			t.wantUsed(t.key("a"), window, 1)
		},
	},
	{
		name: "series-lives-for-its-last-reservation",
		why:  "a series that is forgotten before its furthest slot lets a second caller in beside the one who waited",
		check: func(t *trial) {
			window := t.span()
			for range 4 {
				t.granted(t.key("a"), one(1, window, long)) // at 0, 1, 2 and 3 windows
			}
			t.advance(2*window + window/2)
			t.wantUsed(t.key("a"), window, 2)
			t.refused(t.key("a"), one(1, window, 0))
			t.advance(window) // and the last one still counts, a window after its slot
			t.wantUsed(t.key("a"), window, 1)
			t.refused(t.key("a"), one(1, window, 0))
		},
	},
	{
		name: "longest-wait-is-kept",
		why:  "a caller who cannot wait that long must learn so at once, and leave the slot to others",
		check: func(t *trial) {
			t.granted(t.key("a"), one(1, wide, 0))
			refused := t.refused(t.key("a"), one(1, wide, wide/2))
			t.wantUsed(t.key("a"), wide, 1)
			if t.bubble {
				t.refused(t.key("a"), one(1, wide, refused.Wait-time.Microsecond))
			}
			first := t.granted(t.key("a"), one(1, wide, refused.Wait))
			at(t.granted(t.key("a"), one(1, wide, math.MaxInt64)), first, wide, "the next of any wait")
			t.refused(t.key("a"), one(1, wide, 2*wide))
		},
	},
	{
		name: "give-back-frees-the-last-slot",
		why:  "a waiter that was cancelled gives its slot back, and the next one in must not wait for a call that never was",
		check: func(t *trial) {
			first := t.granted(t.key("a"), one(1, wide, long))
			second := t.granted(t.key("a"), one(1, wide, long))
			t.giveBack(t.key("a"), second.Slot)
			t.wantUsed(t.key("a"), wide, 1)
			at(t.granted(t.key("a"), one(1, wide, long)), first, wide, "a hit in the place of one that was given back")

			only := t.granted(t.key("b"), one(1, wide, 0))
			t.refused(t.key("b"), one(1, wide, 0))
			t.giveBack(t.key("b"), only.Slot)
			t.wantUsed(t.key("b"), wide, 0)
			t.granted(t.key("b"), one(1, wide, 0))
		},
	},
	{
		name: "give-back-frees-a-slot-between",
		why:  "it removes that hit and moves no other: a promise to those behind is kept",
		check: func(t *trial) {
			r := one(2, wide, long)
			first := t.granted(t.key("a"), r)
			t.advance(time.Millisecond)
			second := t.granted(t.key("a"), r)
			third := t.granted(t.key("a"), r)  // a window after the first
			fourth := t.granted(t.key("a"), r) // a window after the second
			at(third, first, wide, "the third")
			t.giveBack(t.key("a"), third.Slot)
			t.wantUsed(t.key("a"), wide, 3)
			// The fourth stays; beside it there is room for one, though not before it.
			at(t.granted(t.key("a"), r), fourth, 0, "a hit in the room of one that was given back")
			at(t.granted(t.key("a"), r), second, 2*wide, "the one behind")
		},
	},
	{
		name: "give-back-returns-the-whole-weight",
		why:  "what a call did not use is all there again for the next",
		check: func(t *trial) {
			r := func(weight int64) cache.Request { return cache.Request{Limit: 10, Window: wide, Weight: weight} }
			heavy := t.granted(t.key("a"), r(7))
			t.granted(t.key("a"), r(2))
			t.giveBack(t.key("a"), heavy.Slot)
			t.wantUsed(t.key("a"), wide, 2)
			t.granted(t.key("a"), r(8))
			t.refused(t.key("a"), r(1))
		},
	},
	{
		name: "give-back-in-any-order",
		why:  "callers end in an order of their own, and each gives back its own slot and no other",
		check: func(t *trial) {
			// Weights that are powers of two tell by their sum which are left.
			const all = 1<<6 - 1
			for name, limit := range map[string]int64{"at once": all, "in line": 1 << 5} {
				key, left := t.key(name), int64(0)
				var slots []cache.Slot
				for i := range 6 {
					weight := int64(1) << i
					left += weight
					slots = append(slots, t.granted(key, cache.Request{Limit: limit, Window: wide, Weight: weight, MaxWait: long}).Slot)
				}
				for _, i := range []int{2, 4, 0, 5, 1, 3} {
					for range 2 { // the second time changes nothing
						t.giveBack(key, slots[i])
						t.wantUsed(key, wide, left-1<<i)
					}
					left -= 1 << i
				}
			}
			// The same of one weight, where an implementation may well go other ways.
			var slots []cache.Slot
			for range 6 {
				slots = append(slots, t.granted(t.key("alike"), one(1, wide, long)).Slot)
			}
			for n, i := range []int{2, 4, 0, 5, 1, 3} {
				for range 2 {
					t.giveBack(t.key("alike"), slots[i])
					t.wantUsed(t.key("alike"), wide, int64(5-n))
				}
			}
		},
	},
	{
		name: "give-back-of-nothing-is-no-error",
		why:  "a slot may be given back late, or twice, and must not take another one with it",
		check: func(t *trial) {
			t.giveBack(t.key("none"), cache.Slot{})
			t.giveBack(t.key("none"), cache.Slot{At: 1, ID: 1})
			t.wantUsed(t.key("none"), wide, 0)

			first := t.granted(t.key("a"), one(3, wide, 0))
			second := t.granted(t.key("a"), one(3, wide, 0))
			t.granted(t.key("a"), one(3, wide, 0))
			t.giveBack(t.key("a"), first.Slot)
			t.giveBack(t.key("a"), first.Slot)
			t.giveBack(t.key("a"), cache.Slot{})
			t.giveBack(t.key("a"), cache.Slot{At: second.Slot.At, ID: second.Slot.ID + 1000})
			t.giveBack(t.key("a"), cache.Slot{At: second.Slot.At + 1000, ID: second.Slot.ID})
			t.giveBack(t.key("other"), second.Slot)
			t.wantUsed(t.key("a"), wide, 2)
		},
	},
	{
		name: "used-is-what-the-window-holds",
		why:  "what remains is shown to users: hits that have left no longer count, those of the future already do",
		check: func(t *trial) {
			window := t.span()
			t.wantUsed(t.key("a"), window, 0)
			r := cache.Request{Limit: 5, Window: window, Weight: 3, MaxWait: long}
			t.granted(t.key("a"), r)
			t.granted(t.key("a"), r)
			t.wantUsed(t.key("a"), window, 6)
			if t.bubble {
				t.advance(window - time.Microsecond)
				t.wantUsed(t.key("a"), window, 6)
				t.advance(time.Microsecond)
			} else {
				t.advance(window)
			}
			t.wantUsed(t.key("a"), window, 3)
			t.outlive(window)
			t.wantUsed(t.key("a"), window, 0)
		},
	},
	{
		name: "used-changes-nothing",
		why:  "looking is free, also with another window than the limiter's",
		check: func(t *trial) {
			t.granted(t.key("a"), one(1, wide, 0))
			t.advance(time.Millisecond)
			t.wantUsed(t.key("a"), time.Microsecond, 0)
			t.wantUsed(t.key("a"), wide, 1)
			t.refused(t.key("a"), one(1, wide, 0))
			for range 3 {
				t.wantUsed(t.key("b"), wide, 0)
			}
			t.granted(t.key("b"), one(1, wide, 0))
		},
	},
	{
		name: "bad-request-leaves-no-trace",
		why:  "a weight that never fits, or one below one, is the caller's mistake: neither an endless wait nor a free pass",
		check: func(t *trial) {
			good := cache.Request{Limit: 10, Window: wide, Weight: 1}
			t.granted(t.key("a"), good)
			for _, change := range []func(*cache.Request){
				func(r *cache.Request) { r.Limit = 0 },
				func(r *cache.Request) { r.Limit = -1 },
				func(r *cache.Request) { r.Window = 0 },
				func(r *cache.Request) { r.Window = -wide },
				func(r *cache.Request) { r.Window = 999 },
				func(r *cache.Request) { r.Weight = 0 },
				func(r *cache.Request) { r.Weight = -5 },
				func(r *cache.Request) { r.Weight = 11 },
				func(r *cache.Request) { r.MaxWait = -1 },
			} {
				bad := good
				change(&bad)
				_, err := t.acq.Acquire(t.ctx, t.key("a"), bad)
				if _, ok := errors.AsType[*cache.ArgumentError](err); !ok {
					failf("Acquire(%+v): error is %s, want the one of its Validate", bad, text(err))
				}
			}
			t.wantUsed(t.key("a"), wide, 1)
		},
	},
	{
		name: "slots-are-told-apart",
		why:  "a slot is given back by its name, and two of one name would go together",
		check: func(t *trial) {
			seen := map[cache.Slot]bool{}
			last := cache.Slot{}
			for range 100 {
				s := t.granted(t.key("a"), one(100, wide, 0)).Slot
				switch {
				case s == cache.Slot{}:
					failf("a granted slot is the zero Slot, which names none")
				case seen[s]:
					failf("slot %+v is given out twice", s)
				case s.Compare(last) <= 0:
					failf("slot %+v, taken after %+v, does not come after it", s, last)
				}
				seen[s], last = true, s
			}
		},
	},
	{
		name: "slot-names-are-not-used-again",
		why:  "a slot that is given back twice, or after a reset, must not take along a newer one of the same instant",
		check: func(t *trial) {
			r := one(1, wide, 0)
			old := t.granted(t.key("a"), r)
			t.giveBack(t.key("a"), old.Slot)
			again := t.granted(t.key("a"), r)
			t.giveBack(t.key("a"), old.Slot)
			t.wantUsed(t.key("a"), wide, 1)
			if t.kv == nil {
				return
			}
			t.delete(t.key("a"))
			t.giveBack(t.key("a"), again.Slot)
			t.granted(t.key("a"), r)
			t.giveBack(t.key("a"), again.Slot)
			t.wantUsed(t.key("a"), wide, 1)
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
			for range 2 {
				for _, key := range keys {
					t.granted(key, one(2, wide, 0))
				}
			}
			for _, key := range keys {
				t.refused(key, one(2, wide, 0))
				t.wantUsed(key, wide, 2)
				t.delete(key)
			}
		},
	},
	{
		name: "series-and-value-share-a-key",
		why:  "a limiter and a breaker on one cache may well have chosen the same name, and Delete forgets it all",
		check: func(t *trial) {
			if t.kv == nil {
				return
			}
			t.set(t.key("a"), "a", 0)
			t.granted(t.key("a"), one(1, wide, 0))
			t.wantValue(t.key("a"), "a")
			t.set(t.key("a"), "b", 0)
			t.wantUsed(t.key("a"), wide, 1)
			t.refused(t.key("a"), one(1, wide, 0))
			t.delete(t.key("a"))
			t.wantNothing(t.key("a"))
			t.wantUsed(t.key("a"), wide, 0)
			t.granted(t.key("a"), one(1, wide, 0))
		},
	},
	{
		name: "limit-holds-in-a-crowd",
		why:  "to decide and to record are one step: between two, every caller sees the same last slot",
		check: func(t *trial) {
			const callers, each, limit = 64, 4, 50
			var mu sync.Mutex
			n := 0
			t.together(callers, func(int) {
				for range each {
					if t.acquire(t.key("a"), one(limit, wide, 0)).OK {
						mu.Lock()
						n++
						mu.Unlock()
					}
				}
			})
			if n != limit {
				failf("%d goroutines asked %d times for a slot of %d: %d were granted", callers, callers*each, limit, n)
			}
			t.wantUsed(t.key("a"), wide, limit)
		},
	},
	{
		name: "crowd-waits-in-line",
		why:  "with everyone waiting, no span of a window may hold more than the limit, and no slot may go to two",
		check: func(t *trial) {
			const callers, limit = 64, 5
			var mu sync.Mutex
			var slots []cache.Slot
			t.together(callers, func(int) {
				g := t.granted(t.key("a"), one(limit, wide, long))
				mu.Lock()
				slots = append(slots, g.Slot)
				mu.Unlock()
			})
			t.wantLimit(slots, limit, wide)
			last, first := slots[callers-1], slots[0]
			if got, want := time.Duration(last.At-first.At)*time.Microsecond, (callers-1)/limit*wide; got < want || got > want+wide/2 {
				failf("%d goroutines took a slot each: the last is %v after the first, want about %v", callers, got, want)
			}
			t.wantUsed(t.key("a"), wide, callers)
		},
	},
	{
		name: "no-span-of-a-window-holds-more",
		why:  "an instant that is read before the step may be older than one already recorded, and its window another one",
		check: func(t *trial) {
			const callers, each, limit = 16, 40, 4
			const window = 20 * time.Millisecond
			var mu sync.Mutex
			var slots []cache.Slot
			t.together(callers, func(i int) {
				t.advance(time.Duration(i) * time.Microsecond) // all at different instants
				for range each {
					g := t.acquire(t.key("a"), one(limit, window, 0))
					if !g.OK {
						t.advance(min(g.Wait, window/4))
						continue
					}
					mu.Lock()
					slots = append(slots, g.Slot)
					mu.Unlock()
				}
			})
			if len(slots) <= limit {
				failf("%d goroutines asked for longer than %v: %d were granted, want more than one window's %d", callers, window, len(slots), limit)
			}
			t.wantLimit(slots, limit, window)
		},
	},
	{
		name: "give-back-in-a-crowd",
		why:  "to give back is one step, too: what another one records meanwhile must stay, and what was given back must go",
		check: func(t *trial) {
			const callers, each = 32, 4
			for _, name := range []string{"a", "b", "c"} { // since chance may put right what went wrong
				t.together(callers, func(i int) {
					for range each {
						g := t.granted(t.key(name), one(2*callers*each, wide, 0))
						if i > 0 {
							t.giveBack(t.key(name), g.Slot)
						}
					}
				})
				t.wantUsed(t.key(name), wide, each)
			}
		},
	},
	{
		name: "done-context-changes-nothing",
		why:  "a caller that went away must leave no trace, and learn that it was the one who went",
		check: func(t *trial) {
			t.done("Acquire", func(ctx context.Context) error {
				_, err := t.acq.Acquire(ctx, t.key("a"), one(2, wide, 0))
				return err
			})
			t.wantUsed(t.key("a"), wide, 0)
			g := t.granted(t.key("a"), one(2, wide, 0))
			t.done("GiveBack", func(ctx context.Context) error { return t.acq.GiveBack(ctx, t.key("a"), g.Slot) })
			t.done("Used", func(ctx context.Context) error { _, err := t.acq.Used(ctx, t.key("a"), wide); return err })
			t.wantUsed(t.key("a"), wide, 1)
		},
	},
}
