// Package ratelimit holds callers to an allowance: at most so many calls in any
// span of one window, for each key.
//
//	allowance, err := ratelimit.New(60, time.Minute, ratelimit.Config{MaxWait: 10 * time.Second})
//	...
//	ask := resilience.Wrap(client.Ask, allowance.For("tenant-7"))
//
// The window slides: no span of it ever holds more than the limit, wherever the
// span begins, and not only the spans that begin on a full minute. A hit at t counts
// until t + window, and at that very instant no more. This is exact for any number of
// goroutines, and for all processes that share a cache that is a [cache.Acquirer].
//
// A caller who finds no room is refused, with an error that says when there will be
// some, or, if [Config].MaxWait allows, waits for it. To wait is to reserve: the
// caller takes the next slot to come free, in order of arrival, and sleeps until then; it
// asks the cache once. One who stops waiting leaves no gap: those behind it who wait for
// the same limiter with the same cost move up by one, and the last of their slots is given
// back, for which a cache that does not answer is given a second. (That slot stays
// unused if somebody asks the cache before it is given back, and so has the one after it,
// or if one who waits with another cost has a later one.) A wait that the context's deadline cannot cover is
// refused at once and takes nothing. A refusal takes nothing either, so asking again and
// again makes no wait longer.
//
// # Errors
//
//   - [ExceededError]: no room in time. It has a RetryAfter, except where the cost is
//     above the limit and there will never be room.
//   - [cache.UnavailableError], [cache.CorruptError]: the cache has given no answer, and the
//     limiter is to refuse then; see [Unavailable].
//   - [cache.ErrClosed]: the limiter, or its cache, was closed.
//   - What [resilience.ContextError] returns: the caller's context was done on
//     arrival, or while waiting.
//
// All but the last match [resilience.ErrRejected] where they stand for a call that was
// not made; [Limiter.Remaining] and [Limiter.Reset] return them as they are. What the call
// itself returns is passed on as it is, and never looked at.
//
// # Zero values and concurrency
//
// A [Limiter] comes from [New], a [Policy] from a Limiter; their zero values are not
// usable. The zero [Config] is. Everything here may be used by any number of
// goroutines at once. No goroutine is started, nothing is held for a key at rest beyond
// what its cache holds, and hooks are called under no lock.
//
// # Roads not taken
//
// A counter per clock bucket lets twice the limit through around the edge of a bucket. A
// token bucket, and the generic cell rate algorithm, let nearly twice the limit
// through after a pause. Two weighted buckets guess. All are cheaper, and none of them
// keeps the limit in every span of a window.
package ratelimit

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// Config is what may be said about a [Limiter] besides its limit. The zero Config
// is a limiter in the memory of this process that refuses at once.
type Config struct {
	// Name tells limiters on one cache apart. Those of one name and one window share their
	// allowances, in this process and in others, and should have one limit. Empty
	// is a name like any other.
	Name string

	// Cache is where the hits are kept. It is borrowed: Close leaves it open. Nil means
	// a private memory of the limiter's own, which Close releases. If the cache is no
	// [cache.Acquirer], what [cache.AcquirerOf] says holds.
	Cache cache.Cache

	// MaxWait is how long a caller may have to wait for a slot. Zero refuses at once.
	MaxWait time.Duration

	// WhenUnavailable says what to do when the cache gives no answer: Refuse, which is
	// the zero value, or Admit.
	WhenUnavailable Unavailable

	// OnRefuse, if not nil, is called for each refusal for want of room, now or ever.
	// All three hooks get the caller's context and run in the caller's goroutine.
	OnRefuse func(ctx context.Context, refusal *ExceededError)

	// OnWait, if not nil, is called when a caller has reserved a slot and is about to
	// wait for it.
	OnWait func(ctx context.Context, wait Wait)

	// OnUnavailable, if not nil, is called each time a caller is refused or admitted
	// without an answer of the cache.
	OnUnavailable func(ctx context.Context, outage Outage)
}

// Unavailable says what a limiter does with a call when its cache gives no answer:
// because it fails, or has something else under the key, or has said nothing by the
// deadline of the caller. A caller who cancels meanwhile gets the context's error either
// way.
type Unavailable int

const (
	// Refuse does not make the call, for the sake of the host.
	Refuse Unavailable = iota
	// Admit makes the call, for the sake of the caller.
	Admit
)

// String returns the name of the constant.
func (u Unavailable) String() string {
	switch u {
	case Refuse:
		return "Refuse"
	case Admit:
		return "Admit"
	}
	return "Unavailable(" + strconv.Itoa(int(u)) + ")"
}

