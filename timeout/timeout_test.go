package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/timeout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errRefused = errors.New("connection refused")

func limit(t *testing.T, d time.Duration) *timeout.Policy {
	t.Helper()
	p, err := timeout.New(d)
	require.NoError(t, err)
	return p
}

// hang runs until its context ends and says why it did.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// assertCallers checks that an error is that of the caller's context and not of a
// limit.
func assertCallers(t *testing.T, err, want error) {
	t.Helper()
	assert.ErrorIs(t, err, want)
	_, ours := errors.AsType[*timeout.ExceededError](err)
	assert.False(t, ours, "taken for a limit's: %v", err)
}

func TestLimitMustBeAboveZero(t *testing.T) {
	for _, d := range []time.Duration{0, -1, -time.Second, math.MinInt64} {
		p, err := timeout.New(d)
		assert.Nil(t, p)
		assert.ErrorContains(t, err, fmt.Sprintf("timeout: limit is %v, want above zero", d))
	}
}

func TestLongestLimitDoesNotOverflow(t *testing.T) {
	p := limit(t, math.MaxInt64)
	assert.NoError(t, p.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
}

func TestLimitEndsTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := limit(t, 3*time.Second).Do(t.Context(), hang)
		assert.Equal(t, 3*time.Second, time.Since(start))

		exceeded, ok := errors.AsType[*timeout.ExceededError](err)
		require.True(t, ok, "got %v", err)
		assert.Equal(t, 3*time.Second, exceeded.Limit)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, resilience.ErrRejected, "a call was made")
		assert.EqualError(t, err, "timeout: limit of 3s exceeded")
	})
}

func TestExceededErrorIsATimeoutToTheStandardLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := limit(t, time.Second).Do(t.Context(), hang)
		assert.True(t, os.IsTimeout(err))
		netErr, ok := errors.AsType[net.Error](fmt.Errorf("call: %w", err))
		require.True(t, ok)
		assert.True(t, netErr.Timeout())
	})
}

func TestWhatTheOperationReturnedIsKept(t *testing.T) {
	for name, returns := range map[string]error{
		"the context's error":  context.DeadlineExceeded,
		"text of the driver's": errors.New("i/o timeout"),
		"an error of its own":  fmt.Errorf("dial: %w", errRefused),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := limit(t, time.Second).Do(t.Context(), func(ctx context.Context) error {
					<-ctx.Done()
					return returns
				})
				exceeded, ok := errors.AsType[*timeout.ExceededError](err)
				require.True(t, ok, "got %v", err)
				assert.Equal(t, returns, exceeded.Err)
				assert.ErrorIs(t, err, returns)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, returns.Error())
			})
		})
	}
}

func TestFailureBeforeTheLimitComesBackAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failure := range []error{errRefused, context.Canceled, context.DeadlineExceeded} {
			err := limit(t, time.Second).Do(t.Context(), func(context.Context) error {
				time.Sleep(time.Second - 1)
				return failure
			})
			assert.Equal(t, failure, err)
		}
	})
}

func TestSuccessIsASuccessHoweverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, takes := range []time.Duration{time.Second - 1, time.Second, time.Hour} {
			assert.NoError(t, limit(t, time.Second).Do(t.Context(), func(context.Context) error {
				time.Sleep(takes)
				return nil
			}))
		}
		assert.Equal(t, time.Hour+2*time.Second-1, time.Since(start), "returned before the operation")
	})
}

func TestOperationThatIgnoresItsContextIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := true
		err := limit(t, time.Second).Do(t.Context(), func(context.Context) error {
			time.Sleep(time.Minute)
			running = false
			return errRefused
		})
		assert.False(t, running)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, errRefused)
	})
}

func TestCallersDeadlineIsTheCallers(t *testing.T) {
	for name, callers := range map[string]time.Duration{
		"earlier":             500 * time.Millisecond,
		"at the same instant": time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), callers)
				defer cancel()
				err := limit(t, time.Second).Do(ctx, hang)
				assert.Equal(t, callers, time.Since(start))
				assertCallers(t, err, context.DeadlineExceeded)
			})
		})
	}
}

func TestCallersCancellationIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shutdown := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(shutdown) })
		start := time.Now()
		err := limit(t, time.Second).Do(ctx, hang)
		assert.Equal(t, 100*time.Millisecond, time.Since(start))
		assertCallers(t, err, shutdown)
	})
}

