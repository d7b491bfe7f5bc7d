package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache"
)

var (
	//go:embed lua/increment.lua
	incrementLua string
	//go:embed lua/swap.lua
	swapLua string
	//go:embed lua/getmany.lua
	getManyLua string

	incrementScript = newScript(incrementLua)
	swapScript      = newScript(swapLua)
	getManyScript   = newScript(getManyLua)
)

// memory is how long the server remembers an operation that must not be done twice. The
// client sends nothing again once the operation's time limit is over; the rest is for what
// was on its way.
func (c *Cache) memory() time.Duration {
	const onItsWay = 10 * time.Second
	if c.timeout > math.MaxInt64-onItsWay {
		return math.MaxInt64
	}
	return c.timeout + onItsWay
}

// Get implements [cache.KeyValue].
func (c *Cache) Get(ctx context.Context, key string) (value string, ok bool, err error) {
	cmd := redis.NewStringCmd(ctx, "get", c.key(key, kindValue))
	if err := c.do(ctx, "get", key, cmd, nil); err != nil {
		return "", false, err
	}
	return cmd.Val(), cmd.Err() == nil, nil
}

// Set implements [cache.KeyValue]. The TTL has a resolution of one millisecond.
func (c *Cache) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if err := checkTTL("set", ttl); err != nil {
		return err
	}
	args := []any{"set", c.key(key, kindValue), value}
	if ttl > 0 {
		args = append(args, "px", millis(ttl))
	}
	return c.do(ctx, "set", key, redis.NewStatusCmd(ctx, args...), nil)
}

// Increment implements [cache.KeyValue]. It is counted once, however often the client
// sends it.
func (c *Cache) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	if err := checkTTL("increment", ttl); err != nil {
		return 0, err
	}
	cmd := redis.NewStringCmd(ctx, incrementScript.args(2,
		c.key(key, kindValue), c.operation(key, idText(newID())), millis(ttl), millis(c.memory()), c.sending())...)
	if err := c.do(ctx, "increment", key, cmd, incrementScript); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(cmd.Val(), 10, 64)
	if err != nil {
		return 0, &cache.CorruptError{Op: "increment", Key: key, Err: cache.ErrNotInteger}
	}
	return n, nil
}

// Delete implements [cache.KeyValue].
func (c *Cache) Delete(ctx context.Context, key string) error {
	cmd := redis.NewIntCmd(ctx, "unlink", c.key(key, kindValue), c.key(key, kindHits))
	return c.do(ctx, "delete", key, cmd, nil)
}

// CompareAndSwap implements [cache.CompareAndSwapper]. Its answer is that of the first
// time, however often the client sends it.
func (c *Cache) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	const op = "compare and swap"
	if !new.Present {
		ttl = 0
	}
	if err := checkTTL(op, ttl); err != nil {
		return false, err
	}
	cmd := redis.NewIntCmd(ctx, swapScript.args(2,
		c.key(key, kindValue), c.operation(key, idText(newID())),
		old.Present, old.Value, new.Present, new.Value, millis(ttl), millis(c.memory()), c.sending())...)
	if err := c.do(ctx, op, key, cmd, swapScript); err != nil {
		return false, err
	}
	return cmd.Val() == 1, nil
}

// GetMany implements [cache.MultiGetter]. Keys of different groups are an
// [cache.ArgumentError], whether or not the server is a cluster.
func (c *Cache) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	const op = "get many"
	entries = entries[:len(keys)]
	args := make([]any, len(keys))
	for i, key := range keys {
		if group := cache.Group(keys[0]); cache.Group(key) != group {
			return &cache.ArgumentError{Op: op, Field: "keys", Value: fmt.Sprintf("%q", keys), Want: "keys of one group"}
		}
		args[i] = c.key(key, kindValue)
	}
	if len(keys) == 0 {
		return nil
	}
	cmd := redis.NewSliceCmd(ctx, getManyScript.args(len(keys), args...)...)
	if err := c.do(ctx, op, keys[0], cmd, getManyScript); err != nil {
		return err
	}
	values := cmd.Val()
	if len(values) != len(keys) {
		return &cache.UnavailableError{Op: op, Err: fmt.Errorf("%d values for %d keys", len(values), len(keys))}
	}
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			entries[i] = cache.Absent()
		case string:
			entries[i] = cache.Present(v)
		case error:
			return c.failure(ctx, op, keys[i], v)
		default:
			return &cache.CorruptError{Op: op, Key: keys[i], Err: errors.New("not a string")}
		}
	}
	return nil
}

func checkTTL(op string, ttl time.Duration) error {
	if ttl < 0 {
		return &cache.ArgumentError{Op: op, Field: "ttl", Value: ttl, Want: "zero or more"}
	}
	return nil
}

// millis returns a duration in milliseconds, rounded up.
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
