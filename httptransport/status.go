package httptransport

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A StatusError is a response that is a failure, as the policies see it. Outside
// the transport it is a response again.
type StatusError struct {
	StatusCode int         // 503, say
	Status     string      // the status line's text, "503 Service Unavailable"
	Header     http.Header // the response's own: read it only

	// Wait is how long the response asks to be left alone, counted from its arrival; 0
	// if it does not ask. The package comment says where that is looked for.
	Wait time.Duration
}

func newStatusError(r *http.Response) *StatusError {
	return &StatusError{
		StatusCode: r.StatusCode,
		Status:     r.Status,
		Header:     r.Header,
		Wait:       hint(r.StatusCode, r.Header, time.Now()),
	}
}

// Error implements error. It names the status and nothing that may be a secret.
func (e *StatusError) Error() string {
	if text := http.StatusText(e.StatusCode); text != "" {
		return fmt.Sprintf("httptransport: the response's status is %d %s", e.StatusCode, text)
	}
	return fmt.Sprintf("httptransport: the response's status is %d", e.StatusCode)
}

// RetryAfter returns Wait, for [resilience.RetryAfter].
func (e *StatusError) RetryAfter() time.Duration { return e.Wait }

// StatusOf returns the status code of the first [*StatusError] in err's tree, and 0
// if there is none: to make a predicate or a classifier of one's own of.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.StatusCode
	}
	return 0
}

// Failed is the default of [Config.Failed]: 408 Request Timeout, 429 Too Many
// Requests, and every status from 500 on. All others are the request's own affair
// and say nothing about the host.
func Failed(r *http.Response) bool {
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return r.StatusCode >= 500
	}
}
