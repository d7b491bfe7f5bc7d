package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
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

// RetryAfter returns Wait, for [resilience.RetryAfter]. It is always above zero. Of an
// open circuit it is the rest of the time until it may be probed, and never too short:
// at most a millisecond too long in the process that opened it, and in the others by at
// most as much as the circuit was opened for, since a process that finds a circuit open
// cannot know since when, because no instant is ever compared with another host's clock.
// When a half-open one is decided nobody knows, and it is the recovery timeout or the
// probe's lease, whichever is shorter.
func (e *OpenError) RetryAfter() time.Duration { return e.Wait }

// Is reports whether target is [resilience.ErrRejected].
func (e *OpenError) Is(target error) bool { return target == resilience.ErrRejected }

// ErrLeaseLost is returned by [Permit.Renew] for a probe's permit whose place is no
// longer its own. Somebody else may be probing, and what is reported changes nothing.
var ErrLeaseLost = errors.New("breaker: the probe's lease has been lost")
