// Package breaker stops calling what is down, and probes for its return.
//
// A circuit is closed, open or half-open. Closed, it lets calls through and counts
// failures: at [Config.FailureThreshold] failures with no success between them, and
// within one [Config.RecoveryTimeout] of the first, it opens. Open, it refuses every
// call with an [OpenError] until the recovery timeout has passed. Half-open, it lets
// at most [Config.Probes] calls through at a time, and refuses all others: a probe's
// success closes the circuit, a probe's failure opens it again for a full timeout.
//
//	circuit, err := breaker.New(breaker.Config{Name: "answers"})
//	...
//	ask := resilience.Wrap(client.Ask, circuit)
//
// # What counts
//
// Each call has one of three outcomes, as [Config.Classify] sees it: success, failure
// or neither. The outcome belongs to the circuit as it was when the call was let
// through. What a call from before the circuit opened reports later neither closes it
// nor opens it again, and is not counted when it is closed once more. A panic in the
// call, or a runtime.Goexit, is a failure, and propagates.
//
// The failures of a run are forgotten all together: by a success, or when the
// recovery timeout has passed since the first of them. Five failures in a second are
// an outage, and five in a day are weather.
//
// # Sharing
//
// With [Config.Cache], all breakers of one name are one circuit, in however many
// processes: they count together, open together, and have Probes calls in flight
// between them. Making a breaker changes nothing that is stored. A probe's place is
// leased: if its process dies, the place is free again after [Config.ProbeLease], and
// what a probe reports after its lease was lost changes nothing. [Breaker.Do] renews
// the lease as long as the call runs.
//
// Letting a call through a closed circuit costs one round trip to the cache, and none
// within [Config.Staleness] of the last. The first look after another process has
// opened, closed or cleared the circuit takes a second one. Reporting a success costs
// none, unless this process knows of failures that it clears; it knows of its own at
// once, and of the others' by the last look it took. Looks that fall together share a
// round trip, which goes on without the one who began it. A failure costs two or three
// more, or five if it opens the circuit, and a probe six in all, or eight if it fails.
//
// Where the state is out of reach, lost, or cannot be understood, calls are let
// through: a breaker that failed with its store would be one more thing that can
// fail. What is refused by a store is never put in the place of the call's own
// result; [Config.OnStoreError] hears of it. A call that was let through without
// knowing the state is not counted. A cache that goes on locally while the store is
// away, in package failover, keeps a circuit working meanwhile. No use of the cache
// takes longer than a second, or than the cache itself allows. One that promises to take
// no longer than 250 ms ([cache.TimeLimiter]) is given no limit for a look, which saves a
// timer, and over Redis a goroutine. A look ends when nobody waits for it any more, or, over
// such a cache, by itself. A caller whose context cannot be cancelled takes it in his own
// goroutine.
//
// Of a cache, a circuit uses a value for its state, a counter for the failures, a
// marker that lives as long as the recovery timeout, and a value for each probe. That
// a circuit is half-open is not stored: it is what an open one is called when its
// marker has gone, by the store's clock, so that no host's clock plays a part. All
// that is written expires: the state, a day after it could still matter, so that a
// circuit nobody has used for a day is closed.
//
// A cache without [cache.CompareAndSwapper] and [cache.MultiGetter] serves too, with a
// round trip for each value (let there be few Probes then, since all of their places are
// read at once, within that second), and is enough for one breaker. Several that use it at
// the same instant may then let through a probe too many, or overwrite each other's
// transition: the last one's stays, and the next outcome that matters puts it right.
//
// # Errors
//
// [OpenError] is a refusal; it matches [resilience.ErrRejected] and carries when to
// come back. A context that is done on arrival gives [resilience.ContextError], and
// takes no place and writes nothing. Any other error of Do is the call's, as it is.
// After Close, methods return [cache.ErrClosed]. The methods that are not about a
// call, [Breaker.State] and those beside it, return the store's errors.
//
// # Zero values and concurrency
//
// The zero [Config] is usable. The zero [Breaker] is not; [New] makes one. Breakers and
// permits may be used by any number of goroutines at once. No hook or classifier is
// called under a lock. There is no goroutine except while a probe is running, while a
// shared cache is looked at for callers who may leave, and while a place in it is given back
// for one who has gone. A panic of the cache in a look that is in nobody's goroutine is told
// to OnStoreError by those who wait, and calls are let through.
//
// # Roads not taken
//
// Failures are counted in a row and not as a rate, because a rate needs a window of
// all calls, and so a write for each success. A half-open circuit does not ask for
// several successes before it closes: one answer is what was asked for, and the
// threshold is still there. The circuit is not opened by slow calls: a time limit
// inside it makes a slow call a failed one.
package breaker

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

