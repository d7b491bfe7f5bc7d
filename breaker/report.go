package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// matters reports whether the outcome of a call changes anything.
func (b *Breaker) matters(g grant, o Outcome) bool {
	return g.probe != nil || g.phase != nil && o != Neutral && (o != Success || b.view.Load().failures != 0)
}

// report reports the outcome of a call, if it matters. It never fails: what cannot be
// written is told to the observer. A caller who has gone does not end it.
func (b *Breaker) report(ctx context.Context, g grant, o Outcome) {
	if !b.matters(g, o) || b.closed.Load() && b.owned != nil {
		return
	}
	sctx, cancel := b.bounded(context.WithoutCancel(ctx))
	defer cancel()
	var err error
	switch {
	case g.probe == nil && o == Success:
		err = b.clear(sctx, g.phase)
	case g.probe == nil:
		if err = b.count(sctx, g.phase); err != nil {
			b.suspect(g.phase)
		}
	case o == Neutral:
		b.release(sctx, g.probe)
	default:
		err = b.decide(sctx, g, o)
	}
	if err != nil {
		b.forget()
		b.tell(ctx, err)
	}
}

// clear begins a new run, if failures are known that a success of the phase clears.
func (b *Breaker) clear(ctx context.Context, from *phase) error {
	v := b.view.Load()
	for v.continues(from) && v.failures > 0 && ctx.Err() == nil {
		next, err := b.nextRun(ctx, v.phase)
		if err != nil {
			return err
		}
		if v, err = b.refresh(ctx, next); err != nil || next != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// count counts a failure of the phase, and opens the circuit at the threshold.
//
// It is counted in the run that was current last. If that has ended meanwhile, it
// is counted again in the next one: the count that it missed is dead, and a failure
// that was reported after a success must not be lost with what the success cleared.
func (b *Breaker) count(ctx context.Context, from *phase) error {
	p := b.view.Load().phase
	for p.continues(from) {
		counted := true
		var next *phase // that follows p, if this failure ends it
		n, err := b.kv.Increment(ctx, p.counter(), b.cfg.RecoveryTimeout)
		switch {
		case isCorrupt(err):
			b.tell(ctx, err)
			counted = false
			next, err = b.nextRun(ctx, p)
		case err != nil:
		case n >= int64(b.cfg.FailureThreshold):
			next, err = b.open(ctx, p)
		case n == 1 && p.raw.Present:
			// The state must not lapse before its count does.
			_, err = b.swap(ctx, p.state(), p.raw, p.raw, b.ttl(b.cfg.RecoveryTimeout))
		}
		if err != nil {
			return err
		}
		v, err := b.refresh(ctx, next)
		if err != nil || counted && (next != nil || v.same(p)) {
			return err
		}
		p = v.phase
	}
	return nil
}

// decide closes the circuit or opens it again, for a probe that still has its place.
// It takes no longer than the lease that it begins with.
func (b *Breaker) decide(ctx context.Context, g grant, o Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.ProbeLease)
	defer cancel()
	held, err := b.renew(ctx, g.probe)
	if err != nil || !held {
		return err
	}
	var next *phase
	if o == Success {
		next, err = b.follow(ctx, g.phase, entry{era: newID(), run: newID()})
	} else {
		next, err = b.open(ctx, g.phase)
	}
	if o != Success || next == nil {
		b.release(ctx, g.probe) // the outage goes on, or may do
	}
	if err != nil {
		return err
	}
	_, err = b.refresh(ctx, next)
	return err
}

// open opens the circuit for a recovery timeout if its phase is still p. The marker
// comes first: without one an open circuit is a half-open one.
func (b *Breaker) open(ctx context.Context, p *phase) (*phase, error) {
	e := entry{open: true, era: newOpenEra(p), timeout: b.cfg.RecoveryTimeout}
	if err := b.mark(ctx, e); err != nil {
		return nil, err
	}
	return b.follow(ctx, p, e)
}

// mark writes the marker of an entry, if it is of an open circuit.
func (b *Breaker) mark(ctx context.Context, e entry) error {
	if !e.open {
		return nil
	}
	return b.kv.Set(ctx, b.markerKey(e.era), marker.Value, e.timeout)
}

// nextRun ends the run of p, and with it what was counted in it.
func (b *Breaker) nextRun(ctx context.Context, p *phase) (*phase, error) {
	return b.follow(ctx, p, entry{era: p.era, run: newID()})
}

// follow puts an entry in the place of that of p, and returns its phase, or nil if p
// was not there any more. It takes the counter of p away, which is nothing to anybody
// then.
func (b *Breaker) follow(ctx context.Context, p *phase, e entry) (*phase, error) {
	raw := cache.Present(e.String())
	ok, err := b.swap(ctx, p.state(), p.raw, raw, b.ttl(b.cfg.RecoveryTimeout))
	if err != nil || !ok {
		return nil, err
	}
	if !p.open {
		err = b.kv.Delete(ctx, p.counter())
	}
	return b.newPhase(raw), err
}

// renew gives a probe's place another lease, and reports whether it was still its own.
func (b *Breaker) renew(ctx context.Context, p *probe) (bool, error) {
	return b.swap(ctx, p.key, p.holder, p.holder, b.cfg.ProbeLease)
}

// release gives a probe's place back if it is still its own.
func (b *Breaker) release(ctx context.Context, p *probe) {
	ctx, cancel := b.bounded(context.WithoutCancel(ctx))
	defer cancel()
	_, err := b.swap(ctx, p.key, p.holder, cache.Absent(), 0)
	b.forget()
	if err != nil {
		b.tell(ctx, err)
	}
}

// swap is a compare-and-swap that overwrites what is no value at all: who may change
// what was there may change what cannot be read.
func (b *Breaker) swap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	ok, err := b.compareAndSwap(ctx, key, old, new, ttl)
	if !isCorrupt(err) {
		return ok, err
	}
	b.tell(ctx, err)
	if new.Present {
		err = b.kv.Set(ctx, key, new.Value, ttl)
	} else {
		err = b.kv.Delete(ctx, key)
	}
	return err == nil, err
}

func (b *Breaker) compareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (ok bool, err error) {
	err = b.inTurn(ctx, func() error {
		ok, err = cache.CompareAndSwap(ctx, b.kv, key, old, new, ttl)
		return err
	})
	return ok, err
}

// inTurn has the callers of this breaker take turns to change things if the cache
// cannot swap: what one writes must not fall between another's comparing and swapping.
func (b *Breaker) inTurn(ctx context.Context, change func() error) error {
	if b.turn != nil {
		select {
		case b.turn <- struct{}{}:
			defer func() { <-b.turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return change()
}

func isCorrupt(err error) bool {
	_, corrupt := errors.AsType[*cache.CorruptError](err)
	return corrupt || errors.Is(err, cache.ErrNotInteger) || errors.Is(err, cache.ErrOverflow)
}
