package compliancetest

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// A Suite is a set of rules together with the implementation they are tried on.
// It comes from [Cache], [KeyValue] or another function of this package that takes
// a harness; the zero Suite has no rules. A Suite may be used any number of times,
// since every rule makes what it needs afresh.
type Suite struct {
	bubble bool
	groups []group
}

// A Rule is one promise that an implementation must keep.
type Rule struct {
	// Name is that of the group and of the rule within it, such as
	// "KeyValue/zero-value-is-present". It is also the name of the rule's subtest.
	Name string
	// Why is the reason for the rule: who relies on it, and what goes wrong without.
	Why string
}

// A RuleError says which rule an implementation breaks, and how.
type RuleError struct {
	Rule string // the name of the rule, as in [Rule]
	Why  string // the reason for the rule, as in [Rule]
	Err  error  // what was seen, and what was wanted; never nil
}

// Error implements error.
func (e *RuleError) Error() string {
	return fmt.Sprintf("compliancetest: %s: %v\n\tit is a rule because %s", e.Rule, e.Err, e.Why)
}

// Unwrap returns Err.
func (e *RuleError) Unwrap() error { return e.Err }

// Rules returns every rule of the suite in the order in which they are tried,
// those of capabilities that the implementation turns out not to have included.
func (s Suite) Rules() []Rule {
	var list []Rule
	for _, g := range s.groups {
		for _, c := range g.cases {
			list = append(list, c.Rule)
		}
	}
	return list
}

// Run tries every rule in a subtest of its own. The rules of a capability that the
// implementation does not have are skipped, with a line that names it.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	for _, g := range s.groups {
		t.Run(g.name, func(t *testing.T) {
			// Not inside the bubble: there a test can neither skip nor have subtests.
			var err error
			s.within(t, func(*testing.T) { err = g.probe() })
			if absent, ok := errors.AsType[*absentError](err); ok {
				t.Skip(absent)
			}
			for _, c := range g.cases {
				t.Run(c.short, func(t *testing.T) {
					s.within(t, func(t *testing.T) {
						if err := c.try(); err != nil {
							t.Errorf("%v\nit is a rule because %s", err.Err, err.Why)
						}
					})
				})
			}
		})
	}
}

func (s Suite) within(t *testing.T, f func(*testing.T)) {
	if s.bubble {
		synctest.Test(t, f)
		return
	}
	f(t)
}

// Check tries every rule, apart from those of capabilities that the implementation
// does not have, and returns nil or, joined, a [*RuleError] for each rule that is
// broken. It is for whoever has no [testing.T] to hand or wants to look at the
// errors, as in a test of a test; [Suite.Run] is the usual way. With a harness whose
// time is virtual it must be called inside a bubble.
func (s Suite) Check() error {
	var errs []error
	for _, g := range s.groups {
		if _, ok := errors.AsType[*absentError](g.probe()); ok {
			continue
		}
		for _, c := range g.cases {
			if err := c.try(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// A rule is a promise about an S: a cache, say, with what is needed to try it.
type rule[S any] struct {
	name  string
	why   string
	check func(S) // ends by failf if the rule is broken
}

// A group is rules about one thing, bound to an implementation.
type group struct {
	name  string
	probe func() error // an absentError if there is nothing to try the rules on
	cases []ruleCase
}

type ruleCase struct {
	Rule
	short string
	try   func() *RuleError // nil if the rule is kept
}

// newGroup binds rules to open, which makes a fresh subject for each of them and the
// function that disposes of it. An open that returns [absent] has the whole group
// skipped; every other error of it breaks every rule.
func newGroup[S any](name string, open func() (S, func() error, error), rules []rule[S]) group {
	g := group{name: name}
	run := func(check func(S)) error {
		s, dispose, err := open()
		if err != nil {
			return err
		}
		return errors.Join(catch(func() { check(s) }), dispose())
	}
	g.probe = func() error { return run(func(S) {}) }
	for _, r := range rules {
		c := ruleCase{Rule: Rule{Name: name + "/" + r.name, Why: r.why}, short: r.name}
		c.try = func() *RuleError {
			if err := run(r.check); err != nil {
				return &RuleError{Rule: c.Name, Why: c.Why, Err: err}
			}
			return nil
		}
		g.cases = append(g.cases, c)
	}
	return g
}

// absentError says that what is tested has no such capability.
type absentError struct{ what string }

func absent(what string) error { return &absentError{what: what} }

func (e *absentError) Error() string { return e.what }

// A failure is what failf panics with, so that a check reads as a list of steps.
type failure struct{ err error }

// failf ends a check: its rule is broken, as the text says.
func failf(format string, args ...any) {
	panic(failure{err: fmt.Errorf(format, args...)})
}

// catch runs f and returns the error it ended with by failf, if it did.
func catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	f()
	return nil
}
