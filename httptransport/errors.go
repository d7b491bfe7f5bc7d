package httptransport

import (
	"context"
	"errors"
	"net"

	"github.com/resilience-toolkit/resilience"
)

// A ConnectionError is, to the policies, what the base returned instead of a
// response: the host was not reached, or the connection broke, or the attempt's time
// limit ran out. Outside the transport it is what the base returned.
//
// If the request is at fault, since it names no host or its header cannot be sent, the
// error matches [resilience.ErrRejected]: no retry repeats it, and it says nothing
// about the host.
type ConnectionError struct {
	Err error // never nil

	malformed bool // the request is
}

// Error implements error. It is the text of Err.
func (e *ConnectionError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConnectionError) Unwrap() error { return e.Err }

// Is is for [errors.Is].
func (e *ConnectionError) Is(target error) bool {
	return e.malformed && target == resilience.ErrRejected
}

// A refusal is an attempt that could not be made, for a reason on this side.
type refusal struct {
	reason string
	err    error // nil for none
}

func (e *refusal) Error() string {
	if e.err == nil {
		return "httptransport: " + e.reason
	}
	return "httptransport: " + e.reason + ": " + e.err.Error()
}

func (e *refusal) Is(target error) bool { return target == resilience.ErrRejected }
func (e *refusal) Unwrap() error        { return e.err }

// A timeoutError is an error that somewhere inside is a timeout, to those who do
// not look inside.
type timeoutError struct{ err error }

func (e *timeoutError) Error() string   { return e.err.Error() }
func (e *timeoutError) Unwrap() error   { return e.err }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }

// asTimeout returns the error of RoundTrip so that [net/url.Error.Timeout], which
// http.Client's callers ask and which looks at the outermost error only, finds a
// timeout: the caller's deadline or, while the caller is still there, the last
// attempt's.
func asTimeout(ctx context.Context, err error) error {
	if _, ok := err.(interface{ Timeout() bool }); ok {
		return err
	}
	timeout := ctx.Err() == context.DeadlineExceeded
	if ctx.Err() == nil {
		inner, ok := errors.AsType[net.Error](err)
		timeout = ok && inner.Timeout()
	}
	if !timeout {
		return err
	}
	return &timeoutError{err}
}

// errBodyLimit ends a body that was not read within its attempt's time limit.
var errBodyLimit error = &bodyLimitError{}

type bodyLimitError struct{}

func (*bodyLimitError) Error() string {
	return "httptransport: the attempt's time limit ran out before the body had been read"
}
func (*bodyLimitError) Is(target error) bool { return target == context.DeadlineExceeded }
func (*bodyLimitError) Timeout() bool        { return true }
func (*bodyLimitError) Temporary() bool      { return true }
