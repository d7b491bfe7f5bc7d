// Package timeout bounds how long a call may take.
//
// Where the policy stands in the chain says what is bounded. Outermost, it is the
// whole call, waits between attempts included; inside a retry, it is each attempt:
//
//	whole, err := timeout.New(45 * time.Second)
//	each, err := timeout.New(10 * time.Second)
//	...
//	ask := resilience.Wrap(client.Ask, whole, circuit, again, each)
//
// # Cooperation
//
// The operation is told to stop and is not abandoned: its context ends at the
// limit, and Do returns when the operation does, not before. An operation that
// ignores its context is not cut short by anything. One that has succeeded is a
// success, however late.
//
// # The operation's context ends with the operation
//
// When Do returns, the context it gave to the operation is cancelled, always, so
// that nothing started with it is left behind. A result that is read later, a
// response's body or a stream, ends with it too: read it inside the operation, or
// use package httptransport, which keeps a body alive for whoever reads it.
//
// # Errors
//
// An operation that fails after the limit has ended its context comes back in an
// [ExceededError], which matches [context.DeadlineExceeded] and whatever the
// operation returned; if it returned the cause of its context, wrapped or not, that
// is such an error already, and comes back as it is. An operation that fails for another reason, before the limit
// or because the caller's own context ended, comes back as it is: the caller's
// deadline is the caller's, though both match DeadlineExceeded. That is how a
// retry around this policy tells an attempt that was too slow, and may be repeated,
// from a call whose time is up. A context that is done on arrival gives
// [resilience.ContextError], and the operation is not run.
//
// # Zero values and concurrency
//
// The zero [Policy] is not usable; [New] makes one. A Policy has no state and may
// be used by any number of goroutines at once, and twice in one chain.
//
// # Roads not taken
//
// Running the operation in a goroutine, to walk away from it at the limit, would
// leave it at work on behalf of nobody, for as long as it likes, with its result
// lost and its place in every limit given to somebody else.
package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// A Policy bounds one run of what it wraps, as a [resilience.Policy]. Make one
// with [New].
type Policy struct {
	resilience.Sequential[*Policy]

	limit time.Duration
	cause *ExceededError // of the end of an operation's context
}

var _ resilience.Policy = (*Policy)(nil)

// New returns a policy that gives an operation the limit to finish in. It returns
// an error if the limit is not above zero.
func New(limit time.Duration) (*Policy, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("timeout: limit is %v, want above zero", limit)
	}
	return &Policy{limit: limit, cause: &ExceededError{Limit: limit}}, nil
}

// Do implements [resilience.Policy]. It runs op once, with a context whose
// deadline is the limit from now or the one of ctx, if that is not later. At the
// limit the context ends with an [ExceededError] as its cause.
func (p *Policy) Do(ctx context.Context, op func(context.Context) error) error {
	if ctx.Err() != nil {
		return resilience.ContextError(ctx)
	}
	limited, cancel := p.limited(ctx)
	defer cancel()
	err := op(limited)
	switch {
	case err == nil:
		return nil
	case context.Cause(limited) != error(p.cause):
		return err // before the limit, or the caller's context ended first
	case ctx.Err() != nil:
		return p.overtaken(ctx, err)
	}
	if e, ok := errors.AsType[*ExceededError](err); ok && e == p.cause {
		return err // says so itself
	}
	return &ExceededError{Limit: p.limit, Err: err}
}

// limited derives the operation's context. Of two deadlines at one instant, the
// caller's is the one that counts.
func (p *Policy) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(p.limit)
	if callers, ok := ctx.Deadline(); ok && !callers.After(deadline) {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, deadline, p.cause)
}

// overtaken returns the error of an operation whose limit ran out, and whose
// caller's context ended before it had returned. The caller's word comes first, and
// the operation's is kept, unless it says no more than that the limit ran out.
func (p *Policy) overtaken(ctx context.Context, err error) error {
	gone := resilience.ContextError(ctx)
	if err == error(p.cause) {
		return gone
	}
	return fmt.Errorf("%w: %w", gone, err)
}

// An ExceededError says that an operation had not finished when its time limit ran
// out. It matches [context.DeadlineExceeded]; the caller's own deadline never gives
// one.
type ExceededError struct {
	// Limit is the limit that ran out.
	Limit time.Duration

	// Err is what the operation returned when it was told to stop. It is nil in the
	// cause of the operation's context, and so where the operation returned that.
	Err error
}

// Error implements error.
func (e *ExceededError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("timeout: limit of %v exceeded", e.Limit)
	}
	return fmt.Sprintf("timeout: limit of %v exceeded: %v", e.Limit, e.Err)
}

// Is reports whether target is [context.DeadlineExceeded]. It is for [errors.Is].
func (e *ExceededError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unwrap returns Err.
func (e *ExceededError) Unwrap() error { return e.Err }

// Timeout returns true. With it and Temporary, e is a net.Error, as
// [context.DeadlineExceeded] is, to whoever asks for one.
func (e *ExceededError) Timeout() bool { return true }

// Temporary returns true.
func (e *ExceededError) Temporary() bool { return true }
