package bench

import (
	"context"
	"errors"
	"slices"
	"testing"

	avast "github.com/avast/retry-go/v5"
	"github.com/failsafe-go/failsafe-go"
	failsafelimiter "github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// empty is a policy that does nothing: what it costs is the chain. It gives its word, as
// those of the toolkit do.
type empty struct {
	resilience.Sequential[empty]
}

func (empty) Do(ctx context.Context, op func(context.Context) error) error { return op(ctx) }

func chainContests() []Contest {
	return []Contest{
		{
			Name: "Chain/three empty policies",
			Notes: "The price of composing, ours alone: the call by itself, Wrap around a prebuilt call, the same with policies " +
				"that do not give their word (Sequential), With compiled once and applied to a closure per call.",
			Goal:     Goal{Text: "10 ns per policy beyond the call, 0 allocations", Rivals: []string{"the call alone"}, Ratio: 1, Plus: 30},
			Entrants: emptyChains(3),
		},
		{
			Name: "Chain/breaker, limiter and retry",
			Notes: "By hand is avast's retrier, x/time/rate and gobreaker in closures made once, and one limiter without keys. " +
				"None of the others looks at the context.",
			Goal: Goal{Text: "0.75 of by hand, a sixth of failsafe-go, 0 allocations", Rivals: []string{"by hand"}, Ratio: 0.75},
			Entrants: []Entrant{
				{"ours", func(tb testing.TB, _ *Server) Work {
					circuit := must(breaker.New(breaker.Config{FailureThreshold: threshold}))
					limiter := must(ratelimit.New(ample.limit, ample.window, ratelimit.Config{}))
					again := must(retry.New(retry.On(errHost), retry.Config{MaxAttempts: attempts, Backoff: retry.Constant(0)}))
					tb.Cleanup(func() { circuit.Close(); limiter.Close() })
					return calls(resilience.Wrap(answer, circuit, limiter.For("tenant/0"), again))
				}},
				{"by hand", func(testing.TB, *Server) Work {
					circuit := gobreaker.NewCircuitBreaker[int](gobreakerSettings())
					limiter := rate.NewLimiter(ample.rate(), ample.limit)
					again := avast.NewWithData[int](avastOptions()...)
					limited := func() (int, error) {
						if !limiter.Allow() {
							return 0, errLimited
						}
						return again.Do(answerPlain)
					}
					return calls(func(context.Context) (int, error) { return circuit.Execute(limited) })
				}},
				{"failsafe-go executor", func(testing.TB, *Server) Work {
					executor := failsafe.With(failsafeCircuit(false), failsafelimiter.NewBursty[int](uint(ample.limit), ample.window), failsafeRetry())
					return calls(func(context.Context) (int, error) { return executor.Get(answerPlain) })
				}},
			},
		},
	}
}

var errLimited = errors.New("limited")

// watched is one that does not.
type watched struct{ empty }

func emptyChains(policies int) []Entrant {
	list := slices.Repeat([]resilience.Policy{empty{}}, policies)
	return []Entrant{
		{"ours, Wrap", func(testing.TB, *Server) Work { return calls(resilience.Wrap(answer, list...)) }},
		{"ours, Wrap, watched", func(testing.TB, *Server) Work {
			return calls(resilience.Wrap(answer, slices.Repeat([]resilience.Policy{watched{}}, policies)...))
		}},
		{"ours, With and a closure", func(testing.TB, *Server) Work {
			guard := resilience.With[int](list...)
			return func(n int) (right int) {
				ctx := context.Background()
				for i := range n {
					value, err := guard(func(context.Context) (int, error) { return i, nil })(ctx)
					if err == nil && value == i {
						right++
					}
				}
				return right
			}
		}},
		{"the call alone", func(testing.TB, *Server) Work { return calls(answer) }},
	}
}

func calls(call resilience.Call[int]) Work {
	return func(n int) (ok int) {
		ctx := context.Background()
		for range n {
			value, err := call(ctx)
			ok += right(false, value, err)
		}
		return ok
	}
}
