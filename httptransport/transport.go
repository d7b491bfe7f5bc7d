package httptransport

import (
	"context"
	"net/http"

	"github.com/resilience-toolkit/resilience"
)

// A Config says what a [Transport] takes for a failure, what it may send again,
// and what a time limit covers. Its zero value is usable.
type Config struct {
	// Failed reports whether a response is a failure: an error, a [*StatusError],
	// to the policies. What it does not report is a success to all of them. It must
	// be safe for concurrent use and must not read the body. Nil means [Failed].
	Failed func(*http.Response) bool

	// Repeatable reports whether a request may be sent more than once as far as its
	// meaning goes; that its body can be had again is always asked as well. It must
	// be safe for concurrent use and must not change the request. Nil means
	// [Repeatable].
	Repeatable func(*http.Request) bool

	// LimitBody has the time limit of the attempt whose response is returned go on
	// until the body has been read or closed. False means that it ends with the
	// response's headers, as it must for a stream or a long download. The request's
	// own context and the client's Timeout bound the body either way. A connection that
	// has been upgraded is the caller's, and has no limit.
	LimitBody bool
}

// A Transport sends requests through policies, as a [http.RoundTripper]. Make one
// with [New].
type Transport struct {
	base       http.RoundTripper
	policy     resilience.Policy
	failed     func(*http.Response) bool
	repeatable func(*http.Request) bool
	limitBody  bool
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport that sends each request through the policies, the first
// one outermost, to the base. A nil base means [http.DefaultTransport]; without
// policies, requests go to the base as they are. New panics if a policy is nil.
func New(base http.RoundTripper, cfg Config, policies ...resilience.Policy) *Transport {
	t := &Transport{
		base:       base,
		policy:     resilience.Join(policies...),
		failed:     cfg.Failed,
		repeatable: cfg.Repeatable,
		limitBody:  cfg.LimitBody,
	}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.failed == nil {
		t.failed = Failed
	}
	if t.repeatable == nil {
		t.repeatable = Repeatable
	}
	return t
}

// RoundTrip implements [http.RoundTripper]. The policies get the request's context,
// in which [RequestFrom] finds the request.
//
// It returns a response if there is one to return: the one of the attempt that
// succeeded, or the last one, unread and open, if the policies gave up because of
// its status. Otherwise it returns the error of the policies or of the base. The
// request is not changed; its body is closed on every path, by the base if it was
// handed to it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{transport: t, request: req}
	defer func() { x.end().discard(req.Context()) }() // after a panic or a Goexit; a result leaves nothing
	err := t.policy.Do(context.WithValue(req.Context(), requestKey{}, req), x.attempt)
	return x.result(err)
}

// CloseIdleConnections closes the idle connections of the base, if it has the
// method. It is for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type requestKey struct{}

// RequestFrom returns the request that a [Transport] is sending, to a policy in its
// chain, and nil for a context that is not of a Transport. The request is the
// caller's: its body must not be read, and nothing in it changed.
func RequestFrom(ctx context.Context) *http.Request {
	req, _ := ctx.Value(requestKey{}).(*http.Request)
	return req
}
