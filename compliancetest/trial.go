package compliancetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A trial is one rule's own cache, and the steps that rules are made of. A step
// ends the check by failf if what it sees is not what is wanted.
type trial struct {
	ctx     context.Context
	cache   any
	kv      cache.KeyValue          // nil if the cache is none, as below
	hits    cache.HitWindow         //
	swap    cache.CompareAndSwapper //
	many    cache.MultiGetter       //
	acq     cache.Acquirer          //
	limit   cache.TimeLimiter       //
	close   func() error
	advance func(time.Duration)
	bubble  bool
	slack   time.Duration
	prefix  string
}

const (
	short = 50 * time.Millisecond // a TTL to outlive
	long  = time.Hour             // a TTL that no rule outlives
)

func newTrial(c any, closeCache func() error, advance func(time.Duration), bubble bool, slack time.Duration) *trial {
	t := &trial{
		ctx:     context.Background(),
		cache:   c,
		close:   closeCache,
		advance: advance,
		bubble:  bubble,
		slack:   slack,
		prefix:  rand.Text(),
	}
	t.kv, _ = c.(cache.KeyValue)
	t.hits, _ = c.(cache.HitWindow)
	t.swap, _ = c.(cache.CompareAndSwapper)
	t.many, _ = c.(cache.MultiGetter)
	t.acq, _ = c.(cache.Acquirer)
	t.limit, _ = c.(cache.TimeLimiter)
	return t
}

// key returns a key that only this trial uses.
func (t *trial) key(name string) string { return t.prefix + name }

// outlive lets the TTL of a series pass for certain; it may last a little longer.
func (t *trial) outlive(d time.Duration) { t.advance(d + 10*time.Millisecond + t.slack) }

// expire lets the TTL of a value pass, in virtual time to the moment.
func (t *trial) expire(ttl time.Duration) {
	if t.bubble && t.slack == 0 {
		t.advance(ttl)
		return
	}
	t.outlive(ttl)
}

// span is a TTL or a window of which half can pass, for certain, before the whole.
func (t *trial) span() time.Duration { return short + 4*t.slack }

// together runs f in n goroutines that start at the same time.
func (t *trial) together(n int, f func(i int)) {
	var all sync.WaitGroup
	errs := make([]error, n)
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = catch(func() { f(i) })
		})
	}
	close(start)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			failf("%w", err)
		}
	}
}

// done calls f with contexts that are done, each in another way, and wants the
// cause of each from it.
func (t *trial) done(what string, f func(context.Context) error) {
	gone := errors.New("the caller has gone")
	cancelled, cancel := context.WithCancelCause(t.ctx)
	cancel(gone)
	expired, stop := context.WithDeadline(t.ctx, time.Unix(0, 0))
	defer stop()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{cancelled, gone}, {expired, context.DeadlineExceeded}} {
		if err := f(c.ctx); !errors.Is(err, c.want) {
			failf("%s with a context that is done: error is %s, want its cause, %q", what, text(err), c.want)
		}
	}
}

// text is how an error is quoted.
func text(err error) string {
	if err == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", err)
}

// must wants no error from what was done.
func must(err error, format string, args ...any) {
	if err != nil {
		failf("%s: error is %q, want none", fmt.Sprintf(format, args...), err)
	}
}

// mustFail wants an error.
func mustFail(err error, format string, args ...any) {
	if err == nil {
		failf("%s: error is nil, want one", fmt.Sprintf(format, args...))
	}
}

// mustMatch wants an error that matches target.
func mustMatch(err, target error, format string, args ...any) {
	if !errors.Is(err, target) {
		failf("%s: error is %s, want one that matches %q", fmt.Sprintf(format, args...), text(err), target)
	}
}

// Steps on a KeyValue.

func (t *trial) set(key, value string, ttl time.Duration) {
	must(t.kv.Set(t.ctx, key, value, ttl), "Set(%q, %s, %v)", key, brief(value), ttl)
}

func (t *trial) delete(key string) {
	if t.kv != nil {
		must(t.kv.Delete(t.ctx, key), "Delete(%q)", key)
	}
}

func (t *trial) increment(key string, ttl time.Duration, want int64) {
	n, err := t.kv.Increment(t.ctx, key, ttl)
	must(err, "Increment(%q, %v)", key, ttl)
	if n != want {
		failf("Increment(%q, %v) is %d, want %d", key, ttl, n, want)
	}
}

func (t *trial) wantValue(key, want string) {
	value, ok, err := t.kv.Get(t.ctx, key)
	must(err, "Get(%q)", key)
	if !ok {
		failf("Get(%q): there is nothing, want %s", key, brief(want))
	}
	if value != want {
		failf("Get(%q) is %s, want %s", key, brief(value), brief(want))
	}
}

func (t *trial) wantNothing(key string) {
	value, ok, err := t.kv.Get(t.ctx, key)
	must(err, "Get(%q)", key)
	if ok {
		failf("Get(%q) is %s, want that there is nothing", key, brief(value))
	}
}

// brief quotes a value, and no more of it than can be read.
func brief(value string) string {
	if len(value) <= 64 {
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q and so on, %d bytes in all", value[:32], len(value))
}

// Steps on a HitWindow.

func (t *trial) hit(key string, at time.Time, ttl time.Duration) {
	must(t.hits.RecordHit(t.ctx, key, at, ttl), "RecordHit(%q, %s, %v)", key, stamp(at), ttl)
}

func (t *trial) wantHits(key string, since time.Time, want int) {
	n, err := t.hits.CountHits(t.ctx, key, since)
	must(err, "CountHits(%q, %s)", key, stamp(since))
	if n != want {
		failf("CountHits(%q, %s) is %d, want %d", key, stamp(since), n, want)
	}
}

func (t *trial) wantOldest(key string, since, want time.Time) {
	at, ok, err := t.hits.OldestHit(t.ctx, key, since)
	must(err, "OldestHit(%q, %s)", key, stamp(since))
	if !ok {
		failf("OldestHit(%q, %s): there is none, want %s", key, stamp(since), stamp(want))
	}
	if !at.Equal(want) {
		failf("OldestHit(%q, %s) is %s, want %s", key, stamp(since), stamp(at), stamp(want))
	}
}

func (t *trial) wantNoOldest(key string, since time.Time) {
	at, ok, err := t.hits.OldestHit(t.ctx, key, since)
	must(err, "OldestHit(%q, %s)", key, stamp(since))
	if ok {
		failf("OldestHit(%q, %s) is %s, want that there is none", key, stamp(since), stamp(at))
	}
}

// stamp writes an instant down to the nanosecond.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000000") }
