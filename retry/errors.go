package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// A Reason says why no further attempt was made.
type Reason int

// The reasons. There is no reason zero.
const (
	AttemptsUsed    Reason = iota + 1 // all of MaxAttempts were made
	Cancelled                         // the caller's context was cancelled
	DeadlineReached                   // its deadline has passed, or would have by the end of the next wait
	ElapsedReached                    // the next attempt would have begun after MaxElapsed
	HintTooLong                       // the server asked for a longer wait than MaxHint
	Rejected                          // a policy inside refused to make the call again
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case AttemptsUsed:
		return "attempts used up"
	case Cancelled:
		return "cancelled"
	case DeadlineReached:
		return "no time left before the deadline"
	case ElapsedReached:
		return "longest elapsed time reached"
	case HintTooLong:
		return "asked to stay away longer than is honoured"
	case Rejected:
		return "next attempt refused without a call"
	default:
		return fmt.Sprintf("Reason(%d)", int(r))
	}
}

// An ExhaustedError says that the operation failed, that its error was worth
// another attempt, and why there was none.
//
// It matches Last, and Context if there is one. It also matches whatever Refusal
// matches and [errors.As] finds what is in it, with one exception: it is not
// [resilience.ErrRejected]. A call was made and failed, and a breaker around the
// retry has to count that; were it taken for a refusal, a host behind a retry and
// a limiter could be down for ever without anybody's circuit opening.
//
// To every retry around it, it is final. A call that must not be made twice,
// whatever the predicates say of its error, may return one to say so.
type ExhaustedError struct {
	// Attempts is how often the operation was run, including runs that were
	// refused.
	Attempts int

	// Reason is why it was not run again.
	Reason Reason

	// Last is the last real failure, never nil: neither a refusal nor what became
	// of an attempt because the caller went away, unless there was nothing else.
	Last error

	// Context is what [resilience.ContextError] says of the caller's context if
	// that ended the call, and context.DeadlineExceeded if its deadline was too
	// near for the next wait. Otherwise it is nil.
	Context error

	// Refusal is what a policy inside, a limiter or a breaker, answered to the
	// last attempt, if it refused that and an earlier one was a real failure.
	// Otherwise it is nil.
	Refusal error
}

// Error implements error. The message names the attempts and the reason and is
// bounded: long messages of the errors inside are cut.
func (e *ExhaustedError) Error() string {
	var b strings.Builder
	plural := "s"
	if e.Attempts == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "retry: gave up after %d attempt%s: %v: %s", e.Attempts, plural, e.Reason, brief(e.Last))
	if e.Refusal != nil {
		b.WriteString("; refused by: " + brief(e.Refusal))
	}
	if e.Context != nil {
		b.WriteString("; context: " + brief(e.Context))
	}
	return b.String()
}

// Unwrap returns Last, and Context if there is one.
func (e *ExhaustedError) Unwrap() []error {
	if e.Context == nil {
		return []error{e.Last}
	}
	return []error{e.Last, e.Context}
}

// Is reports whether Refusal matches target, which is not
// [resilience.ErrRejected]. It is for [errors.Is].
func (e *ExhaustedError) Is(target error) bool {
	return target != resilience.ErrRejected && errors.Is(e.Refusal, target)
}

// As finds target in Last, or else in Refusal. It is for [errors.As].
func (e *ExhaustedError) As(target any) bool {
	return errors.As(e.Last, target) || errors.As(e.Refusal, target)
}

// RetryAfter returns how long the refusal, or else the last failure, asks to be
// left alone, and 0 if neither does. It is for [resilience.RetryAfter].
func (e *ExhaustedError) RetryAfter() time.Duration {
	if d, ok := resilience.RetryAfter(e.Refusal); ok {
		return d
	}
	d, _ := resilience.RetryAfter(e.Last)
	return d
}

// contextReason returns what the error of a context that is done means.
func contextReason(err error) Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return DeadlineReached
	}
	return Cancelled
}

// brief returns err's message, cut to a kilobyte. A host that fails may answer
// with a page of any size.
func brief(err error) string {
	const limit = 1 << 10
	if err == nil {
		return "no error"
	}
	s := err.Error()
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
