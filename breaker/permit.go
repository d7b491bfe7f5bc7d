package breaker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// A Permit lets one call through. It is settled once, by Done or Settle, when the
// call is over; settling it again changes nothing. A probe's permit that is never
// settled holds its place until the lease ends. Make one with [Breaker.Allow].
type Permit struct {
	b       *Breaker
	grant   grant
	settled atomic.Bool
}

// Done settles the permit with the call's error, of which [Config.Classify] says
// what it is. The context is the call's; the report is made even if it is done.
func (p *Permit) Done(ctx context.Context, err error) {
	if p.settled.Swap(true) {
		return
	}
	outcome := Failure // if the classifier panics
	defer func() { p.b.report(ctx, p.grant, outcome) }()
	outcome = p.b.cfg.Classify(ctx, err)
}

// Settle settles the permit with an outcome. The report is made even if the context is
// done.
func (p *Permit) Settle(ctx context.Context, o Outcome) {
	if !p.settled.Swap(true) {
		p.b.report(ctx, p.grant, o)
	}
}

// Renew begins a probe's lease anew, so that a call that takes longer than
// [Config.ProbeLease] still counts. It returns [ErrLeaseLost] if the place is no
// longer this permit's, also because the permit was settled, or the store's error,
// after which it may be tried again. For a call that is not a probe it does nothing.
func (p *Permit) Renew(ctx context.Context) error {
	if p.grant.probe == nil {
		return nil
	}
	if p.settled.Load() {
		return ErrLeaseLost
	}
	if err := p.b.usable(ctx); err != nil {
		return err
	}
	sctx, cancel := p.b.bounded(ctx)
	defer cancel()
	held, err := p.b.renew(sctx, p.grant.probe)
	switch {
	case err != nil:
		return p.b.failed(ctx, err)
	case !held:
		return ErrLeaseLost
	default:
		return nil
	}
}

// keep renews a probe's lease until the function that it returns is called.
func (b *Breaker) keep(ctx context.Context, p *probe) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(b.cfg.ProbeLease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			sctx, cancel := b.bounded(ctx)
			held, err := b.renew(sctx, p)
			cancel()
			switch {
			case resilience.ContextError(ctx) != nil:
				return
			case err != nil:
				b.tell(ctx, err)
			case !held:
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