const (
	defaultThreshold = 5
	defaultTimeout   = 30 * time.Second
	defaultLease     = 30 * time.Second
	maxProbes        = 1000

	// margin is how much longer a state is kept than it can matter.
	margin = 24 * time.Hour

	// patience is the longest that one use of a shared cache may take.
	patience = time.Second
)

// A Config says when a circuit opens and how it recovers. Its zero value is a circuit
// of its own in memory, with the defaults below.
type Config struct {
	// Name is the circuit's name: it is in errors and transitions, and on a shared
	// cache breakers of one name are one circuit. Any string will do, the empty one too.
	Name string

	// Cache keeps the state. It is borrowed: closing the breaker leaves it open, and
	// what is stored in it. Nil means a private one in memory, which closing releases.
	Cache cache.KeyValue

	// FailureThreshold is how many failures open the circuit. Zero means 5.
	FailureThreshold int

	// RecoveryTimeout is how long an open circuit refuses calls before it is probed,
	// and how long a failure counts after the first one of its run. Zero means 30 s.
	RecoveryTimeout time.Duration

	// Probes is how many calls a half-open circuit lets through at a time, at most
	// 1000. One that is still running when another has opened the circuit again keeps
	// its place; Reset and ForceOpen begin with all places free. Zero means 1.
	Probes int

	// ProbeLease is how long a probe keeps its place without renewing it, at least a
	// millisecond: how long a process that died while probing can hold up the others.
	// Do renews it while the call runs; a call by [Breaker.Allow] that may take longer
	// has to call [Permit.Renew]. Zero means 30 s.
	ProbeLease time.Duration

	// Staleness is how old what is known of a circuit on a shared cache may be when a
	// call is let through or refused by it. That long, calls may pass after another
	// process has opened the circuit, or be refused after another one has closed it, and
	// what others counted is not cleared by a success. What this process did itself
	// shows at once; who may probe is always decided in the cache; and who comes back
	// after the RetryAfter of a refusal is answered anew. Zero means to look for each
	// call, or to join a look that is under way. A private cache is never stale.
	Staleness time.Duration

	// Classify tells what a result says about the host. It is given the context of the
	// call and its error, also if that is nil. An outcome that is none of the three is a
	// failure. Nil means the function [Classify].
	Classify func(ctx context.Context, err error) Outcome

	// OnStateChange, if not nil, is told of each transition that this breaker makes,
	// and once of each that it finds others to have made, with the context of the call
	// that made or found it. A circuit becomes half-open when a call finds that the
	// timeout has passed. Transitions are told in order, one at a time.
	OnStateChange func(ctx context.Context, t Transition)

	// OnStoreError, if not nil, is told of each error of the cache that was not
	// returned to anybody, and of stored state that cannot be understood
	// ([cache.CorruptError]) when it is first seen. The error's text names the circuit.
	// While a probe runs, it may be called by the goroutine that renews the lease.
	OnStoreError func(ctx context.Context, err error)
}

// A Breaker guards calls of any kind with a circuit: one of its own or, on a shared
// cache, the one of its name. Make one with [New].
type Breaker struct {
	resilience.Sequential[*Breaker]

	cfg      Config
	kv       cache.KeyValue
	owned    *memory.Cache // the cache that was made here, if it was
	local    bool          // nobody has to wait for the cache
	quick    bool          // looks need no time limit of ours, since the cache has a short one
	patience time.Duration // the longest that any other use of the cache may take
	prefix   string        // of all keys of the circuit, which are of one group
	epoch    time.Time     // when the clock of until and at began
	turn     chan struct{} // whose turn it is to swap, over a cache that cannot

	view   atomic.Pointer[view]
	seq    atomic.Uint64
	closed atomic.Bool

	refused atomic.Pointer[OpenError] // the last refusal of an open circuit

	mu      sync.Mutex // for what follows, and storing view
	flight  *flight    // the one that others may join
	changes changes
}

