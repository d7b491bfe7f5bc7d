// Package redis is a [cache.Cache] in Redis, so that several processes on several hosts
// share one allowance and one circuit. It works on a single server, through Sentinel and
// on a cluster, with Redis 6.2 or later or anything that speaks like it.
//
// [Open] takes a URL and makes a client of its own, which Close closes. [New] borrows the
// client you have. A [Cache] has every optional capability of the port:
// [cache.Acquirer], [cache.CompareAndSwapper], [cache.MultiGetter] and
// [cache.TimeLimiter].
//
// # One round trip, one step, one clock
//
// Every method is one command or one script, and so one round trip and one atomic step.
// Scripts go by their hash, and by their text when the server does not know them (any
// more). Acquire reads the clock of the server inside its script; the clock of this host
// has no part in any decision, so a host whose clock is wrong harms nobody. The
// server's clock should be slewed and not stepped: after a step back by an hour, slots
// are given an hour from then.
//
// When several acquires of one process are on their way already, those that come then
// wait for one of them to return, and go together, as one round trip, and those for one
// series as one run of the script, which decides them in their order; so many goroutines
// get several times as much done. An acquire that comes while there are few goes at once.
// On a cluster, where one batch would wait for the slowest of its nodes, each goes by
// itself.
//
// # Sent twice, counted once
//
// A client sends again, without saying so, what was not answered. So each Acquire,
// Increment, CompareAndSwap and RecordHit carries an identifier of its own, by which the
// server knows it again: it gives the same answer and counts nothing twice. What was never
// answered at all is a [cache.UnavailableError].
//
// # Time limits
//
// No call outlasts its context or Config.Timeout, whichever ends first, over any client,
// also over one that ignores contexts (as clients of go-redis do unless their
// ContextTimeoutEnabled is set). The call returns; what it has left behind with the client
// ends by itself, within the time limits of the client, and a slot that Acquire is given
// only then is given back. At most a fixed number of
// operations of one Cache are under way at a time, those included.
//
// # Errors
//
// A context that is done gives its cause. A [*cache.UnavailableError] says that there is
// no answer: no connection, none free in the pool, a time limit, or a server that is
// loading, read only, out of memory, or does not serve this slot. It wraps the client's
// own error. A [*cache.CorruptError] says that there is an answer, but that what is stored
// is of another kind or not ours. A [*cache.ArgumentError] names a wrong argument, and a
// closed cache gives [cache.ErrClosed]. The client's redis.Nil is never seen.
//
// # Keys
//
// All keys that one call touches, and all of one group (see [cache.Key]), hash to one
// slot: the group, with braces escaped, is the hash tag. A key reads
//
//	resilience:{payments}:v:state
//
// that is Config.Prefix, the group, the kind (v for a value, h for a series of hits, o for
// the identifier of an operation) and the part. Everything that is written with a TTL, as
// the limiter and the breaker always do, expires by itself: the series of a limiter when its
// last hit has left the window, or up to an eighth of a window later.
//
// # What is not here
//
// Reading from replicas: a limiter or breaker that decides on what was true a moment ago
// is not exact. A client that is set to read from replicas is refused. Lua libraries
// (FUNCTION LOAD) would have to be loaded by somebody; scripts bring themselves along.
// The client's automatic pipelining ignores contexts and delays a lone call.
package redis

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"

	"github.com/resilience-toolkit/resilience/cache"
)

const (
	defaultPrefix  = "resilience:"
	defaultTimeout = 250 * time.Millisecond

	// maxUnderWay is how many operations of one cache may be with the client at a time,
	// abandoned ones included. It is far above the size of any pool, which is what bounds
	// them in ordinary times.
	maxUnderWay = 1024
)

// Config says how a [Cache] uses its server. The zero Config is ready to use.
type Config struct {
	// Prefix begins every key. Two caches with one prefix on one server share everything,
	// two with different ones nothing. It must not contain a brace, since what is in
	// braces decides the slot. Empty means "resilience:".
	Prefix string

	// Timeout is the longest that one operation may take, waiting for a connection
	// included. It must not be negative; zero means 250 ms. Above that, a breaker sets a
	// limit of its own for each look, which costs a timer more and a goroutine.
	Timeout time.Duration
}

// A Cache keeps its state in Redis. It comes from [New] or [Open]; the zero Cache is not
// usable. All methods may be called by any number of goroutines at once.
type Cache struct {
	client   redis.UniversalClient
	owned    bool
	prefix   string
	timeout  time.Duration
	late     error // what happened to an operation that took longer than timeout
	underWay *semaphore.Weighted
	minds    bool // whether the client, and what it calls, minds the deadline of a context
	closed   atomic.Bool
	acquires dispatcher
}

var (
	_ cache.Cache             = (*Cache)(nil)
	_ cache.Acquirer          = (*Cache)(nil)
	_ cache.CompareAndSwapper = (*Cache)(nil)
	_ cache.MultiGetter       = (*Cache)(nil)
	_ cache.TimeLimiter       = (*Cache)(nil)
)

var errReplicas = errors.New("redis: client reads from replicas, want one that reads from masters only")

// New returns a cache over a client that stays the caller's: Close of the cache does
// not close it. Any [redis.UniversalClient] will do that does not read from replicas; the
// client's own time limits may be longer than Config.Timeout. No connection is made.
func New(client redis.UniversalClient, cfg Config) (*Cache, error) {
	if client == nil || reflect.ValueOf(client).Kind() == reflect.Pointer && reflect.ValueOf(client).IsNil() {
		return nil, fmt.Errorf("redis: client is nil")
	}
	minds, single := false, false
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		minds, single = o.ContextTimeoutEnabled && o.OnConnect == nil && o.CredentialsProvider == nil &&
			o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil && o.Limiter == nil, true
	case *redis.ClusterClient:
		o := c.Options()
		if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return nil, errReplicas
		}
		minds = o.ContextTimeoutEnabled && o.OnConnect == nil && o.CredentialsProvider == nil &&
			o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil
	}
	if strings.ContainsAny(cfg.Prefix, "{}") {
		return nil, fmt.Errorf("redis: Prefix is %q, want one without braces", cfg.Prefix)
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("redis: Timeout is %v, want zero or more", cfg.Timeout)
	}
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	c := &Cache{
		client:   client,
		prefix:   cfg.Prefix,
		timeout:  cfg.Timeout,
		late:     &timeoutError{after: cfg.Timeout},
		underWay: semaphore.NewWeighted(maxUnderWay),
		minds:    minds,
	}
	c.acquires.c, c.acquires.solos = c, !single
	return c, nil
}

// TimeLimit implements [cache.TimeLimiter]: no operation outlasts Config.Timeout.
func (c *Cache) TimeLimit() (time.Duration, bool) { return c.timeout, true }

// Close makes every later call return [cache.ErrClosed]. A client that [Open] made is
// closed with it, one that [New] borrowed is not. Nothing that is stored is deleted.
// Closing again does nothing and returns nil. While sentinels hang, closing takes as long as
// the client lets a read take.
func (c *Cache) Close() error {
	if c.closed.Swap(true) || !c.owned {
		return nil
	}
	if err := c.client.Close(); err != nil {
		return fmt.Errorf("redis: closing the client: %w", err)
	}
	return nil
}
