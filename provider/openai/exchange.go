package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/option"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
)

// What is read of a body at most. An answer is limited by the output budget long
// before, and an error has said what it has to say.
const (
	maxAnswer = 16 << 20
	maxError  = 64 << 10
)

// An exchange is one request and what came back. It stands between the SDK and the
// wire, for there the status, the headers and the body are still what the host sent:
// the SDK reads bodies without a limit, and makes of everything that is not its JSON an
// error that has lost the status.
type exchange struct {
	hide   hider
	schema string // the name of the schema that was asked for

	sent   bool // the request went out
	status int
	body   []byte
	read   bool  // the body was read, and is for the SDK to decode
	err    error // what the exchange came to, if that is already clear
}

func (x *exchange) middleware(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	x.sent = true
	res, err := next(req)
	if err != nil {
		return nil, err
	}
	x.status = res.StatusCode
	good := res.StatusCode >= 200 && res.StatusCode < 300
	limit := maxError
	if good {
		limit = maxAnswer
	}
	body, whole, err := read(res.Body, limit)
	if err != nil && good {
		return nil, err // the connection broke in the middle of the answer
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff")))
	x.body = body
	switch {
	case !good:
		x.err = hostError(req, res, body, x.hide)
	case !whole:
		x.err = x.malformed(fmt.Errorf("the body is longer than %d bytes", limit))
	case len(body) == 0:
		x.err = x.malformed(errors.New("the body is empty"))
	case !json.Valid(body):
		x.err = x.malformed(errors.New("the body is not JSON"))
	case body[0] != '{':
		x.err = x.malformed(errors.New("the body is not a JSON object"))
	default:
		x.err = errorInside(req, res, body, x.hide)
	}
	if x.err != nil {
		return nil, x.err
	}
	x.read = true
	// What the SDK gets to see is JSON, whatever the host calls it.
	res.Header.Set("Content-Type", "application/json")
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// read reads a body up to a limit, reports whether that was all, and closes it. At the
// end of a body the connection is free for another request; one that is longer costs
// its connection and not the time to read it.
func read(body io.ReadCloser, limit int) (text []byte, whole bool, err error) {
	defer body.Close()
	text, err = io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if len(text) > limit {
		return text[:limit], false, err
	}
	return text, err == nil, err
}

func (x *exchange) malformed(why error) error {
	text := x.hide(string(x.body)) // before it is cut, which could leave a part of the key
	text = x.hide.message(text[:min(len(text), maxError)])
	return &provider.MalformedCompletionError{
		Completion: provider.Completion{Text: text},
		Schema:     x.schema,
		Status:     x.status,
		Snippet:    provider.Snippet(text),
		Err:        why,
	}
}

// failure is for an error of the SDK that the middleware has not seen.
func (l *LLM) failure(ctx context.Context, x *exchange, err error) error {
	switch {
	case !x.sent:
		return fmt.Errorf("openai: %w", err) // the request could not be put together
	case x.read:
		return x.malformed(err)
	case errors.Is(err, resilience.ErrRejected):
		return l.hide.error(err) // by a policy in Config.HTTPClient: the host was not asked
	}
	e := &provider.HostError{Kind: provider.Disconnected, Transient: true, Err: l.hide.error(err)}
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		e.Kind = provider.TimedOut
		e.Message = fmt.Sprintf("no answer within %v", l.timeout)
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Kind = provider.TimedOut
	default:
		_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
		e.Transient = !distrusted
	}
	if e.Message == "" {
		e.Message = provider.Snippet(e.Err.Error())
	}
	return e
}
