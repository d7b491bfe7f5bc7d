package compliancetest

import (
	"errors"

	"github.com/resilience-toolkit/resilience/cache"
)

// calls returns one call of every method the cache has.
func (t *trial) calls() map[string]func() error {
	key := t.key("a")
	calls := map[string]func() error{}
	if t.kv != nil {
		calls["Get"] = func() error { _, _, err := t.kv.Get(t.ctx, key); return err }
		calls["Set"] = func() error { return t.kv.Set(t.ctx, key, "1", long) }
		calls["Increment"] = func() error { _, err := t.kv.Increment(t.ctx, key, long); return err }
		calls["Delete"] = func() error { return t.kv.Delete(t.ctx, key) }
	}
	if t.hits != nil {
		calls["RecordHit"] = func() error { return t.hits.RecordHit(t.ctx, key, noon, long) }
		calls["CountHits"] = func() error { _, err := t.hits.CountHits(t.ctx, key, noon); return err }
		calls["OldestHit"] = func() error { _, _, err := t.hits.OldestHit(t.ctx, key, noon); return err }
	}
	if t.swap != nil {
		calls["CompareAndSwap"] = func() error {
			_, err := t.swap.CompareAndSwap(t.ctx, key, cache.Absent(), cache.Present("1"), long)
			return err
		}
	}
	if t.many != nil {
		calls["GetMany"] = func() error { return t.many.GetMany(t.ctx, []string{key}, make([]cache.Entry, 1)) }
	}
	if t.acq != nil {
		key := t.key("acquired")
		calls["Acquire"] = func() error { _, err := t.acq.Acquire(t.ctx, key, one(1000, wide, 0)); return err }
		calls["GiveBack"] = func() error { return t.acq.GiveBack(t.ctx, key, cache.Slot{At: 1, ID: 1}) }
		calls["Used"] = func() error { _, err := t.acq.Used(t.ctx, key, wide); return err }
	}
	return calls
}

// closeIt closes the cache for the nth time.
func (t *trial) closeIt(n int) {
	must(t.close(), "closing the cache, time %d", n)
}

var closeRules = []rule[*trial]{
	{
		name: "closed-says-so",
		why:  "a component that outlives its cache is a mistake in the shutdown, and must not be mistaken for a broken store or an answer",
		check: func(t *trial) {
			for name, call := range t.calls() {
				must(call(), "%s before the cache is closed", name)
			}
			t.closeIt(1)
			for name, call := range t.calls() {
				mustMatch(call(), cache.ErrClosed, "%s after the cache was closed", name)
			}
		},
	},
	{
		name: "closing-twice-is-safe",
		why:  "owners close in a defer and again at the end, and the second time is nobody's failure",
		check: func(t *trial) {
			t.closeIt(1)
			t.closeIt(2)
			for name, call := range t.calls() {
				mustMatch(call(), cache.ErrClosed, "%s after the cache was closed", name)
			}
		},
	},
	{
		name: "closing-during-calls-is-safe",
		why:  "at a shutdown there are calls under way, and each must end: with its answer, with ErrClosed, or because the store has gone",
		check: func(t *trial) {
			calls := t.calls()
			closed := make(chan struct{})
			first := make(chan struct{}, 1) // one of the two who close waits for the other
			steps := []func(){
				func() { t.closeIt(1); first <- struct{}{} },
				func() { t.closeIt(2); <-first; close(closed) },
			}
			for name, call := range calls {
				steps = append(steps, func() {
					for {
						select {
						case <-closed:
							return
						default:
						}
						err := call()
						if _, gone := errors.AsType[*cache.UnavailableError](err); err != nil && !gone && !errors.Is(err, cache.ErrClosed) {
							failf("%s while the cache is being closed: error is %q, want none, ErrClosed or an UnavailableError", name, err)
						}
					}
				})
			}
			t.together(len(steps), func(i int) { steps[i]() })
			for name, call := range calls {
				mustMatch(call(), cache.ErrClosed, "%s after the cache was closed", name)
			}
		},
	},
}
