package breaker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

var errDown = errors.New("host is down")

func succeed(context.Context) error { return nil }
func fail(context.Context) error    { return errDown }

func newBreaker(t *testing.T, cfg breaker.Config) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// trip has calls fail until the circuit refuses one.
func trip(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	for range 1000 {
		if err := b.Do(t.Context(), fail); errors.Is(err, errDown) {
			continue
		}
		requireState(t, breaker.Open, b)
		return
	}
	t.Fatal("the circuit does not open")
}

func requireState(t *testing.T, want breaker.State, b *breaker.Breaker) {
	t.Helper()
	got, err := b.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, want.String(), got.String())
}

// requireFailures says how many failures are counted in a closed circuit, by how
// many more open it.
func requireFailures(t *testing.T, want, threshold int, b *breaker.Breaker) {
	t.Helper()
	for range threshold - want {
		requireState(t, breaker.Closed, b)
		require.ErrorIs(t, b.Do(t.Context(), fail), errDown)
	}
	requireState(t, breaker.Open, b)
}

func requireRefused(t *testing.T, b *breaker.Breaker) *breaker.OpenError {
	t.Helper()
	err := b.Do(t.Context(), func(context.Context) error {
		t.Error("a call was let through")
		return nil
	})
	var open *breaker.OpenError
	require.ErrorAs(t, err, &open)
	require.Positive(t, open.RetryAfter())
	return open
}

// A gated call runs until it is told how to end.
type gated struct {
	end  chan func() error
	done chan error
	ran  atomic.Bool
}

func (g *gated) finish(err error) error {
	g.end <- func() error { return err }
	return <-g.done
}

// begin makes a call in a goroutine of its own.
func begin(ctx context.Context, b *breaker.Breaker) *gated {
	g := &gated{end: make(chan func() error), done: make(chan error, 1)}
	go func() {
		g.done <- b.Do(ctx, func(ctx context.Context) error {
			g.ran.Store(true)
			select {
			case f := <-g.end:
				return f()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	return g
}

// A tap is a cache with all capabilities that a test can watch and get in the way of.
type tap struct {
	inner interface {
		cache.KeyValue
		cache.CompareAndSwapper
		cache.MultiGetter
	}
	mu     sync.Mutex
	counts map[string]int
	before func(ctx context.Context, op, part string) error // an error is returned instead
	after  func(ctx context.Context, op, part string) error // an error replaces the reply
}

func newTap(inner cache.KeyValue) *tap {
	return &tap{
		inner: inner.(interface {
			cache.KeyValue
			cache.CompareAndSwapper
			cache.MultiGetter
		}),
		counts: make(map[string]int),
	}
}

func (c *tap) count(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[op]
}

func (c *tap) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.counts {
		n += k
	}
	return n
}

func (c *tap) set(before, after func(ctx context.Context, op, part string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.after = before, after
}

// failing has each use of the cache fail with err, or none if it is nil.
func (c *tap) failing(err error) {
	if err == nil {
		c.set(nil, nil)
		return
	}
	c.set(func(context.Context, string, string) error { return err }, nil)
}

func (c *tap) do(ctx context.Context, op, key string, f func() error) error {
	c.mu.Lock()
	c.counts[op]++
	before, after := c.before, c.after
	c.mu.Unlock()
	_, part, _ := strings.Cut(key, "\x00")
	part, _, _ = strings.Cut(part, " ")
	if before != nil {
		if err := before(ctx, op, part); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	if after != nil {
		return after(ctx, op, part)
	}
	return nil
}

func (c *tap) Get(ctx context.Context, key string) (v string, ok bool, err error) {
	err = c.do(ctx, "get", key, func() error { v, ok, err = c.inner.Get(ctx, key); return err })
	return v, ok, err
}

func (c *tap) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	return c.do(ctx, "set", key, func() error { return c.inner.Set(ctx, key, value, ttl) })
}

func (c *tap) Increment(ctx context.Context, key string, ttl time.Duration) (n int64, err error) {
	err = c.do(ctx, "increment", key, func() error { n, err = c.inner.Increment(ctx, key, ttl); return err })
	return n, err
}

func (c *tap) Delete(ctx context.Context, key string) error {
	return c.do(ctx, "delete", key, func() error { return c.inner.Delete(ctx, key) })
}

func (c *tap) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (ok bool, err error) {
	err = c.do(ctx, "swap", key, func() error { ok, err = c.inner.CompareAndSwap(ctx, key, old, new, ttl); return err })
	return ok, err
}

func (c *tap) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	return c.do(ctx, "getmany", keys[0], func() error { return c.inner.GetMany(ctx, keys, entries) })
}

// remote hides that a cache is in this process.
type remote struct{ *memory.Cache }

func (remote) TimeLimit() (time.Duration, bool) { return 0, false }

// timed is a cache that says how long it keeps its callers waiting at most.
type timed struct {
	*tap
	longest time.Duration
}

func (c timed) TimeLimit() (time.Duration, bool) { return c.longest, true }

// plain hides what a cache can do better.
type plain struct{ cache.KeyValue }

// key is where a circuit keeps a part.
func key(name, part string) string { return cache.Key("breaker:"+name, part) }

// part returns the second field of a stored state: the era.
func era(t *testing.T, kv cache.KeyValue, name string) string {
	t.Helper()
	value, ok, err := kv.Get(t.Context(), key(name, "state"))
	require.NoError(t, err)
	require.True(t, ok)
	return strings.Fields(value)[2]
}
