package breaker

import (
	"context"
	"errors"
	"strconv"

	"github.com/resilience-toolkit/resilience"
)

// An Outcome is what a call's result says about the host.
type Outcome int

const (
	// Success: the host answered. It clears the failures before it, and closes the
	// circuit if the call was a probe.
	Success Outcome = iota
	// Failure: the host is not well. It counts towards the threshold, and opens the
	// circuit again if the call was a probe.
	Failure
	// Neutral: the result says nothing about the host. It neither counts nor clears
	// what was counted; a probe's place is free again at once.
	Neutral
)

// String returns "success", "failure" or "neutral".
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Neutral:
		return "neutral"
	default:
		return "Outcome(" + strconv.Itoa(int(o)) + ")"
	}
}

// Classify is the default of [Config.Classify], for a classifier of your own to
// fall back on. Nil is a success. A refusal ([resilience.ErrRejected]) is neutral,
// since nobody asked the host, and so is any error of a call whose caller has
// cancelled it, whatever text a driver made of that: a caller who walks away is no
// verdict on the host. Every other error is a failure, also after the caller's
// deadline has passed: a host that hangs must open the circuit.
func Classify(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Success
	case errors.Is(err, resilience.ErrRejected), errors.Is(ctx.Err(), context.Canceled):
		return Neutral
	default:
		return Failure
	}
}
