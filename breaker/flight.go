package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// A flight is a look at the store that all share who ask at the same time. It goes on
// without the one who began it, as long as anybody waits for it.
//
// It is not a singleflight.Group of x/sync, which would end with the context of
// whoever came first, or not at all.
type flight struct {
	done    chan struct{} // closed when view and err are there; nil as long as nobody waits for that
	view    *view
	err     error
	waiters int
	cancel  context.CancelFunc // nil for a flight that is over soon by itself
}

var (
	errNoReturn = errors.New("the cache did not return")
	errNoAnswer = fmt.Errorf("no answer of the cache within %v: %w", patience, context.DeadlineExceeded)
)

// readTogether is read, shared with all who ask at the same time.
//
// A caller who cannot leave before the answer is there looks in his own goroutine, since
// to wake another is a good part of a round trip to a store on the same host.
func (b *Breaker) readTogether(ctx context.Context) (*view, error) {
	f, fctx := b.join(ctx)
	switch {
	case fctx == nil: // it is under way
	case ctx.Done() == nil:
		b.fly(fctx, f)
		return f.view, f.err
	default:
		go func() {
			defer func() { _ = recover() }() // which in a goroutine of nobody's would end the process
			b.fly(fctx, f)
		}()
	}

	timer := time.NewTimer(patience) // also for one who waits for himself, in a hook of the cache
	defer timer.Stop()
	select {
	case <-f.done:
		return f.view, f.err
	case <-ctx.Done():
		b.abandon(f, false)
		return nil, resilience.ContextError(ctx)
	case <-timer.C:
		b.abandon(f, true)
		return nil, errNoAnswer
	}
}

// join returns the flight that is under way or, with the context that it is to have, one
// that the caller has to see to.
func (b *Breaker) join(ctx context.Context) (f *flight, begin context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f = b.flight
	own := f == nil && ctx.Done() == nil // to be seen to by the caller himself
	if f == nil {
		f, begin = new(flight), ctx
		if !own {
			begin = context.WithoutCancel(ctx)
		}
		if !b.quick {
			begin, f.cancel = b.bounded(begin)
		}
		b.flight = f
	}
	if f.done == nil && !own {
		f.done = make(chan struct{})
	}
	f.waiters++
	return f, begin
}

// abandon gives up waiting for a flight. With the last one who does it ends; one that is
// overdue nobody is to join.
func (b *Breaker) abandon(f *flight, overdue bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.waiters--
	if f.waiters == 0 && f.cancel != nil {
		f.cancel()
		overdue = true
	}
	if overdue {
		b.drop(f)
	}
}

func (b *Breaker) fly(ctx context.Context, f *flight) {
	f.err = errNoReturn // if the cache exits the goroutine
	defer func() {
		p := recover()
		if p != nil {
			f.err = fmt.Errorf("the cache panicked: %v", p)
		}
		b.mu.Lock()
		b.drop(f) // and nobody will join it any more
		b.mu.Unlock()
		if f.done != nil {
			close(f.done)
		}
		if f.cancel != nil {
			f.cancel()
		}
		if p != nil {
			panic(p)
		}
	}()
	f.view, f.err = b.read(ctx, b.view.Load().phase)
}

// drop has whoever asks next begin another, under the lock.
func (b *Breaker) drop(f *flight) {
	if b.flight == f {
		b.flight = nil
	}
}
