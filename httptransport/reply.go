package httptransport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// What is left of a response's body that nobody will read is read up to here, so
// that its connection can be used again. To open a new one is cheaper than to read
// or to wait for more than that.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// A reply is what came back from an attempt. Its response, if any, is open.
type reply struct {
	response *http.Response
	failure  *StatusError // nil if the response is no failure
	context  *attemptContext
}

// answers reports whether the response is what an exchange ends with whose policies
// returned err: they succeeded, or gave up because of its status.
func (r reply) answers(err error) bool {
	return r.response != nil && (err == nil || r.failure != nil && errors.Is(err, r.failure))
}

// discard drains and closes the response, and releases the attempt's context. It
// drains no longer than ctx lasts.
func (r reply) discard(ctx context.Context) {
	if r.context == nil {
		return
	}
	defer r.context.release()
	if r.response == nil || r.response.Body == nil {
		return
	}
	if r.response.ContentLength <= drainBytes && !isUpgrade(r.response) {
		limit := time.AfterFunc(drainTime, r.context.release)
		unlink := context.AfterFunc(ctx, r.context.release)
		_, _ = io.CopyN(io.Discard, r.response.Body, drainBytes+1)
		unlink()
		limit.Stop()
	}
	_ = r.response.Body.Close()
}

// isUpgrade reports whether the response has handed over its connection: after 101
// Switching Protocols the body is the connection, both ways.
func isUpgrade(r *http.Response) bool {
	_, ok := r.Body.(io.Writer)
	return ok
}
