package provider

import (
	"context"
	"errors"

	"github.com/resilience-toolkit/resilience"
)

// Retryable reports whether the same request may fare better at a later try; it is
// the predicate for a retry around an [LLM]. That is so for a [HostError] that is
// transient, and for a deadline that passed, which to the retry is that of one
// attempt: its caller's own it looks after itself. It is not so for a completion
// error, a refusal made on this side, a caller who left, or an error of no type that
// is known here.
func Retryable(err error) bool {
	if err == nil || errors.Is(err, ErrCompletion) || errors.Is(err, resilience.ErrRejected) {
		return false
	}
	if host, ok := errors.AsType[*HostError](err); ok {
		return host.Transient
	}
	return errors.Is(err, context.DeadlineExceeded)
}
