package httptransport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
)

// Retryable is a predicate for a retry: it reports whether a later attempt may fare
// better. That is so for the statuses 408, 429, 500, 502, 503, 504 and 529, which
// some hosts use for being overloaded, and for a [*ConnectionError].
//
// It is not so for any other status, and neither for 409 Conflict, since what it
// conflicts with has to be looked at first, nor for 425 Too Early, which only a
// request sent as early data can get, and Go sends none. Nor is it for a connection
// that failed because it was refused on this side or cancelled, or because a name does
// not exist or a certificate or protocol is not what was expected.
func Retryable(err error) bool {
	switch StatusOf(err) {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return true
	case 0:
		_, connection := errors.AsType[*ConnectionError](err)
		return connection && !permanent(err)
	default:
		return false
	}
}

// permanent reports whether a connection failed for a reason that stays. What
// net/http has no type for, HTTP/2's errors above all, is not among these.
func permanent(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return true
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, address := errors.AsType[*net.AddrError](err)
	return certificate || record || address ||
		errors.Is(err, http.ErrSchemeMismatch) ||
		errors.Is(err, resilience.ErrRejected) || // by a Transport inside
		errors.Is(err, context.Canceled)
}

// Classify is a classifier for a breaker ([breaker.Config.Classify]). Statuses from
// 500 on and failed connections are failures of the host. 408 and 429 are neutral:
// the host is up, and not well enough to be called recovered. Any other response
// is a success. A refusal, and a call that its caller has cancelled, are neutral, as
// [breaker.Classify] has it. Without this classifier, a breaker counts whatever
// [Config.Failed] reports, 408 and 429 too.
//
// To count 429 against the host, ask for it first:
//
//	if httptransport.StatusOf(err) == http.StatusTooManyRequests {
//		return breaker.Failure
//	}
//	return httptransport.Classify(ctx, err)
func Classify(ctx context.Context, err error) breaker.Outcome {
	outcome := breaker.Classify(ctx, err)
	if outcome != breaker.Failure {
		return outcome
	}
	switch code := StatusOf(err); {
	case code == 0, code >= 500:
		return breaker.Failure
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return breaker.Neutral
	default:
		return breaker.Success
	}
}
