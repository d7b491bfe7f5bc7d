package retry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hintError is a failure of the host that says when to come back.
type hintError struct {
	error
	after time.Duration
}

func (e *hintError) RetryAfter() time.Duration { return e.after }
func (e *hintError) Unwrap() error             { return e.error }

// attemptTimeout limits an operation in time, as package timeout does.
func attemptTimeout(d time.Duration, op func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return op(ctx)
	}
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAContextThatIsDoneOnArrivalMakesNoAttempt(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	h := newHost(nil)
	err := mustNew(t, retry.Config{}).Do(ctx, h.call)
	assert.Empty(t, h.calls)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, cause)
	_, ok := errors.AsType[*retry.ExhaustedError](err)
	assert.False(t, ok, "nothing was tried")
}

func TestCancellationEndsAWaitAtOnce(t *testing.T) {
	for name, failure := range map[string]error{
		"of the backoff": errBusy,
		"of a hint":      &hintError{errBusy, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				h := newHost(failure)
				p := mustNew(t, retry.Config{Backoff: retry.Constant(30 * time.Second), MaxHint: time.Hour})
				err := p.Do(ctx, h.call)
				assert.Equal(t, 100*time.Millisecond, time.Since(h.start))
				assert.Len(t, h.calls, 1)
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, err, errBusy)
			})
		})
	}
}

func TestWaitsThatWereCutShortLeaveNothingBehind(t *testing.T) {
	// The bubble ends with an error if a goroutine is left in it.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := mustNew(t, retry.Config{Backoff: retry.Constant(time.Hour)})
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() { assert.ErrorIs(t, p.Do(ctx, newHost(errBusy).call), context.Canceled) })
		}
		synctest.Wait()
		start := time.Now()
		cancel()
		wg.Wait()
		assert.Zero(t, time.Since(start))
	})
}

func TestACallThatWasCancelledMatchesTheFailureTheCancellationAndItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*time.Millisecond, func() { cancel(cause) })
		h := newHost(errBusy)
		err := mustNew(t, retry.Config{Backoff: retry.Constant(time.Second)}).Do(ctx, h.call)
		assert.Equal(t, seconds(0, 1), h.calls)
		assert.ErrorIs(t, err, errBusy)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		e := exhausted(t, err)
		assert.Equal(t, 2, e.Attempts)
		assert.Equal(t, retry.Cancelled, e.Reason)
		assert.Equal(t, errBusy, e.Last)
	})
}

func TestACallThatWasCancelledDuringAnAttemptKeepsTheEarlierFailure(t *testing.T) {
	cause := errors.New("shutting down")
	for name, err2 := range map[string]func(context.Context) error{
		"the context's error":      context.Context.Err,
		"its cause":                context.Cause,
		"the error, in a wrapping": func(ctx context.Context) error { return fmt.Errorf("get: %w", ctx.Err()) },
	} {
		for _, predicate := range []func(error) bool{retry.On(errBusy), always} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				p, err := retry.New(predicate, retry.Config{Backoff: retry.Constant(0)})
				require.NoError(t, err)
				n := 0
				err = p.Do(ctx, func(ctx context.Context) error {
					if n++; n == 1 {
						return errBusy
					}
					cancel(cause)
					return err2(ctx)
				})
				assert.Equal(t, 2, n)
				e := exhausted(t, err)
				assert.Equal(t, 2, e.Attempts)
				assert.Equal(t, retry.Cancelled, e.Reason)
				assert.Equal(t, errBusy, e.Last)
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, err, cause)
			})
		}
	}
}

func TestAFailureThatComesAfterTheCancellationIsStillTheLast(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	last := &hintError{errBusy, 0}
	n := 0
	err := mustNew(t, retry.Config{Backoff: retry.Constant(0)}).Do(ctx, func(context.Context) error {
		if n++; n == 1 {
			return errBusy
		}
		cancel()
		return last
	})
	assert.Same(t, last, exhausted(t, err).Last)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestACancellationDuringTheLastAttemptIsReportedAsOne(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	p := mustNew(t, retry.Config{
		MaxAttempts: 2,
		Backoff:     retry.Constant(0),
		OnRetry:     func(_ context.Context, e retry.Event) { assert.Equal(t, 1, e.Attempt) },
	})
	err := p.Do(ctx, func(context.Context) error {
		if n++; n == 2 {
			cancel()
		}
		return &hintError{errBusy, time.Duration(n-1) * time.Hour}
	})
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, errBusy)
	assert.Equal(t, retry.Cancelled, exhausted(t, err).Reason)
}

