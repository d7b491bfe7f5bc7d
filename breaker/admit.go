package breaker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
)

// A grant is what a call was let through on. The zero grant is that of a call that
// was let through because the state could not be had, and nothing is reported for it.
type grant struct {
	phase *phase
	probe *probe // nil unless it has a probe's place
}

// A probe holds a place.
type probe struct {
	key    string
	holder cache.Entry
}

// admit decides whether a call may pass.
func (b *Breaker) admit(ctx context.Context) (grant, error) {
	if ctx.Err() != nil {
		return grant{}, resilience.ContextError(ctx)
	}
	v := b.view.Load()
	switch {
	case v.free:
		return grant{phase: v.phase}, nil
	case b.closed.Load():
		return grant{}, &closedError{b.cfg.Name}
	case b.owned != nil && v.waiting:
		if wait := v.until - b.now(); wait > 0 {
			return grant{}, b.stillOpen(wait)
		}
	}
	return b.admitByLook(ctx)
}

// stillOpen refuses a call of a circuit that is open for wait. A herd that is refused
// shares an error for a millisecond, since making one for each takes as long as all
// the rest.
func (b *Breaker) stillOpen(wait time.Duration) error {
	if e := b.refused.Load(); e != nil && e.Wait >= wait && e.Wait-wait < time.Millisecond {
		return e
	}
	e := &OpenError{Name: b.cfg.Name, State: Open, Wait: wait}
	b.refused.Store(e)
	return e
}

// mostRounds is how often a caller looks who found that things had changed meanwhile.
// After that there are others enough, or the cache contradicts itself.
const mostRounds = 3

func (b *Breaker) admitByLook(ctx context.Context) (grant, error) {
	v, err := b.look(ctx)
	if err == nil {
		v = b.install(ctx, v)
	}
	for round := 1; err == nil; round++ {
		switch v.status() {
		case Closed:
			return grant{phase: v.phase}, nil
		case Open:
			return grant{}, b.refusal(v)
		}
		var g grant
		if g, v, err = b.takePlace(ctx, v); err == nil && g.probe != nil {
			return g, nil
		} else if err == nil && v.status() == HalfOpen && (v.full() || round == mostRounds) {
			return grant{}, b.refusal(v)
		}
	}
	if ctx.Err() != nil {
		return grant{}, resilience.ContextError(ctx)
	}
	b.tell(ctx, err)
	return grant{}, nil
}

func (b *Breaker) refusal(v *view) error {
	return &OpenError{Name: b.cfg.Name, State: v.status(), Wait: b.wait(v)}
}

// takePlace takes a place for a probe in the half-open circuit that v shows, if one
// is free. Without one it returns what has become of the circuit.
func (b *Breaker) takePlace(caller context.Context, v *view) (grant, *view, error) {
	if v.full() {
		return grant{}, v, nil
	}
	tries := 0
	for _, i := range rand.Perm(len(v.holders)) { // so that those who come together do not all want the same one
		if v.taken(i) {
			continue
		}
		if g, now, err := b.tryPlace(caller, v, i); err != nil || now != nil {
			return g, now, err
		}
		if tries++; tries == mostRounds {
			break // rather look again than go through all of them
		}
	}
	ctx, cancel := b.bounded(caller)
	defer cancel()
	now, err := b.refresh(ctx, v.phase)
	return grant{}, now, err
}

// tryPlace takes a place if it is free, and returns what the circuit is then. If it is
// not, there is no view.
func (b *Breaker) tryPlace(caller context.Context, v *view, i int) (grant, *view, error) {
	ctx, cancel := b.bounded(caller)
	defer cancel()
	p := &probe{key: v.places()[i], holder: cache.Present(newID())}
	ok, err := b.swap(ctx, p.key, v.holders[i], p.holder, b.cfg.ProbeLease)
	if err == nil && !ok {
		return grant{}, nil, nil
	}
	var now *view
	if err == nil {
		// A probe that has just ended leaves its place after it has decided the era. So
		// who has a place, and sees that the era goes on, has it by right.
		if now, err = b.refresh(ctx, v.phase); err == nil && now.same(v.phase) {
			return grant{phase: v.phase, probe: p}, now, nil
		}
	}
	b.leave(caller, p) // perhaps it was taken; and if the era is over, the outage may not be
	return grant{}, now, err
}

// leave gives back a place that perhaps was taken. A caller who has gone does not wait
// for that.
func (b *Breaker) leave(caller context.Context, p *probe) {
	if caller.Err() != nil && !b.local {
		go b.release(caller, p)
		return
	}
	b.release(caller, p)
}