// A Wait is what [Config].OnWait is told.
type Wait struct {
	Key  string
	Cost int
	For  time.Duration // how long the wait will be, or less if others give up
}

// An Outage is what [Config].OnUnavailable is told.
type Outage struct {
	Key      string
	Cost     int
	Err      error // matches *cache.UnavailableError or *cache.CorruptError
	Admitted bool  // whether the call is made nevertheless
}

// A Limiter holds the callers of each key to an allowance. Make one with [New]; it
// may be used by any number of goroutines at once.
type Limiter struct {
	limit   int
	window  time.Duration
	config  Config
	prefix  string // of every series, on a cache that is shared
	hits    cache.Acquirer
	keys    cache.KeyValue
	private *memory.Cache // what Close has to close, or nil
	waiting queue
	closed  atomic.Bool
}

// New returns a limiter that admits at most limit in any span of window. The limit is
// at least 1 and the window at least a microsecond, to which it is rounded up. The
// error names the argument that is out of its range.
func New(limit int, window time.Duration, cfg Config) (*Limiter, error) {
	switch {
	case limit < 1:
		return nil, fmt.Errorf("ratelimit: limit is %d, want at least 1", limit)
	case window < time.Microsecond:
		return nil, fmt.Errorf("ratelimit: window is %v, want at least 1µs", window)
	case cfg.MaxWait < 0:
		return nil, fmt.Errorf("ratelimit: MaxWait is %v, want zero or more", cfg.MaxWait)
	case cfg.WhenUnavailable != Refuse && cfg.WhenUnavailable != Admit:
		return nil, fmt.Errorf("ratelimit: WhenUnavailable is %v, want Refuse or Admit", cfg.WhenUnavailable)
	}
	if v := reflect.ValueOf(cfg.Cache); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("ratelimit: Cache is a nil %T", cfg.Cache)
	}
	l := &Limiter{limit: limit, window: window, config: cfg}
	if cfg.Cache == nil {
		// Nobody else writes there, so a key is its own series.
		l.private = memory.New()
		l.hits, l.keys = l.private, l.private
		return l, nil
	}
	l.hits, l.keys = cache.AcquirerOf(cfg.Cache), cfg.Cache
	// The name comes with its length, and a duration has no colon, so different triples
	// of name, window and key make different series, whatever bytes they hold.
	l.prefix = "ratelimit:" + strconv.Itoa(len(cfg.Name)) + ":" + cfg.Name + ":" + window.String() + ":"
	return l, nil
}

// Acquire takes a slot for one hit at key. It returns nil once the caller may go
// ahead, after a wait if need be, and otherwise one of the errors of the package.
func (l *Limiter) Acquire(ctx context.Context, key string) error {
	return l.acquire(ctx, key, l.series(key), 1)
}

// AcquireN is Acquire for a hit that counts as n, all of it at one instant. An n
// below 1 is an error, and one above the limit an [ExceededError] without a
// RetryAfter; neither changes anything.
func (l *Limiter) AcquireN(ctx context.Context, key string, n int) error {
	return l.acquire(ctx, key, l.series(key), n)
}

// Remaining returns how much of the allowance of key is left now, and takes none of
// it. What waiting callers have reserved is not left. It is never below zero.
func (l *Limiter) Remaining(ctx context.Context, key string) (int, error) {
	if err := l.ready(ctx); err != nil {
		return 0, err
	}
	used, err := l.hits.Used(ctx, l.series(key), l.window)
	if err != nil {
		return 0, failure(ctx, "used", err)
	}
	return int(max(0, int64(l.limit)-used)), nil
}

// Reset forgets what was used of the allowance of key: there is room for the whole
// limit at once. Callers who wait keep their slots and go ahead when they
// would have, without being counted.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := l.ready(ctx); err != nil {
		return err
	}
	if err := l.keys.Delete(ctx, l.series(key)); err != nil {
		return failure(ctx, "delete", err)
	}
	return nil
}

// Close releases what the limiter has made: its private memory, and no cache that it
// was given. Callers who wait get an error that matches [cache.ErrClosed], as does
// everyone who comes later, and their slots are given back. Closing again does nothing. The
// error is always nil.
func (l *Limiter) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.waiting.close()
	if l.private != nil {
		return l.private.Close()
	}
	return nil
}

// series returns the name of the series of a key.
func (l *Limiter) series(key string) string {
	if l.prefix == "" {
		return key
	}
	return l.prefix + key
}

// ready returns the error of a call that need not begin.
func (l *Limiter) ready(ctx context.Context) error {
	if l.closed.Load() {
		return cache.ErrClosed
	}
	if ctx.Err() != nil {
		return resilience.ContextError(ctx)
	}
	return nil
}