func TestACancelledFirstAttemptComesBackAsThePredicateHasIt(t *testing.T) {
	do := func(predicate func(error) bool) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p, err := retry.New(predicate, retry.Config{})
		require.NoError(t, err)
		return p.Do(ctx, func(ctx context.Context) error { cancel(); return ctx.Err() })
	}
	assert.Equal(t, context.Canceled, do(retry.On(errBusy)), "declined: as it is")

	e := exhausted(t, do(always))
	assert.Equal(t, retry.Cancelled, e.Reason)
	assert.Equal(t, context.Canceled, e.Last, "accepted: there is no other failure")
}

func TestADeclinedErrorIsNotHiddenByACancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := mustNew(t, retry.Config{Backoff: retry.Constant(0)}).Do(ctx, func(context.Context) error {
		if n++; n == 1 {
			return errBusy
		}
		cancel()
		return errWrong
	})
	assert.Same(t, errWrong, err)
}

func TestAnAttemptsOwnTimeoutIsNotTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := retry.New(retry.On(context.DeadlineExceeded), retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		n, start := 0, time.Now()
		require.NoError(t, p.Do(ctx, attemptTimeout(time.Second, func(ctx context.Context) error {
			if n++; n < 3 {
				return hang(ctx)
			}
			return nil
		})))
		assert.Equal(t, 3, n)
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestNoAttemptFollowsTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := retry.New(retry.On(context.DeadlineExceeded), retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		h := newHost(nil)
		err = p.Do(ctx, attemptTimeout(time.Second, func(ctx context.Context) error {
			_ = h.call(ctx)
			return hang(ctx)
		}))
		assert.Equal(t, seconds(0, 1), h.calls)
		assert.Equal(t, 1500*time.Millisecond, time.Since(h.start))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, retry.DeadlineReached, exhausted(t, err).Reason)
	})
}

func TestADeadlineBoundsAllAttemptsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := retry.New(retry.On(context.DeadlineExceeded), retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		h := newHost(nil)
		err = p.Do(ctx, attemptTimeout(30*time.Second, func(ctx context.Context) error {
			_ = h.call(ctx)
			return hang(ctx)
		}))
		assert.Equal(t, seconds(0, 30), h.calls)
		assert.Equal(t, 45*time.Second, time.Since(h.start))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestAWaitThatReachesOrOutlastsTheDeadlineIsNotBegun(t *testing.T) {
	for deadline, want := range map[time.Duration][]time.Duration{
		15 * time.Second:                 seconds(0),
		20 * time.Second:                 seconds(0), // the attempt would begin with a dead context
		20*time.Second + 1:               seconds(0, 20),
		40*time.Second + time.Nanosecond: seconds(0, 20, 40),
	} {
		for name, failure := range map[string]error{
			"backoff": errBusy,
			"hint":    fmt.Errorf("asked to wait: %w", &hintError{errBusy, 20 * time.Second}),
		} {
			t.Run(fmt.Sprint(name, deadline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					h := newHost(failure)
					backoff := retry.Constant(20 * time.Second)
					if failure != errBusy {
						backoff = 0
					}
					p := mustNew(t, retry.Config{MaxAttempts: 6, Backoff: backoff})
					err := p.Do(ctx, h.call)
					assert.Equal(t, want, h.calls)
					assert.Equal(t, want[len(want)-1], time.Since(h.start), "it returns with the last failure")
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.ErrorIs(t, err, errBusy)
					e := exhausted(t, err)
					assert.Equal(t, retry.DeadlineReached, e.Reason)
					assert.Equal(t, len(want), e.Attempts)
				})
			})
		}
	}
}

func TestNoAttemptBeginsOnceMaxElapsedIsReached(t *testing.T) {
	for limit, want := range map[time.Duration][]time.Duration{
		1:                  seconds(0),
		20 * time.Second:   seconds(0),
		20*time.Second + 1: seconds(0, 20),
		50 * time.Second:   seconds(0, 20, 40),
		0:                  seconds(0, 20, 40, 60, 80, 100), // none
	} {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(errBusy)
				p := mustNew(t, retry.Config{MaxAttempts: 6, Backoff: retry.Constant(20 * time.Second), MaxElapsed: limit})
				err := p.Do(t.Context(), h.call)
				assert.Equal(t, want, h.calls)
				assert.Equal(t, want[len(want)-1], time.Since(h.start))
				e := exhausted(t, err)
				assert.Equal(t, len(want), e.Attempts)
				assert.ErrorIs(t, err, errBusy)
				assert.NotErrorIs(t, err, context.DeadlineExceeded, "this limit is the policy's and not the caller's")
				if limit > 0 {
					assert.Equal(t, retry.ElapsedReached, e.Reason)
				}
			})
		})
	}
}

