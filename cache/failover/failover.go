// Package failover is a cache that goes on locally while a shared one is away.
//
//	shared, err := redis.Open(url, redis.Config{})
//	...
//	store, err := failover.New(shared, memory.New(), failover.Config{})
//
// Handed to a limiter and a breaker, store has them agree with other processes as
// long as the primary cache answers, and gives them an allowance and a circuit of this
// process alone while it does not. Without it, the limiter refuses or admits by
// its own policy and the breaker admits.
//
// # Leaving and returning
//
// When an operation on the primary fails, that operation is done again locally, and so
// are all others from then on. After a cool-down one caller's operation, and not
// everybody's, goes to the primary again: if it is answered, all return to it; if not, the
// next one tries after another cool-down. Observers are told of leaving and returning.
// What began before an absence and fails after it says nothing of the primary of now: it
// is done again locally, and nothing follows from that.
//
// A failure is any error that is not an answer: not [cache.CorruptError],
// [cache.ArgumentError], [cache.ErrNotInteger], [cache.ErrOverflow] or
// [cache.ErrClosed], and not that the caller's own context is done. But three
// operations that end at their callers' deadlines, with no answer in between, are a failure
// too: callers with less time than the adapter's own limit would otherwise wait for a
// store that hangs, again and again.
//
// # What it leaves open
//
// Nothing is carried over. Whoever leaves begins with what is in the local cache, which
// is nothing or what is left of an earlier absence, and what was counted locally is
// not added to the primary on return. So during an absence each process has the whole
// limit to itself, and within one window of a return the limit of the fleet may have
// been exceeded by what the processes did meanwhile. An operation that failed may have
// taken effect on the primary. A slot of the primary that is given back while it is away
// goes unused until its window has passed.
//
// # Zero values and concurrency
//
// The zero [Config] is usable. What New returns may be used by any number of
// goroutines at once. It has borrowed both caches and closes neither. It starts no
// goroutine.
package failover

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// Config says how long to stay away, and who is to know. Its zero value is usable.
type Config struct {
	// CoolDown is how long the primary is left alone after a failure. Zero is one second.
	CoolDown time.Duration

	// OnLeave, if not nil, is told that operations are done locally from now on, and the
	// failure that is the reason. It gets the context of the operation that failed, which
	// goes on when OnLeave has returned.
	OnLeave func(ctx context.Context, reason error)

	// OnReturn, if not nil, is told that operations are done by the primary again, and
	// how long they were not.
	OnReturn func(ctx context.Context, away time.Duration)
}

const defaultCoolDown = time.Second

// New returns a cache that uses primary as long as it answers, and local while it does
// not. It has each capability ([cache.Acquirer], [cache.CompareAndSwapper],
// [cache.MultiGetter]) that both have, and keeps a time limit ([cache.TimeLimiter]) if both
// do. The error names the argument that is wrong.
func New(primary, local cache.Cache, cfg Config) (cache.Cache, error) {
	switch {
	case isNil(primary):
		return nil, errors.New("failover: primary is nil, want a cache")
	case isNil(local):
		return nil, errors.New("failover: local is nil, want a cache such as memory.New()")
	case cfg.CoolDown < 0:
		return nil, fmt.Errorf("failover: CoolDown is %v, want zero or more", cfg.CoolDown)
	case cfg.CoolDown == 0:
		cfg.CoolDown = defaultCoolDown
	}
	return withCapabilities(&store{primary: side{Cache: primary}, local: side{local, true}, cfg: cfg}), nil
}

// isNil also finds a nil pointer in the interface: what is left of a cache whose
// constructor's error nobody looked at.
func isNil(c cache.Cache) bool {
	v := reflect.ValueOf(c)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// A side is one of the two caches.
type side struct {
	cache.Cache
	local bool
}

// A store is the plain cache; see capabilities.go for the rest.
type store struct {
	primary, local side
	cfg            Config

	away    atomic.Bool   // whether the primary has been left; written under mu
	returns atomic.Uint64 // how often it was returned to; written under mu
	overdue atomic.Int32  // how many operations in a row have ended at their callers' deadlines

	mu     sync.Mutex
	since  time.Time // when the primary was left
	due    time.Time // when it may be asked again
	asking bool      // one caller is asking it
}

// tooManyOverdue is how many operations in a row may end at their callers' deadlines.
const tooManyOverdue = 3

// do runs an operation on the primary or, if that is away or fails, on the local cache.
func do[T any](ctx context.Context, s *store, op func(side) (T, error)) (T, error) {
	if ctx.Err() != nil {
		var zero T
		return zero, context.Cause(ctx)
	}
	asker := false // the one caller who asks whether the primary is back
	if s.away.Load() {
		if asker = s.ask(); !asker {
			return op(s.local)
		}
		defer s.asked() // also if op panics
	}
	began := s.returns.Load()
	v, err := op(s.primary)
	switch {
	case !isFailure(err):
		s.answered(ctx, asker)
	case errors.Is(ctx.Err(), context.Canceled):
		// That tells nothing of the primary.
	case expired(ctx):
		if began == s.returns.Load() && s.overdue.Add(1) >= tooManyOverdue || asker {
			s.failed(ctx, asker, began, err)
		}
	default:
		s.failed(ctx, asker, began, err)
		return op(s.local)
	}
	return v, err
}

// expired reports whether the deadline of a context has passed. A connection that minds the
// deadline may say so before the context does.
func expired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// isFailure reports whether an error is none of the answers.
func isFailure(err error) bool {
	if err == nil || errors.Is(err, cache.ErrNotInteger) || errors.Is(err, cache.ErrOverflow) || errors.Is(err, cache.ErrClosed) {
		return false
	}
	if _, ok := errors.AsType[*cache.CorruptError](err); ok {
		return false
	}
	_, ok := errors.AsType[*cache.ArgumentError](err)
	return !ok
}

// ask reports whether the caller is to ask the primary, which is away. If so, the
// caller must call asked afterwards.
func (s *store) ask() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking || time.Now().Before(s.due) {
		return false
	}
	s.asking = true
	return true
}

func (s *store) asked() {
	s.mu.Lock()
	s.asking = false
	s.mu.Unlock()
}

// answered notes that the primary has answered. Only the asker's word brings the
// others back: other answers may be to questions of before it was left.
func (s *store) answered(ctx context.Context, asker bool) {
	if s.overdue.Load() != 0 {
		s.overdue.Store(0)
	}
	if !asker {
		return
	}
	s.mu.Lock()
	since, returned := s.since, s.away.Swap(false)
	s.returns.Add(1)
	s.mu.Unlock()
	if returned && s.cfg.OnReturn != nil {
		s.cfg.OnReturn(ctx, time.Since(since))
	}
}

// failed notes that the primary has failed. Failures of operations that began before
// it was left do not prolong the cool-down, nor, once it was returned to, have it left
// again.
func (s *store) failed(ctx context.Context, asker bool, began uint64, err error) {
	s.mu.Lock()
	left := !s.away.Load() && began == s.returns.Load()
	if left || asker {
		now := time.Now()
		if left {
			s.since = now
		}
		s.due = now.Add(s.cfg.CoolDown)
		s.away.Store(true)
		s.overdue.Store(0)
	}
	s.mu.Unlock()
	if left && s.cfg.OnLeave != nil {
		s.cfg.OnLeave(ctx, err)
	}
}
