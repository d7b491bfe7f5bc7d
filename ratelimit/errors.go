package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
)

// An ExceededError refuses a call for want of room. It matches
// [resilience.ErrRejected]. Nothing was taken from the allowance.
type ExceededError struct {
	Name   string // of the limiter
	Key    string
	Cost   int // how much the call counts
	Limit  int
	Window time.Duration
	// Wait is how long it takes until there is room for Cost, if nobody else comes. Zero
	// means never: Cost is above Limit.
	Wait time.Duration
}

// Error implements error.
func (e *ExceededError) Error() string {
	who := fmt.Sprintf("ratelimit: key %q", e.Key)
	if e.Name != "" {
		who = fmt.Sprintf("ratelimit: %s: key %q", e.Name, e.Key)
	}
	if e.Wait == 0 {
		return fmt.Sprintf("%s: a cost of %d can never fit a limit of %d per %v", who, e.Cost, e.Limit, e.Window)
	}
	return fmt.Sprintf("%s: limit of %d per %v reached, room for %d in %v", who, e.Limit, e.Window, e.Cost, e.Wait)
}

// RetryAfter returns Wait, for [resilience.RetryAfter]. Whoever sleeps exactly that
// long and asks again is admitted if nobody else came.
func (e *ExceededError) RetryAfter() time.Duration { return e.Wait }

// Is reports whether target is [resilience.ErrRejected].
func (e *ExceededError) Is(target error) bool { return target == resilience.ErrRejected }

// rejection makes of an error the refusal of a call.
type rejection struct{ err error }

func (r *rejection) Error() string   { return "ratelimit: refused: " + r.err.Error() }
func (r *rejection) Unwrap() []error { return []error{r.err, resilience.ErrRejected} }

// failure returns what to tell the caller of a cache that has failed: that the
// cache is closed, or that the caller has cancelled, or that there was no answer,
// which includes none by the deadline of the caller.
func failure(ctx context.Context, op string, err error) error {
	if errors.Is(err, cache.ErrClosed) {
		return err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return resilience.ContextError(ctx)
	}
	var unavailable *cache.UnavailableError
	var corrupt *cache.CorruptError
	if errors.As(err, &unavailable) || errors.As(err, &corrupt) {
		return err
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = resilience.ContextError(ctx)
	}
	return &cache.UnavailableError{Op: op, Err: err}
}