func TestMaxElapsedCountsAttemptsAndHoldsWithoutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(errBusy)
		p := mustNew(t, retry.Config{MaxAttempts: retry.Unlimited, Backoff: retry.Constant(0), MaxElapsed: 45 * time.Second})
		err := p.Do(t.Context(), func(ctx context.Context) error {
			time.Sleep(20 * time.Second)
			return h.call(ctx)
		})
		assert.Equal(t, seconds(20, 40, 60), h.calls, "an attempt that has begun is not cut short")
		assert.Equal(t, retry.ElapsedReached, exhausted(t, err).Reason)
	})
}

func TestElapsedTimeBeginsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var elapsed []time.Duration
		p := mustNew(t, retry.Config{
			MaxAttempts: 2,
			MaxElapsed:  72 * time.Hour,
			Backoff:     retry.Constant(time.Millisecond),
			OnRetry:     func(_ context.Context, e retry.Event) { elapsed = append(elapsed, e.Elapsed) },
		})
		time.Sleep(100 * time.Hour)
		n := 0
		require.NoError(t, p.Do(t.Context(), func(context.Context) error {
			if n++; n == 1 {
				time.Sleep(time.Millisecond)
				return errBusy
			}
			return nil
		}))
		assert.Equal(t, []time.Duration{time.Millisecond}, elapsed)
	})
}

func TestAHintIsAFloorThatNeitherMaximumNorJitterLowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, random := range randoms {
			h := newHost(fmt.Errorf("ask: %w", fmt.Errorf("http: %w", &hintError{errBusy, 30 * time.Second})))
			p := mustNew(t, retry.Config{
				MaxAttempts: 3,
				Backoff:     retry.Exponential{Base: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 1},
				Rand:        func() float64 { return random },
			})
			exhausted(t, p.Do(t.Context(), h.call))
			assert.Equal(t, seconds(0, 30, 60), h.calls)
		}
	})
}

func TestAShorterHintDoesNotShortenTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(&hintError{errBusy, 2 * time.Second}, nil)
		require.NoError(t, mustNew(t, retry.Config{Backoff: retry.Constant(5 * time.Second)}).Do(t.Context(), h.call))
		assert.Equal(t, seconds(0, 5), h.calls)
	})
}

func TestTheFailureBehindAHintIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(&hintError{errBusy, 2 * time.Second})
		err := mustNew(t, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)}).Do(t.Context(), h.call)
		assert.Equal(t, seconds(0, 2, 4), h.calls)
		assert.ErrorIs(t, err, errBusy)
		d, ok := resilience.RetryAfter(err)
		assert.True(t, ok)
		assert.Equal(t, 2*time.Second, d)
	})
}

func TestAHintUpToTheLongestIsWaitedAndBeyondItTheCallGivesUpAtOnce(t *testing.T) {
	for _, maxHint := range []time.Duration{0, time.Minute} { // the default is a minute
		for hint, want := range map[time.Duration][]time.Duration{
			0:                         seconds(0, 0.5), // not a hint: the backoff holds
			time.Second:               seconds(0, 1),
			59 * time.Second:          seconds(0, 59),
			60 * time.Second:          seconds(0, 60),
			60*time.Second + 1:        seconds(0),
			61 * time.Second:          seconds(0),
			time.Hour:                 seconds(0),
			277_403 * time.Second:     seconds(0),
			longest:                   seconds(0),
			-time.Second:              seconds(0, 0.5),
			500*time.Millisecond - 10: seconds(0, 0.5),
		} {
			synctest.Test(t, func(t *testing.T) {
				failure := &hintError{errBusy, hint}
				h := newHost(failure, nil)
				err := mustNew(t, retry.Config{Backoff: retry.Constant(500 * time.Millisecond), MaxHint: maxHint}).Do(t.Context(), h.call)
				assert.Equal(t, want, h.calls, "hint %v", hint)
				if len(want) == 2 {
					assert.NoError(t, err)
					return
				}
				assert.Zero(t, time.Since(h.start))
				e := exhausted(t, err)
				assert.Equal(t, retry.HintTooLong, e.Reason)
				assert.Same(t, failure, e.Last)
				got, ok := resilience.RetryAfter(err)
				assert.True(t, ok)
				assert.Equal(t, hint, got)
			})
		}
	}
}

func TestAnyHintCanBeHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(&hintError{errBusy, 277_403 * time.Second}, nil)
		require.NoError(t, mustNew(t, retry.Config{MaxHint: longest}).Do(t.Context(), h.call))
		assert.Equal(t, seconds(0, 277_403), h.calls)
	})
}
