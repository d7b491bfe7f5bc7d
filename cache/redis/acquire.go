package redis

import (
	"context"
	_ "embed"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache"
)

var (
	//go:embed lua/acquire.lua
	acquireLua string
	//go:embed lua/giveback.lua
	giveBackLua string
	//go:embed lua/used.lua
	usedLua string

	acquireScript  = newScript(acquireLua)
	giveBackScript = newScript(giveBackLua)
	usedScript     = newScript(usedLua)
)

// maxExact is the largest number up to which the server's scripts, which have doubles,
// know every whole one.
const maxExact = 1 << 53

// What a script answers in the place of OK.
const (
	refused = 0
	granted = 1
	notOurs = -1
)

// Acquire implements [cache.Acquirer], by one script that reads the clock of the server.
// The driver may send it any number of times; it takes one slot.
//
// It costs the server O(log n), with n hits less than one window old or ahead: a few
// steps of that size as long as all weigh 1 or there is room beside all of them, and some
// log n of them otherwise. A limit above 2^53 counts as 2^53, and a greater weight is refused; sums are
// exact as long as the weights between two pauses of a window come to less than that.
//
// A series expires when its last hit has left the window, or up to an eighth of a window
// later; hits that have left are discarded as soon. One series serves one width of window.
func (c *Cache) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	const op = "acquire"
	if err := r.Validate(); err != nil {
		return cache.Grant{}, err
	}
	if r.Weight > maxExact {
		return cache.Grant{}, &cache.ArgumentError{Op: op, Field: "Weight", Value: r.Weight, Want: "at most 2^53"}
	}
	id := newID()
	p := &passenger{
		series: series{c.key(key, kindHits), min(r.Limit, maxExact), micros(r.Window)},
		weight: r.Weight, wait: r.MaxWait.Microseconds(), id: idText(id),
		done: make(chan struct{}),
	}
	if err := c.doAcquire(ctx, op, key, p); err != nil {
		return cache.Grant{}, err
	}
	if p.answer.status == notOurs {
		return cache.Grant{}, &cache.CorruptError{Op: op, Key: key, Err: errNotOurs}
	}
	g := cache.Grant{OK: p.answer.status == granted, Wait: duration(p.answer.wait)}
	if g.OK {
		g.Slot = cache.Slot{At: p.answer.at, ID: id}
	}
	return g, nil
}

// GiveBack implements [cache.Acquirer]. It costs the server O(log n), and for a hit that
// weighs more than 1 as much again for each hit behind it.
func (c *Cache) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	cmd := redis.NewIntCmd(ctx, giveBackScript.args(1, c.key(key, kindHits), idText(s.ID), s.At)...)
	return c.do(ctx, "give back", key, cmd, giveBackScript)
}

// Used implements [cache.Acquirer].
func (c *Cache) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	const op = "used"
	if window < time.Microsecond {
		return 0, &cache.ArgumentError{Op: op, Field: "window", Value: window, Want: "at least 1µs"}
	}
	cmd := redis.NewIntCmd(ctx, usedScript.args(1, c.key(key, kindHits), micros(window))...)
	if err := c.do(ctx, op, key, cmd, usedScript); err != nil {
		return 0, err
	}
	if cmd.Val() == notOurs {
		return 0, &cache.CorruptError{Op: op, Key: key, Err: errNotOurs}
	}
	return cmd.Val(), nil
}

// micros returns a duration in microseconds, rounded up.
func micros(d time.Duration) int64 {
	us := d.Microseconds()
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}

// duration returns microseconds as a duration, or the longest one.
func duration(us int64) time.Duration {
	if us > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
