package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache"
)

// A timeoutError says that an operation was given up.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// Timeout tells what kind of error it is, as those of the network do.
func (e *timeoutError) Timeout() bool { return true }

var (
	errNotOurs   = errors.New("the series holds what is no hit")
	errMalformed = errors.New("the reply is malformed")
)

// expired is the error of an operation that was not answered in time.
func (c *Cache) expired(ctx context.Context, op string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &cache.UnavailableError{Op: op, Err: c.late}
}

// outcome is the error of an operation that the client has returned from. That there is
// nothing is an answer.
func (c *Cache) outcome(ctx, bounded context.Context, op, key string, err error) error {
	switch {
	case err == nil || err == redis.Nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && bounded.Err() != nil:
		return c.expired(ctx, op)
	}
	return c.failure(ctx, op, key, err)
}

// failure is the error of an operation for which the client returned err.
func (c *Cache) failure(ctx context.Context, op, key string, err error) error {
	if c.closed.Load() && errors.Is(err, redis.ErrClosed) {
		return cache.ErrClosed
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		// Not by prefix: up to version 6 a script wraps the error of a command in its own.
		switch text := reply.Error(); {
		case strings.Contains(text, "WRONGTYPE"):
			return &cache.CorruptError{Op: op, Key: key, Err: err}
		case strings.Contains(text, "not an integer"):
			return &cache.CorruptError{Op: op, Key: key, Err: cache.ErrNotInteger}
		case strings.Contains(text, "would overflow"):
			return &cache.CorruptError{Op: op, Key: key, Err: cache.ErrOverflow}
		}
		return &cache.UnavailableError{Op: op, Err: err}
	}
	if ctxDone(ctx, err) {
		return context.Cause(ctx)
	}
	return &cache.UnavailableError{Op: op, Err: err}
}

// ctxDone reports whether it is the caller's context that ended an operation. A client
// that minds deadlines hands them to the connection, whose timer may fire just before
// that of the context: then the context is as good as done. It is the only place where
// this package looks at the clock of the host, and nothing is decided by it but what an
// error is called.
func ctxDone(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	if !ok || !isTimeout(err) || time.Until(deadline) > 0 {
		return false
	}
	<-ctx.Done()
	return true
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) && e.Timeout()
}
