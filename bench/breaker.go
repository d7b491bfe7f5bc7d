package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
)

var errHost = errors.New("the host failed")

// answer is the call that everybody makes. It is a call, and not inlined into those who
// know it at compile time.
//
//go:noinline
func answer(context.Context) (int, error) { return 42, nil }

//go:noinline
func answerPlain() (int, error) { return 42, nil }

// Five failures in a row open a circuit, for an hour.
const threshold = 5

func breakerContests() []Contest {
	return []Contest{
		{
			Name: "Breaker/closed",
			Notes: "Ours is a call made by Wrap out of policies that are known when the program runs, with the call's value handed " +
				"through. For that eapache's needs a closure per call, as it would as one policy among others. failsafe-go's " +
				"two-step form is written in place, and needs two calls that must not be forgotten. gobreaker reads the clock twice.",
			Goal:     Goal{Text: "not slower than the fastest, 0 allocations", Ratio: 1},
			Entrants: breakerEntrants(false),
		},
		{
			Name: "Breaker/closed, in place",
			Notes: "Without a chain: the call is written where the breaker is asked, so that the compiler sees all of it. " +
				"eapache's looks at one word, does not forget failures when a call succeeds, and admits every caller while half-open.",
			Entrants: inPlace(),
		},
		{
			Name:     "Breaker/refused",
			Notes:    "Ours returns an error of a type of its own that says when to come back; the others' are constants.",
			Goal:     Goal{Text: "not slower than gobreaker, at most 1 allocation", Rivals: []string{"gobreaker"}, Ratio: 1, Allocs: 1},
			Entrants: breakerEntrants(true),
		},
	}
}

// right counts the results that are as they should be.
func right(open bool, value int, err error) int {
	if open == (err != nil) && (open || value == 42) {
		return 1
	}
	return 0
}

func breakerEntrants(open bool) []Entrant {
	ours := func(context func(testing.TB) context.Context) func(tb testing.TB, _ *Server) Work {
		return func(tb testing.TB, _ *Server) Work {
			circuit := must(breaker.New(breaker.Config{FailureThreshold: threshold}))
			tb.Cleanup(func() { circuit.Close() })
			if open {
				check(circuit.ForceOpen(context(tb), time.Hour))
			}
			ctx := context(tb)
			call := resilience.Wrap(answer, circuit)
			return func(n int) (ok int) {
				for range n {
					value, err := call(ctx)
					ok += right(open, value, err)
				}
				return ok
			}
		}
	}
	return []Entrant{
		{"ours", ours(background)},
		{"ours, cancellable", ours(cancellable)},
		{"failsafe-go two-step", failsafeTwoStep(open)},
		{"eapache", func(testing.TB, *Server) Work {
			run := eapacheCircuit(open).Run
			return func(n int) (ok int) {
				for range n {
					var value int
					err := run(func() (err error) {
						value, err = answerPlain()
						return err
					})
					ok += right(open, value, err)
				}
				return ok
			}
		}},
		{"gobreaker", gobreakerExecute(open)},
		{"failsafe-go executor", func(testing.TB, *Server) Work {
			executor := failsafe.With(failsafeCircuit(open))
			return func(n int) (ok int) {
				for range n {
					value, err := executor.Get(answerPlain)
					ok += right(open, value, err)
				}
				return ok
			}
		}},
	}
}

// inPlace are those that can do without a chain, closed.
func inPlace() []Entrant {
	return []Entrant{
		{"ours", func(tb testing.TB, _ *Server) Work {
			circuit := must(breaker.New(breaker.Config{FailureThreshold: threshold}))
			tb.Cleanup(func() { circuit.Close() })
			ctx := context.Background()
			return func(n int) (ok int) {
				for range n {
					var value int
					err := circuit.Do(ctx, func(ctx context.Context) (err error) {
						value, err = answer(ctx)
						return err
					})
					ok += right(false, value, err)
				}
				return ok
			}
		}},
		{"failsafe-go two-step", failsafeTwoStep(false)},
		{"eapache", func(testing.TB, *Server) Work {
			circuit := eapacheCircuit(false)
			return func(n int) (ok int) {
				for range n {
					var value int
					err := circuit.Run(func() (err error) {
						value, err = answerPlain()
						return err
					})
					ok += right(false, value, err)
				}
				return ok
			}
		}},
		{"gobreaker", gobreakerExecute(false)},
	}
}

func failsafeTwoStep(open bool) func(testing.TB, *Server) Work {
	return func(testing.TB, *Server) Work {
		circuit := failsafeCircuit(open)
		return func(n int) (ok int) {
			for range n {
				var value int
				err := errHost
				if circuit.TryAcquirePermit() {
					if value, err = answerPlain(); err == nil {
						circuit.RecordSuccess()
					} else {
						circuit.RecordFailure()
					}
				}
				ok += right(open, value, err)
			}
			return ok
		}
	}
}

func gobreakerExecute(open bool) func(testing.TB, *Server) Work {
	return func(testing.TB, *Server) Work {
		circuit := gobreaker.NewCircuitBreaker[int](gobreakerSettings())
		for range threshold {
			if open {
				_, _ = circuit.Execute(func() (int, error) { return 0, errHost })
			}
		}
		return func(n int) (ok int) {
			for range n {
				value, err := circuit.Execute(answerPlain)
				ok += right(open, value, err)
			}
			return ok
		}
	}
}

func eapacheCircuit(open bool) *eapache.Breaker {
	circuit := eapache.New(threshold, 1, time.Hour)
	for range threshold {
		if open {
			_ = circuit.Run(func() error { return errHost })
		}
	}
	return circuit
}

func failsafeCircuit(open bool) circuitbreaker.CircuitBreaker[int] {
	circuit := circuitbreaker.NewBuilder[int]().WithFailureThreshold(threshold).WithDelay(time.Hour).Build()
	if open {
		circuit.Open()
	}
	return circuit
}

func gobreakerSettings() gobreaker.Settings {
	return gobreaker.Settings{
		Name:        "host",
		Timeout:     time.Hour,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= threshold },
	}
}

// must returns v. What fails here is a benchmark that is set up wrongly.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
