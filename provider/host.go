package provider

import (
	"fmt"
	"time"
)

// A Kind is what went wrong below a completion. It is an error only so that
// [errors.Is] matches a [HostError] by it:
//
//	if errors.Is(err, provider.TooLong) { ... }
//
// The zero Kind is one that is not known.
type Kind string

// The kinds there are.
const (
	// Unauthenticated: the credentials are missing, wrong or withdrawn.
	Unauthenticated Kind = "the host does not accept the credentials"
	// Forbidden: the credentials do not allow this.
	Forbidden Kind = "the host does not allow this"
	// NotFound: the host knows no such model or address.
	NotFound Kind = "the host knows no such model or address"
	// TooLong: the request is more than the model's context or the host takes, and
	// will be every time.
	TooLong Kind = "the request is too long"
	// InvalidRequest: the host does not accept the request for some other reason.
	InvalidRequest Kind = "the host does not accept the request"
	// QuotaExhausted: the account has nothing left, which no waiting mends.
	QuotaExhausted Kind = "the account's quota is exhausted"
	// RateLimited: too many requests for now.
	RateLimited Kind = "too many requests for now"
	// Conflict: something else holds what the request needs, for now.
	Conflict Kind = "the request met a conflict"
	// Overloaded: the host has more to do than it can.
	Overloaded Kind = "the host is overloaded"
	// Unavailable: the host, or what stands before it, failed.
	Unavailable Kind = "the host failed"
	// TimedOut: there was no answer in time.
	TimedOut Kind = "the host did not answer in time"
	// Disconnected: the host could not be reached, or the connection broke.
	Disconnected Kind = "the connection failed"
)

// Error implements error.
func (k Kind) Error() string {
	if k == "" {
		return "provider: the call failed"
	}
	return "provider: " + string(k)
}

// A HostError is a call that went wrong below a completion, in no vendor's words. An
// adapter, which knows its vendor, fills it in; [StatusError] does what can be done
// from an HTTP status alone.
type HostError struct {
	// Kind is what went wrong.
	Kind Kind
	// Status is the HTTP status of the answer, and zero if there was none.
	Status int
	// Transient tells whether the same request may fare better at a later try.
	Transient bool
	// Hint is how long the host asks to be left alone; zero if it does not say, and
	// always if the error is not transient.
	Hint time.Duration
	// Code is the host's own code for it, if it has one.
	Code string
	// Message is what the host says, as a [Snippet] without credentials. It may be
	// empty.
	Message string
	// Err is the vendor's error or the transport's. It may be nil.
	Err error
}

// Error implements error. The text holds the kind, the status, and what the host says,
// but not the text of Err, for which no adapter can answer.
func (e *HostError) Error() string {
	s := e.Kind.Error()
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// RetryAfter returns Hint; see [resilience.RetryAfter].
func (e *HostError) RetryAfter() time.Duration { return e.Hint }

// Is matches a [Kind].
func (e *HostError) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Unwrap returns Err.
func (e *HostError) Unwrap() error { return e.Err }

// StatusError returns what an HTTP status says by itself (RFC 9110, section 15), as a
// start for an adapter that knows more. Transient are 408, 409, 425 and 429 and every
// status of 500 and above except 501 and 505. 409 is among them because these hosts
// answer it when a lock was not to be had, and 425 because it asks for a second try
// (RFC 8470, section 5.2).
func StatusError(status int) *HostError {
	e := &HostError{Status: status}
	switch status {
	case 401:
		e.Kind = Unauthenticated
	case 402:
		e.Kind = QuotaExhausted
	case 403:
		e.Kind = Forbidden
	case 404, 410:
		e.Kind = NotFound
	case 408, 504:
		e.Kind, e.Transient = TimedOut, true
	case 409, 425:
		e.Kind, e.Transient = Conflict, true
	case 413:
		e.Kind = TooLong
	case 429:
		e.Kind, e.Transient = RateLimited, true
	case 501, 505:
		e.Kind = Unavailable
	case 503, 529:
		e.Kind, e.Transient = Overloaded, true
	default:
		switch {
		case status >= 500:
			e.Kind, e.Transient = Unavailable, true
		case status >= 400:
			e.Kind = InvalidRequest
		}
	}
	return e
}
