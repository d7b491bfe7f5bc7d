package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
)

// An OpenError is the refusal of a call by a circuit that is open, or half-open
// with all its places for probes taken. It matches [resilience.ErrRejected]. Callers who
// are refused within the same millisecond may be given the same one, so its fields are
// for reading.
type OpenError struct {
	Name  string        // the circuit's name
	State State         // Open or HalfOpen
	Wait  time.Duration // how long until it makes sense to ask again; see RetryAfter
}

var _ error = (*OpenError)(nil)

// Error implements error.
func (e *OpenError) Error() string {
	return fmt.Sprintf("breaker: circuit %q is %v, retry after %v", e.Name, e.State, e.Wait)
}

// RetryAfter returns Wait, for [resilience.RetryAfter]. It is always above zero.
//
// Of an open circuit it is the time until it may be probed. It is never too short. In the
// process that opened the circuit it is at most a millisecond too long; in the others it
// may be too long by up to the whole time for which the circuit was opened, since no
// instant is ever compared with another host's clock, and a process that finds a circuit
// open cannot know since when. Of a half-open circuit nobody knows when it will be decided;
// the result is the recovery timeout or the probe's lease, whichever is shorter.
func (e *OpenError) RetryAfter() time.Duration { return e.Wait }

// Is reports whether target is [resilience.ErrRejected].
func (e *OpenError) Is(target error) bool { return target == resilience.ErrRejected }

// A closedError refuses whatever is asked of a breaker that was closed. It matches
// [cache.ErrClosed] and, since no call was made, [resilience.ErrRejected].
type closedError struct{ name string }

func (e *closedError) Error() string {
	return fmt.Sprintf("breaker: circuit %q: %v", e.name, cache.ErrClosed)
}
func (e *closedError) Unwrap() []error { return []error{cache.ErrClosed, resilience.ErrRejected} }

// ErrLeaseLost is returned by [Permit.Renew] for a probe's permit whose place is no
// longer its own. Somebody else may be probing, and what is reported changes nothing.
var ErrLeaseLost = errors.New("breaker: the probe's lease has been lost")
