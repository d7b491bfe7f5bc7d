package retry_test

import (
	"context"
	"errors"
	"fmt"
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
		for _, maxAttempts := range []int{1, 3, length} {
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

	last := made[len(made)-1]
	where := fmt.Sprintf("steps %v, %+v: %v", made, cfg, err)
	calls, retries := 0, 0
	for _, step := range made {
		if step != isRefused && step != isRefusedLate {
			calls++
		}
		if step == fails || step == isRefused && cfg.RetryRejected {
			retries++
		}
	}

	require.LessOrEqual(t, len(made), cfg.MaxAttempts, where)
	if last != fails && last != isRefused || last == isRefused && !cfg.RetryRejected {
		require.Equal(t, len(made)-1, retries, "what may not be repeated was: %s", where)
	} else {
		require.Len(t, made, cfg.MaxAttempts, "what may be repeated was not: %s", where)
	}
	if last == succeeds {
		require.NoError(t, err, where)
		return
	}
	require.Equal(t, calls == 0, errors.Is(err, resilience.ErrRejected), "a refusal exactly if no call was made: %s", where)
	if real != nil {
		require.ErrorIs(t, err, real, "the last real failure is lost: %s", where)
	}
	if r, ok := returned.(*refusal); ok {
		found, _ := errors.AsType[*refusal](err)
		require.Same(t, r, found, "the refusal is lost: %s", where)
	}
	e, ok := errors.AsType[*retry.ExhaustedError](err)
	if ok && last != isFinal {
		require.Equal(t, len(made), e.Attempts, where)
		require.NotZero(t, e.Reason, where)
	}
	if ok && last >= isCancelled {
		require.Equal(t, retry.Cancelled, e.Reason, where)
		require.ErrorIs(t, err, context.Canceled, where)
		require.ErrorIs(t, err, cause, where)
	}
}
