package breaker

import (
	"context"
	"fmt"
	"sync"
)

// A Transition is a change of a circuit's state as one breaker came to see it.
type Transition struct {
	Name     string // the circuit's name
	From, To State  // never the same
}

// changes are the transitions that the observer has yet to be told of. It hears of
// them in their order and of one at a time, by whoever is there first and under no
// lock, so that it may call the breaker and so cause further ones.
type changes struct {
	queue []change
	busy  bool // somebody is telling
}

type change struct {
	ctx context.Context
	t   Transition
}

// add needs the lock that is given to deliver.
func (c *changes) add(ctx context.Context, t Transition) {
	c.queue = append(c.queue, change{ctx, t})
}

func (c *changes) deliver(mu *sync.Mutex, observer func(context.Context, Transition)) {
	if observer == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if c.busy {
		return
	}
	c.busy = true
	defer func() { c.busy = false }() // also if the observer panics
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		func() {
			mu.Unlock()
			defer mu.Lock()
			observer(next.ctx, next.t)
		}()
	}
	c.queue = nil
}

// tell reports what is wrong with the store.
func (b *Breaker) tell(ctx context.Context, err error) {
	if b.cfg.OnStoreError != nil {
		b.cfg.OnStoreError(ctx, b.wrap(err))
	}
}

// wrap adds to a store's error whose circuit it was about.
func (b *Breaker) wrap(err error) error {
	return fmt.Errorf("breaker: circuit %q: %w", b.cfg.Name, err)
}
