package compliancetest

import (
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

var timeLimiterRules = []rule[*trial]{
	{
		name: "limit-is-a-promise-or-nothing",
		why:  "a breaker asks once, when it is made, and goes by the answer for as long as it lives",
		check: func(t *trial) {
			longest, ok := t.limit.TimeLimit()
			if longest < 0 || !ok && longest != 0 {
				failf("TimeLimit is %v, %t, want zero or more, and zero if nothing is promised", longest, ok)
			}
			t.set(t.key("a"), "a", long)
			t.wantValue(t.key("a"), "a")
			if again, still := t.limit.TimeLimit(); again != longest || still != ok {
				failf("TimeLimit is %v, %t, and was %v, %t before", again, still, longest, ok)
			}
		},
	},
	{
		name: "calls-keep-to-the-limit",
		why:  "a breaker that has been told of a limit sets none of its own, so what takes longer holds up the call it guards",
		check: func(t *trial) {
			longest, ok := t.limit.TimeLimit()
			if !ok {
				return
			}
			if !t.bubble {
				longest += 10 * time.Millisecond
			}
			within := func(what string, call func()) {
				begun := time.Now()
				call()
				if took := time.Since(begun); took > longest+t.slack {
					failf("%s took %v, and TimeLimit is %v", what, took, longest)
				}
			}
			key := t.part("a")
			within("Set", func() { t.set(key, "1", long) })
			within("Get", func() { t.wantValue(key, "1") })
			within("Increment", func() { t.increment(key, long, 2) })
			if t.many != nil {
				within("GetMany", func() { t.wantMany([]string{key}, cache.Present("2")) })
			}
			if t.swap != nil {
				within("CompareAndSwap", func() { t.compareAndSwap(key, cache.Present("2"), cache.Present("3"), long, true) })
			}
			within("Delete", func() { t.delete(key) })
		},
	},
}
