package bench

import (
	"context"
	"testing"
	"time"

	avast "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	goretry "github.com/sethvargo/go-retry"

	"github.com/resilience-toolkit/resilience/retry"
)

// Four attempts, with no wait between them.
const attempts = 4

func retryContests() []Contest {
	return []Contest{
		{
			Name:     "Retry/succeeds at once",
			Notes:    "go-retry and backoff make a value for each call, because theirs count.",
			Goal:     Goal{Text: "within 5 ns of the loop, 0 allocations", Rivals: []string{"a for loop"}, Ratio: 1, Plus: 5},
			Entrants: retryEntrants(0),
		},
		{
			Name:  "Retry/fails twice",
			Notes: "Without a delay. All the others wait on a timer even for none.",
			Goal: Goal{Text: "a third of the fastest peer", Ratio: 1. / 3,
				Rivals: []string{"avast reused", "go-retry", "backoff", "failsafe-go"}},
			Entrants: retryEntrants(2),
		},
	}
}

// A flaky call fails so many times, then succeeds, and so on.
type flaky struct{ fails, made int }

func (f *flaky) next() error {
	if f.made++; f.made > f.fails {
		f.made = 0
		return nil
	}
	return errHost
}

// retryEntrants makes the calls with a function that each of them gets anew for a batch.
func retryEntrants(fails int) []Entrant {
	work := func(run func(ctx context.Context, op func(context.Context) error) error) Work {
		return func(n int) (right int) {
			f := flaky{fails: fails}
			op := func(context.Context) error { return f.next() }
			ctx := context.Background()
			for range n {
				if run(ctx, op) == nil {
					right++
				}
			}
			return right
		}
	}
	plain := func(run func(ctx context.Context, op func() error) error) Work {
		return func(n int) (right int) {
			f := flaky{fails: fails}
			op := func() error { return f.next() }
			ctx := context.Background()
			for range n {
				if run(ctx, op) == nil {
					right++
				}
			}
			return right
		}
	}
	return []Entrant{
		{"ours", func(testing.TB, *Server) Work {
			p := must(retry.New(retry.On(errHost), retry.Config{MaxAttempts: attempts, Backoff: retry.Constant(0)}))
			return work(p.Do)
		}},
		{"a for loop", func(testing.TB, *Server) Work {
			return work(func(ctx context.Context, op func(context.Context) error) (err error) {
				for range attempts {
					if err = op(ctx); err == nil || ctx.Err() != nil {
						break
					}
				}
				return err
			})
		}},
		{"avast reused", func(testing.TB, *Server) Work {
			r := avastRetrier()
			return plain(func(_ context.Context, op func() error) error { return r.Do(op) })
		}},
		{"go-retry", func(testing.TB, *Server) Work {
			none := goretry.BackoffFunc(func() (time.Duration, bool) { return 0, false })
			return func(n int) (right int) {
				f := flaky{fails: fails}
				ctx := context.Background()
				op := func(context.Context) error {
					if err := f.next(); err != nil {
						return goretry.RetryableError(err)
					}
					return nil
				}
				for range n {
					if goretry.Do(ctx, goretry.WithMaxRetries(attempts-1, none), op) == nil {
						right++
					}
				}
				return right
			}
		}},
		{"backoff", func(testing.TB, *Server) Work {
			return func(n int) (right int) {
				f := flaky{fails: fails}
				ctx := context.Background()
				op := func() (int, error) { return 42, f.next() }
				for range n {
					_, err := backoff.Retry(ctx, op, backoff.WithBackOff(&backoff.ZeroBackOff{}), backoff.WithMaxTries(attempts))
					if err == nil {
						right++
					}
				}
				return right
			}
		}},
		{"failsafe-go", func(testing.TB, *Server) Work {
			executor := failsafe.With(failsafeRetry())
			return plain(func(_ context.Context, op func() error) error { return executor.Run(op) })
		}},
	}
}

func avastRetrier() *avast.Retrier { return avast.New(avastOptions()...) }

func avastOptions() []avast.Option {
	return []avast.Option{avast.Attempts(attempts), avast.Delay(0), avast.DelayType(avast.FixedDelay), avast.LastErrorOnly(true)}
}

func failsafeRetry() retrypolicy.RetryPolicy[int] {
	return retrypolicy.NewBuilder[int]().WithMaxAttempts(attempts).Build()
}
