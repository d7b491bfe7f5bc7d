package redis

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache"
)

var (
	//go:embed lua/record.lua
	recordLua string
	//go:embed lua/count.lua
	countLua string
	//go:embed lua/oldest.lua
	oldestLua string

	recordScript = newScript(recordLua)
	countScript  = newScript(countLua)
	oldestScript = newScript(oldestLua)
)

// RecordHit implements [cache.HitWindow]. Instants are exact from the year 1685 to 2255;
// beyond that they are rounded, to a few microseconds, and keep their order.
func (c *Cache) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	const op = "record hit"
	if ttl <= 0 {
		return &cache.ArgumentError{Op: op, Field: "ttl", Value: ttl, Want: "above zero"}
	}
	cmd := redis.NewIntCmd(ctx, recordScript.args(1,
		c.key(key, kindHits), at.UnixMicro(), idText(newID()), millis(ttl))...)
	return c.do(ctx, op, key, cmd, recordScript)
}

// CountHits implements [cache.HitWindow]. It discards the hits before since.
func (c *Cache) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	cmd := redis.NewIntCmd(ctx, countScript.args(1, c.key(key, kindHits), since.UnixMicro())...)
	if err := c.do(ctx, "count hits", key, cmd, countScript); err != nil {
		return 0, err
	}
	return int(cmd.Val()), nil
}

// OldestHit implements [cache.HitWindow].
func (c *Cache) OldestHit(ctx context.Context, key string, since time.Time) (at time.Time, ok bool, err error) {
	const op = "oldest hit"
	cmd := redis.NewStringCmd(ctx, oldestScript.args(1, c.key(key, kindHits), since.UnixMicro())...)
	if err := c.do(ctx, op, key, cmd, oldestScript); err != nil {
		return time.Time{}, false, err
	}
	if cmd.Err() != nil {
		return time.Time{}, false, nil
	}
	us, err := strconv.ParseFloat(cmd.Val(), 64)
	if err != nil {
		return time.Time{}, false, &cache.CorruptError{Op: op, Key: key, Err: err}
	}
	return time.UnixMicro(int64(us)), true, nil
}
