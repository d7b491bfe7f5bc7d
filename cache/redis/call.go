package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"

	"github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache"
)

// A script runs on the server, by its hash where it is known there.
type script struct {
	hash any // a string, as an argument already
	text string
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{hash: hex.EncodeToString(sum[:]), text: text}
}

// args returns the arguments of the command that runs the script. The first keys of the
// list are keys, and all of one slot.
func (s *script) args(keys int, list ...any) []any {
	return append(s.begin(keys, len(list)), list...)
}

// begin returns those that come before the list, with room for one of that length.
func (s *script) begin(keys, list int) []any {
	return append(make([]any, 0, 3+list), "evalsha", s.hash, keys)
}

// do sends one command and returns when it is answered, or when ctx or the time limit
// ends. The command is not to be looked at after an error.
//
// It runs in a goroutine of its own, over any client: even one that minds the deadline of a
// context does not mind its cancellation while it reads. Only where there is nothing but
// the deadline to mind, and a client that minds it, the goroutine is saved, and with it a
// tenth of what a round trip takes on one machine.
func (c *Cache) do(ctx context.Context, op, key string, cmd redis.Cmder, s *script) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if !c.underWay.TryAcquire(1) {
		if c.underWay.Acquire(bounded, 1) != nil {
			return c.expired(ctx, op)
		}
	}
	if c.direct(ctx) {
		defer c.underWay.Release(1)
		return c.outcome(ctx, bounded, op, key, c.send(bounded, cmd, s))
	}
	done := make(chan error, 1)
	go func() {
		defer c.underWay.Release(1)
		done <- c.send(bounded, cmd, s)
	}()
	select {
	case err := <-done:
		return c.outcome(ctx, bounded, op, key, err)
	case <-bounded.Done():
		return c.expired(ctx, op)
	}
}

// direct reports whether the client returns in time by itself.
func (c *Cache) direct(ctx context.Context) bool { return c.minds && ctx.Done() == nil }

// usable returns what stands against beginning an operation.
func (c *Cache) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.closed.Load() {
		return cache.ErrClosed
	}
	return nil
}

// send is one round trip, or two if the server does not know the script.
func (c *Cache) send(ctx context.Context, cmd redis.Cmder, s *script) error {
	if s != nil {
		cmd.SetFirstKeyPos(3)
	}
	err := c.process(ctx, cmd)
	if err != nil && s != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		args := cmd.Args()
		args[0], args[1] = "eval", s.text
		cmd.SetErr(nil)
		err = c.process(ctx, cmd)
	}
	return err
}

// process also waits for the command of a client that only queues it.
func (c *Cache) process(ctx context.Context, cmd redis.Cmder) error {
	if err := c.client.Process(ctx, cmd); err != nil {
		return err
	}
	return cmd.Err()
}
