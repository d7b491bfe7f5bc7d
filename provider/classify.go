package provider

import (
	"context"
	"errors"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
)

// Classify tells a circuit breaker what a call says about the host; it is the
// classifier for one around an [LLM]:
//
//   - Success: no error, and every completion error. The host answered; what it said
//     is between the caller and the model.
//   - Failure: a [HostError] of the host's own doing (a status of 500 or above, a
//     timeout, a broken connection), the caller's deadline passing, because a host that
//     hangs must trip the circuit, and any error of no type that is known here.
//   - Neutral: what says nothing of the host's health. That is a refusal made on this
//     side; a caller who cancelled, whatever text a driver made of it; the request's
//     own faults, which may well be answered by a gateway whose hosts are down, so that
//     they must neither open a circuit nor pass for a recovery; a content filter's
//     verdict, which comes in the shape of such a fault as often as not; an exhausted
//     quota; and a rate limit.
//
// A rate limit (429) is neutral because the host is well and a limiter is the remedy;
// [ClassifyRateLimit] is for whoever sees that otherwise.
func Classify(ctx context.Context, err error) breaker.Outcome {
	return classify(ctx, err, breaker.Neutral)
}

// ClassifyRateLimit returns a [Classify] to which a rate limit is the given outcome:
// [breaker.Failure] to leave a host alone that says so often enough,
// [breaker.Success] to take its word for a sign of life.
func ClassifyRateLimit(as breaker.Outcome) func(context.Context, error) breaker.Outcome {
	return func(ctx context.Context, err error) breaker.Outcome { return classify(ctx, err, as) }
}

func classify(ctx context.Context, err error, rateLimited breaker.Outcome) breaker.Outcome {
	host, isHost := errors.AsType[*HostError](err)
	switch {
	case errors.Is(err, resilience.ErrRejected):
		return breaker.Neutral // also if an adapter took its client's refusal for the host's failure
	case isHost && (host.Status != 0 || ctx.Err() != context.Canceled):
		return host.outcome(rateLimited) // if it answered, then whoever may have left meanwhile
	case errors.Is(err, ErrCompletion):
		if refused, ok := errors.AsType[*RefusedCompletionError](err); ok && refused.Filtered() {
			return breaker.Neutral
		}
		return breaker.Success
	}
	return breaker.Classify(ctx, err)
}

func (e *HostError) outcome(rateLimited breaker.Outcome) breaker.Outcome {
	switch e.Kind {
	case RateLimited:
		return rateLimited
	case Unauthenticated, Forbidden, NotFound, TooLong, InvalidRequest, QuotaExhausted, Conflict:
		return breaker.Neutral
	case Overloaded, Unavailable, TimedOut, Disconnected:
		return breaker.Failure
	}
	if e.Status >= 300 && e.Status < 500 {
		return breaker.Neutral
	}
	return breaker.Failure
}
