package httptransport

import (
	"context"
	"errors"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// An attemptContext is the context of one request to the base. It has the values
// and the deadline of the context that the policies gave to the attempt, and ends
// with that one until the response's headers are there. From then on the caller's
// alone ends it: the policies return, and so end theirs, before the body is read.
type attemptContext struct {
	context.Context
	cancel context.CancelCauseFunc
	caller context.Context
	limits context.Context // of the policies
	unlink func() bool     // from the context that ends this one; nil if it is the parent
	timer  *time.Timer     // of the body's time limit; nil for none
}

func newAttemptContext(caller, limits context.Context) *attemptContext {
	a := &attemptContext{caller: caller, limits: limits}
	if limits.Done() == caller.Done() { // no policy limits the attempt
		a.Context, a.cancel = context.WithCancelCause(limits)
		return a
	}
	a.Context, a.cancel = context.WithCancelCause(context.WithoutCancel(limits))
	a.follow(limits)
	return a
}

// follow has the end of ctx end the attempt, with an error that matches both ctx's
// and its cause.
func (a *attemptContext) follow(ctx context.Context) {
	a.unlink = context.AfterFunc(ctx, func() { a.cancel(resilience.ContextError(ctx)) })
}

// Deadline returns that of the context that the policies gave. A dialer shares out
// the time it has by it.
func (a *attemptContext) Deadline() (time.Time, bool) { return a.limits.Deadline() }

// Err tells a deadline from a cancellation, as the context does that was followed.
func (a *attemptContext) Err() error {
	err := a.Context.Err()
	if err != nil && errors.Is(context.Cause(a.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// explain returns what to make of an error of the base. One that says no more than
// that it was cancelled, as HTTP/2 does and whoever derives a context of this one,
// does not say that a time limit was the reason.
func (a *attemptContext) explain(err error) error {
	if errors.Is(err, context.Canceled) && a.Err() == context.DeadlineExceeded {
		return context.Cause(a.Context)
	}
	return err
}

// headersReceived ends what the policies' context governs. With limitBody, its
// deadline goes on. It returns an error if that context has ended, for then it is
// too late: the body is already cut off.
func (a *attemptContext) headersReceived(limitBody bool) error {
	if a.unlink == nil {
		return nil
	}
	if !a.unlink() {
		return resilience.ContextError(a.limits)
	}
	a.follow(a.caller)
	if deadline, ok := a.limits.Deadline(); ok && limitBody && !a.callers(deadline) {
		a.timer = time.AfterFunc(time.Until(deadline), func() { a.cancel(errBodyLimit) })
	}
	return nil
}

// callers reports whether a deadline is the caller's own, whose context sees to it
// and names it.
func (a *attemptContext) callers(deadline time.Time) bool {
	own, ok := a.caller.Deadline()
	return ok && !own.After(deadline)
}

// release ends the attempt. It may be called more than once.
func (a *attemptContext) release() {
	if a.unlink != nil {
		a.unlink()
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cancel(context.Canceled)
}
