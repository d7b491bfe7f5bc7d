package resilience

import (
	"context"
	"errors"
	"time"
)

// ErrRejected is matched, with [errors.Is], by every error that stands for a
// refusal made on this side, without making the call: a limiter's, an open
// circuit's, a policy's of your own. A breaker never counts one as a failure of
// the host, and a retry passes one on instead of trying again.
var ErrRejected = errors.New("resilience: rejected without a call")

// RetryAfter reports how long the side that refused asks to be left alone: the
// duration of the first error in err's tree, in the order of [errors.As], that has
// a method
//
//	RetryAfter() time.Duration
//
// with a result above zero. Refusals of a limiter and of a breaker have one, and so
// does any error of yours with such a method, for instance the one you make of a
// response with a Retry-After header (RFC 9110, section 10.2.3). What can never
// succeed has none. Where there is none, RetryAfter returns 0 and false, also for
// a nil error.
func RetryAfter(err error) (time.Duration, bool) {
	for err != nil {
		if h, ok := err.(interface{ RetryAfter() time.Duration }); ok {
			if d := h.RetryAfter(); d > 0 {
				return d, true
			}
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				if d, ok := RetryAfter(e); ok {
					return d, true
				}
			}
			return 0, false
		default:
			return 0, false
		}
	}
	return 0, false
}

// ContextError returns the error to give back for a context that is done, and nil
// for one that is not. It matches both ctx.Err(), that is [context.Canceled] or
// [context.DeadlineExceeded], and [context.Cause]: whoever only asks whether the
// caller went away, and whoever cancelled with a cause of their own, each find what
// they look for. For a policy's author.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, err):
		return cause
	default:
		return &contextError{err: err, cause: cause}
	}
}

type contextError struct{ err, cause error }

func (e *contextError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *contextError) Unwrap() []error { return []error{e.err, e.cause} }
