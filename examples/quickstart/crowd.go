package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

const callers = 24

// A tally is what became of the callers' calls.
type tally struct{ answered, failed, limited, brokenOff int64 }

// live is a tally that is being written.
type live struct{ answered, failed, limited, brokenOff atomic.Int64 }

func (l *live) count(err error) {
	switch {
	case err == nil:
		l.answered.Add(1)
	case isA[*breaker.OpenError](err):
		l.brokenOff.Add(1)
	case isA[*ratelimit.ExceededError](err):
		l.limited.Add(1)
	default:
		l.failed.Add(1)
	}
}

func (l *live) read() tally {
	return tally{l.answered.Load(), l.failed.Load(), l.limited.Load(), l.brokenOff.Load()}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// crowd has many goroutines call the host, each as soon as its last call has returned
// and a moment has passed, until ctx is done.
func crowd(ctx context.Context, h *host, guard resilience.Decorator[string]) tally {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	counts := &h.counts
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, err := guard(func(ctx context.Context) (string, error) { return ask(ctx, client, h.url) })(ctx)
				if ctx.Err() != nil {
					return // the day is over: what was cut off counts for nothing
				}
				counts.count(err)
				time.Sleep(h.now().pause)
			}
		})
	}
	wg.Wait()
	return counts.read()
}

// ask is one request. It turns a status that says failure into an error, so that the
// policies can judge it.
func ask(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return "", &statusError{resp.StatusCode, time.Duration(seconds) * time.Second}
	}
	return string(body), nil
}

// A statusError is the user's own error: the toolkit knows it by its method alone.
type statusError struct {
	code int
	wait time.Duration
}

func (e *statusError) Error() string             { return fmt.Sprintf("status %d", e.code) }
func (e *statusError) RetryAfter() time.Duration { return e.wait }

// temporary says which errors are worth another attempt: only the user knows.
func temporary(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code == http.StatusTooManyRequests || status.code >= 500
	}
	return isA[net.Error](err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