var _ resilience.Policy = (*Breaker)(nil)

// New returns a breaker. The error says which field of cfg is out of range.
func New(cfg Config) (*Breaker, error) {
	for _, f := range []struct {
		name     string
		bad      bool
		value    any
		accepted string
	}{
		{"FailureThreshold", cfg.FailureThreshold < 0, cfg.FailureThreshold, "zero or more"},
		{"RecoveryTimeout", cfg.RecoveryTimeout < 0, cfg.RecoveryTimeout, "zero or more"},
		{"Probes", cfg.Probes < 0 || cfg.Probes > maxProbes, cfg.Probes, "from 0 to 1000"},
		{"ProbeLease", cfg.ProbeLease != 0 && cfg.ProbeLease < time.Millisecond, cfg.ProbeLease, "zero, or at least 1ms"},
		{"Staleness", cfg.Staleness < 0, cfg.Staleness, "zero or more"},
	} {
		if f.bad {
			return nil, fmt.Errorf("breaker: %s is %v, want %s", f.name, f.value, f.accepted)
		}
	}
	if v := reflect.ValueOf(cfg.Cache); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("breaker: Cache is a nil %T", cfg.Cache)
	}
	cfg.FailureThreshold = orElse(cfg.FailureThreshold, defaultThreshold)
	cfg.RecoveryTimeout = orElse(cfg.RecoveryTimeout, defaultTimeout)
	cfg.Probes = orElse(cfg.Probes, 1)
	cfg.ProbeLease = orElse(cfg.ProbeLease, defaultLease)
	if cfg.Classify == nil {
		cfg.Classify = Classify
	}

	b := &Breaker{cfg: cfg, kv: cfg.Cache, prefix: cache.Key("breaker:"+cfg.Name, ""), epoch: time.Now()}
	if b.kv == nil {
		b.owned = memory.New()
		b.kv = b.owned
		b.cfg.Staleness = 0
	}
	b.setLimits()
	if _, ok := b.kv.(cache.CompareAndSwapper); !ok {
		b.turn = make(chan struct{}, 1)
	}
	b.view.Store(&view{
		phase:    b.newPhase(cache.Absent()),
		outdated: b.owned == nil,
		free:     b.owned != nil,
	})
	return b, nil
}

func orElse[T comparable](value, other T) T {
	var zero T
	if value == zero {
		return other
	}
	return value
}

// Do implements [resilience.Policy]: it runs op if the circuit lets it through, and
// otherwise returns an [OpenError]. It returns what op returns.
func (b *Breaker) Do(ctx context.Context, op func(context.Context) error) (err error) {
	g, err := b.admit(ctx)
	if err != nil {
		return err
	}
	outcome := Failure // if op, or the classifier, panics or exits
	defer func() {
		if b.matters(g, outcome) { // asked here, since most often it does not
			b.report(ctx, g, outcome)
		}
	}()
	if g.probe != nil {
		defer b.keep(ctx, g.probe)()
	}
	err = op(ctx)
	outcome = b.cfg.Classify(ctx, err)
	return err
}

// Allow asks the circuit to let a call through that does not fit in a function. It
// returns a permit, which has to be settled when the call is over, or an [OpenError].
func (b *Breaker) Allow(ctx context.Context) (*Permit, error) {
	g, err := b.admit(ctx)
	if err != nil {
		return nil, err
	}
	return &Permit{b: b, grant: g}, nil
}

// State returns the state of the circuit and changes nothing: a circuit whose timeout has
// passed is half-open, whether or not anybody has called since. With a shared cache
// the answer may be as old as [Config.Staleness]. After an error it is Closed, since
// calls are let through.
func (b *Breaker) State(ctx context.Context) (State, error) {
	v, err := b.inspect(ctx)
	if err != nil {
		return Closed, err
	}
	return v.status(), nil
}

// RetryAfter returns what the RetryAfter of a refusal would be now, or 0 if a call
// would be let through. It takes no place and changes nothing.
func (b *Breaker) RetryAfter(ctx context.Context) (time.Duration, error) {
	v, err := b.inspect(ctx)
	switch {
	case err != nil:
		return 0, err
	case v.status() == Open || v.status() == HalfOpen && v.full():
		return b.wait(v), nil
	default:
		return 0, nil
	}
}

