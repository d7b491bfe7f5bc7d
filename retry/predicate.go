package retry

import (
	"errors"
	"fmt"
)

// On returns a predicate that accepts an error which matches one of errs, by
// [errors.Is]. It panics if there is none, or a nil one among them, which no error
// would ever match.
func On(errs ...error) func(error) bool {
	if len(errs) == 0 {
		panic("retry: On: no errors given")
	}
	for i, err := range errs {
		if err == nil {
			panic(fmt.Sprintf("retry: On: error %d of %d is nil", i+1, len(errs)))
		}
	}
	list := append([]error(nil), errs...)
	return func(err error) bool {
		for _, target := range list {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

// OnType returns a predicate that accepts an error with an E in its tree, by
// [errors.AsType]. E is a concrete type or an interface: OnType[*net.OpError],
// OnType[net.Error].
func OnType[E error]() func(error) bool {
	return func(err error) bool {
		_, ok := errors.AsType[E](err)
		return ok
	}
}

// Any returns a predicate that accepts what one of the predicates accepts. They
// are asked in order, up to the first that does. It panics if there is none, or a
// nil one among them.
func Any(predicates ...func(error) bool) func(error) bool {
	list := mustPredicates("Any", predicates)
	return func(err error) bool {
		for _, accepts := range list {
			if accepts(err) {
				return true
			}
		}
		return false
	}
}

// All returns a predicate that accepts what every one of the predicates accepts:
// with [Not], "these, except those". They are asked in order, up to the first that
// does not. It panics if there is none, or a nil one among them.
func All(predicates ...func(error) bool) func(error) bool {
	list := mustPredicates("All", predicates)
	return func(err error) bool {
		for _, accepts := range list {
			if !accepts(err) {
				return false
			}
		}
		return true
	}
}

// Not returns a predicate that accepts what the predicate does not. It panics if
// the predicate is nil.
//
// By itself it retries everything that nobody thought of, programming mistakes
// and cancelled sub-requests with it. Inside [All] it is an exception to a rule.
func Not(predicate func(error) bool) func(error) bool {
	accepts := mustPredicates("Not", []func(error) bool{predicate})[0]
	return func(err error) bool { return !accepts(err) }
}

func mustPredicates(where string, predicates []func(error) bool) []func(error) bool {
	if len(predicates) == 0 {
		panic("retry: " + where + ": no predicates given")
	}
	for i, p := range predicates {
		if p == nil {
			panic(fmt.Sprintf("retry: %s: predicate %d of %d is nil", where, i+1, len(predicates)))
		}
	}
	return append([]func(error) bool(nil), predicates...)
}