func TestCallerWhoGoesAwayAfterTheLimitHasTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shutdown := errors.New("shutting down")
		slowToStop := func(returns func(context.Context) error) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(2*time.Second, func() { cancel(shutdown) })
			return limit(t, time.Second).Do(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(5 * time.Second)
				return returns(ctx)
			})
		}

		err := slowToStop(context.Cause)
		assertCallers(t, err, shutdown)
		assert.ErrorIs(t, err, context.Canceled)

		err = slowToStop(func(context.Context) error { return errRefused })
		assertCallers(t, err, shutdown)
		assert.ErrorIs(t, err, errRefused, "what the operation said is lost")
	})
}

func TestContextThatIsDoneOnArrivalRunsNothing(t *testing.T) {
	shutdown := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(shutdown)
	err := limit(t, time.Second).Do(ctx, func(context.Context) error {
		t.Error("ran")
		return nil
	})
	assert.Equal(t, resilience.ContextError(ctx), err)
	assertCallers(t, err, shutdown)
}

func TestOperationSeesItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sees := func(ctx context.Context) time.Duration {
			var left time.Duration
			require.NoError(t, limit(t, time.Minute).Do(ctx, func(ctx context.Context) error {
				deadline, ok := ctx.Deadline()
				assert.True(t, ok)
				left = time.Until(deadline)
				return nil
			}))
			return left
		}
		assert.Equal(t, time.Minute, sees(t.Context()))

		later, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.Equal(t, time.Minute, sees(later))

		earlier, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, time.Second, sees(earlier))
	})
}

// A result that outlives the operation fails always and at once, not now and then
// and depending on its size.
func TestContextIsReleasedOnReturn(t *testing.T) {
	earlier, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for name, caller := range map[string]context.Context{
		"limit below the caller's deadline": t.Context(),
		"limit above the caller's deadline": earlier,
	} {
		t.Run(name, func(t *testing.T) {
			var given context.Context
			run := func(op func() error) {
				defer func() { _ = recover() }()
				_ = limit(t, time.Minute).Do(caller, func(ctx context.Context) error {
					given = ctx
					return op()
				})
			}
			run(func() error { return nil })
			assert.ErrorIs(t, given.Err(), context.Canceled)
			run(func() error { return errRefused })
			assert.ErrorIs(t, given.Err(), context.Canceled)
			run(func() error { panic("op") })
			assert.ErrorIs(t, given.Err(), context.Canceled)
			assert.NoError(t, caller.Err())
		})
	}
}

func TestPanicAndGoexitPassThrough(t *testing.T) {
	p := limit(t, time.Minute)
	assert.PanicsWithValue(t, "op", func() {
		_ = p.Do(t.Context(), func(context.Context) error { panic("op") })
	})

	returned := false
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = p.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		returned = true
	}()
	<-gone
	assert.False(t, returned)
}

func TestOfTwoLimitsTheOneThatRanOutIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(policies ...resilience.Policy) time.Duration {
			err := resilience.Join(policies...).Do(t.Context(), hang)
			exceeded, ok := errors.AsType[*timeout.ExceededError](err)
			require.True(t, ok, "got %v", err)
			return exceeded.Limit
		}
		assert.Equal(t, 1*time.Second, named(limit(t, 3*time.Second), limit(t, 1*time.Second)))
		assert.Equal(t, 1*time.Second, named(limit(t, 1*time.Second), limit(t, 3*time.Second)))
		twice := limit(t, time.Second)
		assert.Equal(t, 1*time.Second, named(twice, twice))
	})
}

func TestSuccessAllocatesNoMoreThanItsContext(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	bare := testing.AllocsPerRun(100, func() {
		_, cancel := context.WithTimeoutCause(ctx, time.Minute, errRefused)
		cancel()
	})
	p := limit(t, time.Minute)
	op := func(context.Context) error { return nil }
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = p.Do(ctx, op) }), bare)
}

func BenchmarkDo(b *testing.B) {
	p, err := timeout.New(time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	op := func(context.Context) error { return nil }
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Do(ctx, op)
	}
}

func TestOperationThatReturnsTheCauseIsNotToldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, format := range []string{"%w", "query: %w"} {
			var said error
			err := limit(t, time.Second).Do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				said = fmt.Errorf(format, context.Cause(ctx))
				return said
			})
			assert.Equal(t, said, err)
			_, ours := errors.AsType[*timeout.ExceededError](err)
			assert.True(t, ours)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}
