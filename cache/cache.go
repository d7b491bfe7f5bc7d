// Package cache is the port through which a rate limiter and a circuit breaker
// keep their state: shared, expiring, and no more than the two of them use.
//
// It is not a general cache. [KeyValue] is the breaker's half and [HitWindow] the
// limiter's; [Cache] is both. Package memory, in cache/memory, is the default and
// needs nothing; package redis, in cache/redis, lets several processes agree. A
// cache of your own runs the suites of package compliancetest. What an
// implementation may do better than the plain methods, it says by implementing an
// optional interface: [Acquirer], [CompareAndSwapper], [MultiGetter], [TimeLimiter].
//
// # Rules for every implementation
//
//   - All methods may be called by any number of goroutines at once.
//   - Keys and values are strings of any bytes; the empty one is a key like any
//     other.
//   - A context that is done on arrival changes nothing, and the method returns its
//     cause ([context.Cause]).
//   - A failure of the store, as opposed to an answer, is an [UnavailableError]. No
//     method outlasts its context, nor, where a store can hang, a time limit of the
//     implementation's own, which a [TimeLimiter] tells.
//   - What is there but cannot be understood is a [CorruptError]. Absence is an
//     answer and never an error.
//   - A time to live (TTL) is a duration that the implementation measures by a clock
//     of its choice. Zero means no expiry where it is allowed; a negative one is an
//     error; one below the implementation's resolution is rounded up, never to "no
//     expiry" and never to "expired".
//   - Instants have a resolution of one microsecond, so that no two implementations
//     disagree about a boundary; a finer part is cut off.
//
// # Lifetimes
//
// The interfaces have no Close: whoever is handed a cache has borrowed it and has no
// way to close it. The type that an implementation's constructor returns has one, which
// may be called more than once; every other method then returns [ErrClosed].
package cache

import (
	"context"
	"time"
)

// KeyValue is the circuit breaker's half of the port: values that expire, and
// counters.
type KeyValue interface {
	// Get returns the value of key, and whether there is one. A counter reads as its
	// decimal string.
	Get(ctx context.Context, key string) (value string, ok bool, err error)

	// Set gives key the value, for ttl or, with a ttl of zero, until it is deleted.
	// It replaces whatever was there, TTL included.
	Set(ctx context.Context, key, value string, ttl time.Duration) error

	// Increment adds one to the number at key and returns the sum; a key that is
	// absent counts as 0. It is atomic: no increment is ever lost. The ttl is given to
	// a key that this call makes, and an existing one keeps what it has: a counter whose
	// TTL every increment refreshed would never expire under load, which is just when
	// it must. A number is what [strconv.FormatInt] writes in base 10: no plus sign, no
	// zeros in front, no spaces. A value that is none, or is the largest of all, is
	// left as it is, with an error that matches [ErrNotInteger] or [ErrOverflow].
	Increment(ctx context.Context, key string, ttl time.Duration) (int64, error)

	// Delete removes the value and the series of hits at key; that neither is there is
	// no error.
	Delete(ctx context.Context, key string) error
}

// HitWindow is the rate limiter's half of the port: series of instants, and how
// many of them a window holds. The instants are the caller's, and the
// implementation reads no clock to answer. A series and a value may share a key.
type HitWindow interface {
	// RecordHit adds a hit at the instant. Two hits at one instant are two hits, and
	// hits may come in any order. The ttl, which must be above zero and should exceed
	// the widest window that is asked for, bounds the life of the whole series: each hit
	// extends it to at least ttl from now, and none shortens what is left.
	RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error

	// CountHits returns how many hits are at or after since. It may discard older ones,
	// so one series serves one width of window.
	CountHits(ctx context.Context, key string, since time.Time) (int, error)

	// OldestHit returns the first hit at or after since, and whether there is one. It
	// discards nothing.
	OldestHit(ctx context.Context, key string, since time.Time) (at time.Time, ok bool, err error)
}

// Cache is both halves: what a limiter and a breaker can share.
type Cache interface {
	KeyValue
	HitWindow
}
