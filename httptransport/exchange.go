package httptransport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
)

// An exchange is one call of RoundTrip: a request, and the attempts at it.
//
// The reply of a failed attempt is kept open, since it may turn out to be the last
// one, and is discarded when the next attempt begins or the call ends without it.
type exchange struct {
	transport *Transport
	request   *http.Request // the caller's

	// A policy runs attempts one after the other, and none after it has returned.
	// One that breaks this rule must not leak a response; hence the lock.
	mu       sync.Mutex
	attempts int
	reply    reply
	final    error // of an attempt at what may not be sent again; nil for none
	over     bool
}

// attempt sends the request once. It is the operation that the policies run.
func (x *exchange) attempt(ctx context.Context) error {
	if err := resilience.ContextError(ctx); err != nil {
		return x.fail(&ConnectionError{Err: err})
	}
	n, err := x.begin()
	if err != nil {
		return err
	}
	body, err := x.body(n)
	if err != nil {
		return err
	}
	previous := x.swap(reply{})
	previous.discard(ctx)
	r, err := x.send(newAttemptContext(x.request.Context(), ctx), body)
	if err != nil {
		return x.fail(&ConnectionError{Err: err, malformed: malformed(x.request)})
	}
	surplus := x.swap(r)
	surplus.discard(ctx)
	if r.failure != nil {
		return x.fail(r.failure)
	}
	return nil
}

// begin counts an attempt.
func (x *exchange) begin() (n int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return 0, &refusal{reason: "the policy that runs this attempt has already returned"}
	}
	x.attempts++
	return x.attempts, nil
}

// body returns the request's body for the n-th attempt.
func (x *exchange) body(n int) (io.ReadCloser, error) {
	switch req := x.request; {
	case n == 1:
		return req.Body, nil
	case !x.repeatable(): // not asked by a retry of package retry: see fail
		return nil, &refusal{reason: "the request may not be sent again", err: x.final}
	case !hasBody(req):
		return req.Body, nil
	default:
		body, err := req.GetBody()
		if err != nil {
			return nil, &refusal{reason: "no body for another attempt", err: err}
		}
		return body, nil
	}
}

// send sends the request with the body. After an error, or a panic, nothing is left
// open.
func (x *exchange) send(ctx *attemptContext, body io.ReadCloser) (r reply, err error) {
	r.context = ctx
	complete := false
	defer func() {
		if !complete {
			r.discard(ctx)
		}
	}()
	req := x.request.Clone(ctx) // its own headers, whatever the base does with them
	req.Body = body
	req.Trailer = x.request.Trailer // the caller's: filled in while the body is read
	if r.response, err = x.transport.base.RoundTrip(req); err != nil {
		return r, ctx.explain(err)
	}
	if r.response == nil {
		return r, fmt.Errorf("httptransport: %T returned neither a response nor an error", x.transport.base)
	}
	limitBody := x.transport.limitBody && r.response.StatusCode != http.StatusSwitchingProtocols
	if err = ctx.headersReceived(limitBody); err != nil {
		return r, err
	}
	if r.response.Request == req {
		r.response.Request = x.request
	}
	r.response.Body = own(r.response.Body, ctx)
	if x.transport.failed(r.response) {
		r.failure = newStatusError(r.response)
	}
	complete = true
	return r, nil
}

// fail returns the error of an attempt to the policies. That of a request which may
// not be sent again says so in the words of a retry that has made its only attempt,
// which is final to every retry around it.
func (x *exchange) fail(err error) error {
	if x.repeatable() {
		return err
	}
	err = &retry.ExhaustedError{Attempts: 1, Reason: retry.AttemptsUsed, Last: err}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.final = err
	}
	return err
}

func (x *exchange) repeatable() bool {
	return bodyRepeatable(x.request) && x.transport.repeatable(x.request)
}

// swap puts a reply in the place of the one that is held, and returns what is to be
// discarded: the other one, or, if the exchange is over, the one given.
func (x *exchange) swap(r reply) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return r
	}
	r, x.reply = x.reply, r
	return r
}

// end ends the exchange and returns the reply that was held. It also closes a
// request's body that was handed to nobody.
func (x *exchange) end() reply {
	x.mu.Lock()
	r, unsent := x.reply, x.attempts == 0 && !x.over
	x.reply, x.over = reply{}, true
	x.mu.Unlock()
	if unsent && x.request.Body != nil {
		_ = x.request.Body.Close()
	}
	return r
}

// result returns what RoundTrip does, given the error of the policies.
func (x *exchange) result(err error) (*http.Response, error) {
	r, ctx := x.end(), x.request.Context()
	gone := resilience.ContextError(ctx)
	if r.answers(err) && (err == nil || gone == nil) {
		return r.response, nil
	}
	r.discard(ctx)
	if err == nil {
		err = errNoResponse
	}
	err = x.bare(err)
	if gone != nil && !(errors.Is(err, ctx.Err()) && errors.Is(err, context.Cause(ctx))) {
		err = fmt.Errorf("%w: %w", gone, err)
	}
	return nil, asTimeout(ctx, err)
}

// bare returns an error without what it was to the policies only.
func (x *exchange) bare(err error) error {
	if e, ok := err.(*retry.ExhaustedError); ok && err == x.final {
		err = e.Last
	}
	if e, ok := err.(*ConnectionError); ok {
		err = e.Err
	}
	return err
}

var errNoResponse = errors.New("httptransport: a policy reported success without a response")
