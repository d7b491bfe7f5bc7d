package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
)

// refusal is a policy's, with a hint.
type refusal struct {
	after  time.Duration
	reason error
}

func (r *refusal) Error() string             { return "refused" }
func (r *refusal) RetryAfter() time.Duration { return r.after }
func (r *refusal) Unwrap() []error           { return []error{resilience.ErrRejected, r.reason} }

var reasons = []retry.Reason{
	retry.AttemptsUsed, retry.Cancelled, retry.DeadlineReached,
	retry.ElapsedReached, retry.HintTooLong, retry.Rejected,
}

func TestTheMessageNamesAttemptsReasonAndEveryError(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range reasons {
		e := &retry.ExhaustedError{Attempts: 17, Reason: r, Last: errBusy, Context: context.Canceled, Refusal: &refusal{}}
		msg := e.Error()
		for _, want := range []string{"retry: ", "17 attempts", r.String(), "busy", "refused", "context canceled"} {
			assert.Contains(t, msg, want)
		}
		seen[msg] = true
	}
	assert.Len(t, seen, len(reasons), "each reason reads differently")
	assert.Contains(t, (&retry.ExhaustedError{Attempts: 1, Reason: retry.AttemptsUsed, Last: errBusy}).Error(), "1 attempt:")
	assert.Equal(t, "Reason(0)", retry.Reason(0).String())
}

func TestTheMessageIsBoundedAndStaysText(t *testing.T) {
	huge := errors.New(strings.Repeat("é", 1<<20))
	odd := errors.New("x" + huge.Error())
	e := &retry.ExhaustedError{Attempts: 1 << 60, Reason: retry.Cancelled, Last: huge, Context: odd, Refusal: huge}
	assert.Less(t, len(e.Error()), 4<<10)
	assert.True(t, utf8.ValidString(e.Error()))
}

func TestAnEmptyMessageInsideIsStillAMessage(t *testing.T) {
	e := &retry.ExhaustedError{Attempts: 1, Reason: retry.AttemptsUsed, Last: errors.New("")}
	assert.NotEmpty(t, e.Error())
}

func TestTheZeroErrorCanBeReadWithoutHarm(t *testing.T) {
	e := new(retry.ExhaustedError)
	assert.NotEmpty(t, e.Error())
	assert.Zero(t, e.RetryAfter())
	assert.NotErrorIs(t, e, errBusy)
	_, ok := errors.AsType[*refusal](e)
	assert.False(t, ok)
}

func TestARefusalIsFoundButIsNotTheIdentityOfTheError(t *testing.T) {
	last := &hintError{errBusy, time.Minute}
	r := &refusal{after: time.Second, reason: io.ErrClosedPipe}
	var err error = &retry.ExhaustedError{Attempts: 2, Reason: retry.Rejected, Last: last, Refusal: r}
	err = fmt.Errorf("ask: %w", err)

	assert.NotErrorIs(t, err, resilience.ErrRejected, "a call was made and failed")
	assert.ErrorIs(t, err, errBusy)
	assert.ErrorIs(t, err, io.ErrClosedPipe, "what else the refusal matches")

	var found *refusal
	assert.ErrorAs(t, err, &found)
	assert.Same(t, r, found)

	d, ok := resilience.RetryAfter(err)
	assert.True(t, ok)
	assert.Equal(t, time.Second, d, "the refusal is the newer word")
}

func TestWhereBothHaveItTheFailureIsFoundBeforeTheRefusal(t *testing.T) {
	last, other := &hintError{errBusy, 1}, &hintError{errWrong, 2}
	err := &retry.ExhaustedError{Attempts: 2, Reason: retry.Rejected, Last: last, Refusal: &refusal{reason: other}}
	found, ok := errors.AsType[*hintError](err)
	assert.True(t, ok)
	assert.Same(t, last, found)
}

func TestTheHintOfTheFailureIsFoundIfTheRefusalHasNone(t *testing.T) {
	err := &retry.ExhaustedError{Reason: retry.Rejected, Last: &hintError{errBusy, time.Minute}, Refusal: &refusal{}}
	d, ok := resilience.RetryAfter(err)
	assert.True(t, ok)
	assert.Equal(t, time.Minute, d)

	_, ok = resilience.RetryAfter(&retry.ExhaustedError{Reason: retry.AttemptsUsed, Last: errBusy})
	assert.False(t, ok)
}

func TestWithoutARefusalTheErrorIsARejectionIfItsFailureIs(t *testing.T) {
	assert.ErrorIs(t, &retry.ExhaustedError{Last: &refusal{}}, resilience.ErrRejected)
	assert.NotErrorIs(t, &retry.ExhaustedError{Last: errBusy}, resilience.ErrRejected)
}
