package compliancetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A Harness says how to try the rules on a cache of the type C. Only New is
// required.
//
// Every rule has a cache of its own from New and keys that no other rule uses, of
// any run, so any number of suites may share one server. The one exception is the
// empty key, which the rules about it delete before and after.
type Harness[C any] struct {
	// New returns a cache to try one rule on. Whatever else it opens it has to
	// dispose of itself, for instance by the Cleanup of the test that calls Run.
	New func() (C, error)

	// Close closes a cache that New returned. It is called after each rule, and is
	// what the rules about a closed cache are tried on. Nil means that C cannot be
	// closed, and those rules are skipped.
	Close func(C) error

	// Bubble tells that the cache lives in this process and reads the clock of package
	// time. Run then puts each rule in a bubble of [testing/synctest], New, Close and
	// Advance included; time is virtual, no rule takes any, and boundaries are tried to
	// the microsecond. Leave it false for anything behind a connection.
	Bubble bool

	// Advance lets d pass for the cache. Nil means [time.Sleep], which in a bubble takes
	// no time, and on a server takes what it says. A double of a server with a clock that
	// is set by hand has a use for this.
	Advance func(d time.Duration)

	// Slack is how much later than asked things may happen: how long a value may outlive
	// its TTL, and how long a call or a sleep may take beyond what it should. Rules about
	// what is gone wait that much longer, and rules about what is still there leave some
	// multiple of it. Zero is right for virtual time; 100 ms is for a server on this
	// machine. With a second or more, an implementation that rounds a TTL up to whole
	// seconds goes unnoticed. It cannot be negative.
	Slack time.Duration
}

// Cache returns the rules for a cache of both halves: those of [KeyValue] and
// [HitWindow], and those about what the halves have to do with each other.
func Cache[C cache.Cache](h Harness[C]) Suite {
	return h.suite(
		h.group("KeyValue", keyValueRules, none),
		h.group("HitWindow", hitWindowRules, none),
		h.group("Cache", cacheRules, none),
		h.group("CompareAndSwapper", compareAndSwapperRules, capability[cache.CompareAndSwapper]),
		h.group("MultiGetter", multiGetterRules, capability[cache.MultiGetter]),
		h.group("TimeLimiter", timeLimiterRules, capability[cache.TimeLimiter]),
		h.group("Acquirer", acquirerRules, capability[cache.Acquirer]),
		h.group("Close", closeRules, h.closable),
	)
}

// KeyValue returns the rules for the circuit breaker's half of the port, for its
// optional capabilities [cache.CompareAndSwapper], [cache.MultiGetter] and
// [cache.TimeLimiter], where C has them, and for a cache that is closed.
func KeyValue[C cache.KeyValue](h Harness[C]) Suite {
	return h.suite(
		h.group("KeyValue", keyValueRules, none),
		h.group("CompareAndSwapper", compareAndSwapperRules, capability[cache.CompareAndSwapper]),
		h.group("MultiGetter", multiGetterRules, capability[cache.MultiGetter]),
		h.group("TimeLimiter", timeLimiterRules, capability[cache.TimeLimiter]),
		h.group("Close", closeRules, h.closable),
	)
}

// HitWindow returns the rules for the rate limiter's half of the port, for its
// optional capability [cache.Acquirer], where C has it, and for a cache that is
// closed.
func HitWindow[C cache.HitWindow](h Harness[C]) Suite {
	return h.suite(
		h.group("HitWindow", hitWindowRules, none),
		h.group("Acquirer", acquirerRules, capability[cache.Acquirer]),
		h.group("Close", closeRules, h.closable),
	)
}

func (h Harness[C]) suite(groups ...group) Suite {
	if h.New == nil {
		panic("compliancetest: Harness.New is nil")
	}
	if h.Slack < 0 {
		panic(fmt.Sprintf("compliancetest: Harness.Slack is %v, want zero or more", h.Slack))
	}
	return Suite{bubble: h.Bubble, groups: groups}
}

// group binds rules to caches of the harness; missing returns an absentError for a
// cache that the rules do not apply to.
func (h Harness[C]) group(name string, rules []rule[*trial], missing func(any) error) group {
	return newGroup(name, func() (*trial, func() error, error) {
		c, err := h.New()
		if err != nil {
			return nil, nil, fmt.Errorf("Harness.New: %w", err)
		}
		dispose := func() error {
			if h.Close == nil {
				return nil
			}
			if err := h.Close(c); err != nil {
				return fmt.Errorf("Harness.Close: %w", err)
			}
			return nil
		}
		if err := missing(c); err != nil {
			_ = dispose()
			return nil, nil, err
		}
		advance := h.Advance
		if advance == nil {
			advance = time.Sleep
		}
		return newTrial(c, dispose, advance, h.Bubble, h.Slack), dispose, nil
	}, rules)
}

func none(any) error { return nil }

func capability[I any](c any) error {
	if _, ok := c.(I); !ok {
		return absent(fmt.Sprintf("%T does not implement %v", c, reflect.TypeFor[I]()))
	}
	return nil
}

func (h Harness[C]) closable(any) error {
	if h.Close == nil {
		return absent("the harness has no Close")
	}
	return nil
}
