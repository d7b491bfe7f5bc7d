package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/require"
)

// What an attempt may come to.
const (
	succeeds   = iota
	fails      // and may be repeated
	isDeclined // by the predicate
	isRefused
	isFinal       // exhausted in a retry inside
	isCancelled   // and says no more than that
	failsTooLate  // fails, while the caller goes away
	isRefusedLate // is refused, while the caller goes away
	ways
)

// Whatever the attempts come to, in whatever order: nothing is lost, no attempt is
// made that may not be, and an error is a refusal if and only if no call was made.
func TestEveryCourseOfACallKeepsTheRules(t *testing.T) {
	const length = 4
	for course := range ways * ways * ways * ways {
		steps := make([]int, length)
		for i, rest := 0, course; i < length; i, rest = i+1, rest/ways {
			steps[i] = rest % ways
		}
		for _, maxAttempts := range []int{3, length} {
			for _, retryRejected := range []bool{false, true} {
				walk(t, steps, retry.Config{
					MaxAttempts:   maxAttempts,
					RetryRejected: retryRejected,
					Backoff:       retry.Constant(0),
				})
			}
		}
	}
}

func walk(t *testing.T, steps []int, cfg retry.Config) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	p, err := retry.New(retry.On(errBusy, resilience.ErrRejected), cfg)
	require.NoError(t, err)

	var (
		made     []int // how each attempt ended
		real     error // the last real failure
		returned error // by the last attempt
	)
	err = p.Do(ctx, func(context.Context) error {
		step := steps[len(made)]
		made = append(made, step)
		if step >= isCancelled {
			cancel(cause)
		}
		switch step {
		case succeeds:
			returned = nil
		case fails, failsTooLate:
			returned = fmt.Errorf("attempt %d: %w", len(made), errBusy)
		case isDeclined:
			returned = fmt.Errorf("attempt %d: %w", len(made), errWrong)
		case isRefused, isRefusedLate:
			returned = &refusal{reason: errors.New("limited")}
			return returned
		case isFinal:
			returned = &retry.ExhaustedError{Attempts: 9, Reason: retry.AttemptsUsed, Last: fmt.Errorf("inner: %w", errBusy)}
		case isCancelled:
			returned = ctx.Err()
			return returned
		}
		real = returned
		return returned
	})

	where := []any{"steps %v, %+v: %v", made, cfg, err}
	refused := func(step int) bool { return step == isRefused || step == isRefusedLate }
	repeatable := func(step int) bool { return step == fails || step == isRefused && cfg.RetryRejected }
	last, earlier := made[len(made)-1], made[:len(made)-1]

	// It went on where it could, and nowhere else.
	require.True(t, !slices.ContainsFunc(earlier, func(step int) bool { return !repeatable(step) }), where...)
	if repeatable(last) {
		require.Len(t, made, cfg.MaxAttempts, where...)
	}
	require.LessOrEqual(t, len(made), cfg.MaxAttempts, where...)

	if last == succeeds {
		require.NoError(t, err, where...)
		return
	}
	called := slices.ContainsFunc(made, func(step int) bool { return !refused(step) })
	require.Equal(t, !called, errors.Is(err, resilience.ErrRejected), where...)

	// Neither the last real failure nor a refusal that ended the call is lost.
	if real != nil {
		require.ErrorIs(t, err, real, where...)
	}
	if refused(last) {
		found, _ := errors.AsType[*refusal](err)
		require.Same(t, returned, found, where...)
	}

	e, ok := errors.AsType[*retry.ExhaustedError](err)
	if ok && last != isFinal {
		require.Equal(t, len(made), e.Attempts, where...)
		require.NotZero(t, e.Reason, where...)
	}
	if ok && last >= isCancelled {
		require.Equal(t, retry.Cancelled, e.Reason, where...)
		require.ErrorIs(t, err, context.Canceled, where...)
		require.ErrorIs(t, err, cause, where...)
	}
}
