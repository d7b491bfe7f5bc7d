package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// circuit is a breaker of the simplest kind: open for a minute after three
// failures, where a refusal is none.
type circuit struct {
	failures int
	openTill time.Time
}

func (c *circuit) Do(ctx context.Context, op func(context.Context) error) error {
	if left := time.Until(c.openTill); left > 0 {
		return &refusal{after: left, reason: errors.New("open")}
	}
	err := op(ctx)
	switch {
	case err == nil:
		c.failures = 0
	case !errors.Is(err, resilience.ErrRejected):
		if c.failures++; c.failures == 3 {
			c.failures, c.openTill = 0, time.Now().Add(time.Minute)
		}
	}
	return err
}

// bucket refuses all but the first n calls.
type bucket struct{ n int }

func (b *bucket) Do(ctx context.Context, op func(context.Context) error) error {
	if b.n--; b.n < 0 {
		return &refusal{after: time.Minute, reason: errors.New("limited")}
	}
	return op(ctx)
}

func TestACircuitThatOpensInsideARetryEndsItThereAndTheFailureIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, err := retry.New(always, retry.Config{MaxAttempts: 5, Backoff: retry.Constant(time.Second)})
		require.NoError(t, err)
		h := newHost(errBusy)
		ask := resilience.Join(again, new(circuit))

		err = ask.Do(t.Context(), h.call)
		assert.Equal(t, seconds(0, 1, 2), h.calls)
		assert.Equal(t, 3*time.Second, time.Since(h.start), "and not a second later")
		e := exhausted(t, err)
		assert.Equal(t, retry.Rejected, e.Reason)
		assert.Equal(t, 4, e.Attempts, "the refused one is an attempt")
		assert.ErrorIs(t, err, errBusy)
		open, ok := errors.AsType[*refusal](err)
		assert.True(t, ok)
		assert.Same(t, open, e.Refusal)
		after, ok := resilience.RetryAfter(err)
		assert.True(t, ok)
		assert.Equal(t, 59*time.Second, after)

		time.Sleep(29 * time.Second)
		h = newHost(errBusy)
		err = ask.Do(t.Context(), h.call)
		assert.Empty(t, h.calls)
		assert.Zero(t, time.Since(h.start), "a circuit that is open is not waited for")
		assert.IsType(t, (*refusal)(nil), err, "a refusal alone comes back as it is")
		after, _ = resilience.RetryAfter(err)
		assert.Equal(t, 30*time.Second, after)
	})
}

func TestABreakerAroundARetryCountsTheFailureBehindARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := mustNew(t, retry.Config{Backoff: retry.Constant(0)})
		outer := new(circuit)
		h := newHost(errBusy)
		for range 3 {
			err := resilience.Join(outer, again, &bucket{n: 1}).Do(t.Context(), h.call)
			assert.Equal(t, retry.Rejected, exhausted(t, err).Reason)
			assert.NotErrorIs(t, err, resilience.ErrRejected)
		}
		err := resilience.Join(outer, again, &bucket{n: 1}).Do(t.Context(), h.call)
		assert.ErrorIs(t, err, resilience.ErrRejected, "the circuit has opened")
		assert.Len(t, h.calls, 3)
	})
}

func TestABreakerAroundARetryDoesNotCountARefusalAlone(t *testing.T) {
	again := mustNew(t, retry.Config{})
	outer := new(circuit)
	for range 10 {
		err := resilience.Join(outer, again, &bucket{}).Do(t.Context(), newHost(errBusy).call)
		assert.ErrorIs(t, err, resilience.ErrRejected)
	}
	assert.Zero(t, outer.failures)
}

func TestARefusalIsWaitedForIfThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, err := retry.New(retry.On(errBusy, resilience.ErrRejected),
			retry.Config{MaxAttempts: 5, Backoff: retry.Constant(time.Second), RetryRejected: true})
		require.NoError(t, err)
		h := newHost(errBusy, errBusy, errBusy, nil)
		require.NoError(t, resilience.Join(again, new(circuit)).Do(t.Context(), h.call))
		assert.Equal(t, seconds(0, 1, 2, 62), h.calls, "at 3 s the circuit asked for 59 more")
	})
}

func TestRefusalsAreStillJudgedByThePredicateIfTheyMayBeRetried(t *testing.T) {
	again := mustNew(t, retry.Config{RetryRejected: true, Backoff: retry.Constant(0)})
	h := newHost(errBusy)

	err := resilience.Join(again, &bucket{}).Do(t.Context(), h.call)
	assert.IsType(t, (*refusal)(nil), err, "declined: as it is")

	e := exhausted(t, resilience.Join(again, &bucket{n: 2}).Do(t.Context(), h.call))
	assert.Equal(t, retry.Rejected, e.Reason)
	assert.Equal(t, errBusy, e.Last)
	assert.Len(t, h.calls, 2)
}

func TestNothingButRefusalsIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, err := retry.New(always, retry.Config{MaxAttempts: 3, RetryRejected: true})
		require.NoError(t, err)
		h := newHost(nil)
		err = resilience.Join(again, &bucket{}).Do(t.Context(), h.call)
		assert.Empty(t, h.calls)
		assert.Equal(t, 2*time.Minute, time.Since(h.start))
		e := exhausted(t, err)
		assert.Equal(t, retry.AttemptsUsed, e.Reason)
		assert.Equal(t, 3, e.Attempts)
		assert.IsType(t, (*refusal)(nil), e.Last)
		assert.Nil(t, e.Refusal)
		assert.ErrorIs(t, err, resilience.ErrRejected, "no call was made")
	})
}

func TestARealFailureOutweighsRefusalsBeforeAndAfterIt(t *testing.T) {
	refused := &refusal{}
	for name, script := range map[string][]error{
		"before": {refused, errBusy, errBusy},
		"after":  {errBusy, refused, refused},
		"around": {refused, errBusy, refused},
	} {
		again, err := retry.New(always, retry.Config{MaxAttempts: 3, RetryRejected: true, Backoff: retry.Constant(0)})
		require.NoError(t, err)
		err = again.Do(t.Context(), newHost(script...).call)
		e := exhausted(t, err)
		assert.Equal(t, errBusy, e.Last, name)
		assert.Equal(t, retry.AttemptsUsed, e.Reason, name)
		assert.NotErrorIs(t, err, resilience.ErrRejected, name)
		if name == "before" {
			assert.Nil(t, e.Refusal)
		} else {
			assert.Same(t, refused, e.Refusal)
		}
	}
}

func TestARefusalsHintBeyondTheLongestEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again, err := retry.New(always, retry.Config{RetryRejected: true, MaxHint: 59 * time.Second})
		require.NoError(t, err)
		start := time.Now()
		err = resilience.Join(again, &bucket{}).Do(t.Context(), newHost(nil).call)
		assert.Equal(t, retry.HintTooLong, exhausted(t, err).Reason)
		assert.ErrorIs(t, err, resilience.ErrRejected)
		assert.Zero(t, time.Since(start))
	})
}

func TestACallCutShortWhileItWaitsForARefusalKeepsAllThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second, cancel)
		again, err := retry.New(always, retry.Config{RetryRejected: true})
		require.NoError(t, err)
		err = resilience.Join(again, &bucket{n: 1}).Do(ctx, newHost(errBusy).call)
		e := exhausted(t, err)
		assert.Equal(t, retry.Cancelled, e.Reason)
		assert.Equal(t, errBusy, e.Last)
		assert.IsType(t, (*refusal)(nil), e.Refusal)
		assert.ErrorIs(t, err, context.Canceled)
	})
}

func TestARefusalAfterTheCallerWentAwayMatchesTheFailureTheCauseAndItself(t *testing.T) {
	cause := errors.New("shutting down")
	for _, reason := range []error{errors.New("limited"), context.Canceled} {
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		err := mustNew(t, retry.Config{Backoff: retry.Constant(0)}).Do(ctx, func(context.Context) error {
			if n++; n == 1 {
				return errBusy
			}
			cancel(cause)
			return &refusal{reason: reason}
		})
		e := exhausted(t, err)
		assert.Equal(t, retry.Cancelled, e.Reason)
		assert.Equal(t, errBusy, e.Last)
		assert.IsType(t, (*refusal)(nil), e.Refusal)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.NotErrorIs(t, err, resilience.ErrRejected)
	}
}

func TestARetryInsideARetryIsNotMultiplied(t *testing.T) {
	inner, err := retry.New(always, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
	require.NoError(t, err)
	outer, err := retry.New(always, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
	require.NoError(t, err)
	h := newHost(errBusy)
	err = outer.Do(t.Context(), func(ctx context.Context) error {
		return fmt.Errorf("inner: %w", inner.Do(ctx, h.call))
	})
	assert.Len(t, h.calls, 3)
	assert.ErrorContains(t, err, "inner: ", "it comes back as it is")
	assert.Equal(t, 3, exhausted(t, err).Attempts)
}

func TestWhatAnInnerRetryDeclinesTheOuterMayStillRepeat(t *testing.T) {
	inner := mustNew(t, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
	outer, err := retry.New(retry.On(errWrong), retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
	require.NoError(t, err)
	h := newHost(errBusy, errWrong, errBusy, errBusy, nil)
	require.NoError(t, resilience.Join(outer, inner).Do(t.Context(), h.call))
	assert.Len(t, h.calls, 5)
}

func TestAnInnerRetryThatWasCancelledComesBackWhole(t *testing.T) {
	inner := mustNew(t, retry.Config{Backoff: retry.Constant(0)})
	outer, err := retry.New(retry.On(errWrong), retry.Config{Backoff: retry.Constant(0)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	err = resilience.Join(outer, inner).Do(ctx, func(context.Context) error {
		if n++; n == 1 {
			return errWrong // the outer one's first failure
		}
		cancel()
		return errBusy
	})
	e := exhausted(t, err)
	assert.Equal(t, errBusy, e.Last)
	assert.Equal(t, 1, e.Attempts)
	assert.ErrorIs(t, err, context.Canceled)
}