func (b *Breaker) inspect(ctx context.Context) (*view, error) {
	if err := b.usable(ctx); err != nil {
		return nil, err
	}
	v, err := b.look(ctx)
	if err != nil {
		return nil, b.failed(ctx, err)
	}
	return v, nil
}

// Reset forgets: the circuit is closed, with no failures, and what calls report that
// were let through before changes nothing. If it fails, it may or may not have had
// its effect.
func (b *Breaker) Reset(ctx context.Context) error {
	return b.replace(ctx, entry{era: newID(), run: newID()}, b.cfg.RecoveryTimeout)
}

// ForceOpen opens the circuit for d, which must be above zero, as if it had failed.
// After that it is probed as usual. If ForceOpen fails, it may or may not have had
// its effect.
func (b *Breaker) ForceOpen(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("breaker: ForceOpen: duration is %v, want above zero", d)
	}
	return b.replace(ctx, entry{open: true, era: newID(), timeout: d}, d)
}

// replace puts an entry in the place of whatever is stored.
func (b *Breaker) replace(ctx context.Context, e entry, d time.Duration) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	sctx, cancel := b.bounded(ctx)
	defer cancel()
	if err := b.overwrite(sctx, e, d); err != nil {
		b.forget()
		return b.failed(ctx, err)
	}
	return nil
}

func (b *Breaker) overwrite(ctx context.Context, e entry, d time.Duration) error {
	old := b.view.Load().phase
	if err := b.mark(ctx, e); err != nil {
		return err
	}
	raw := cache.Present(e.String())
	err := b.inTurn(ctx, func() error { return b.kv.Set(ctx, old.state(), raw.Value, b.ttl(d)) })
	if err != nil {
		return err
	}
	if old.open { // its marker may be there for long, and is nothing to anybody now
		if err := b.kv.Delete(ctx, old.marker()); err != nil {
			return err
		}
	}
	_, err = b.refresh(ctx, b.newPhase(raw))
	return err
}

// Close releases the private cache, if there is one; a cache that was given is left
// as it is, and what is stored in it. What was let through before still reports to a
// cache that was given. Closing again does nothing. The error is always nil.
func (b *Breaker) Close() error {
	b.closed.Store(true)
	if b.owned == nil {
		return nil
	}
	err := b.owned.Close()
	b.forget() // no call passes without a look any more
	return err
}

// usable returns the error of a method that cannot begin.
func (b *Breaker) usable(ctx context.Context) error {
	if b.closed.Load() {
		return &closedError{b.cfg.Name}
	}
	return resilience.ContextError(ctx)
}

// failed returns the error of a method that has failed in the cache.
func (b *Breaker) failed(ctx context.Context, err error) error {
	if cerr := resilience.ContextError(ctx); cerr != nil {
		return cerr
	}
	return b.wrap(err)
}

// now is the time since the breaker was made.
func (b *Breaker) now() time.Duration { return time.Since(b.epoch) }

// ttl is how long a state is kept that matters for d.
func (b *Breaker) ttl(d time.Duration) time.Duration {
	return after(d, after(b.cfg.ProbeLease, margin))
}

// setLimits sets what follows from the time limit of the cache. Most looks ask one
// question of a cache that can answer it at once.
func (b *Breaker) setLimits() {
	b.patience = patience
	longest, ok := cache.TimeLimit(b.kv)
	_, oneQuestion := b.kv.(cache.MultiGetter)
	b.local = ok && longest == 0
	b.quick = ok && oneQuestion && longest <= patience/4
	if b.quick {
		b.patience -= longest // for a look that has to ask more
	}
}

// bounded limits a use of a cache that may have to be waited for.
func (b *Breaker) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.local {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, b.patience)
}

// wait is how long after now it makes sense to ask a circuit again that refuses.
func (b *Breaker) wait(v *view) time.Duration {
	if !v.waiting {
		return min(b.cfg.ProbeLease, b.cfg.RecoveryTimeout)
	}
	if d := v.until - b.now(); d > 0 {
		return d
	}
	return time.Millisecond // the marker is about to go, by a clock as coarse as that
}
