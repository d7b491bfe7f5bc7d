package resilience

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A chain is policies compiled for calls that return a T. T is erased here, once,
// and not once per policy: between the two ends of a chain there are only
// func(ctx) error.
type chain[T any] struct {
	policies []Policy
	watched  bool
	frames   sync.Pool // of *frame[T]
}

// A frame is what one run of a chain needs: the policies composed into one
// function that ends in the call, and room for the call's value. Composing costs a
// closure per policy, so frames are pooled, and the call is put in for each run.
type frame[T any] struct {
	head  head
	call  Call[T]
	value T
}

func newChain[T any](policies []Policy) *chain[T] {
	c := &chain[T]{policies: policies, watched: !allSequential(policies)}
	c.frames.New = func() any {
		f := new(frame[T])
		f.head.compose(c.policies, f.invoke, c.watched)
		return f
	}
	return c
}

func (c *chain[T]) run(ctx context.Context, call Call[T]) (T, error) {
	var value, zero T
	f := c.frames.Get().(*frame[T])
	f.call = call
	// No defer: after a panic or a Goexit the frame is left to the collector.
	settled, err := f.head.run(ctx)
	if settled {
		if err == nil {
			value = f.value
		}
		f.call, f.value = nil, zero
		c.frames.Put(f)
	}
	return value, err
}

func (f *frame[T]) invoke(ctx context.Context) error {
	value, err := f.call(ctx)
	if err != nil {
		var zero T
		value = zero
	}
	f.value = value
	return err
}

// joined is a chain as a policy, for calls of any type.
type joined struct {
	policies []Policy
	watched  bool
	frames   sync.Pool // of *joinedFrame
}

type joinedFrame struct {
	head head
	op   func(context.Context) error
}

var _ Policy = (*joined)(nil)

func newJoined(policies []Policy) *joined {
	j := &joined{policies: policies, watched: !allSequential(policies)}
	j.frames.New = func() any {
		f := new(joinedFrame)
		f.head.compose(j.policies, f.invoke, j.watched)
		return f
	}
	return j
}

// Do implements [Policy].
func (j *joined) Do(ctx context.Context, op func(context.Context) error) error {
	f := j.frames.Get().(*joinedFrame)
	f.op = op
	settled, err := f.head.run(ctx)
	if settled {
		f.op = nil
		j.frames.Put(f)
	}
	return err
}

func (f *joinedFrame) invoke(ctx context.Context) error { return f.op(ctx) }

// A head is where a run enters a frame: the outermost policy.
//
// It is also what makes pooling safe. A [Policy] runs its operation in sequence and
// never after it has returned, but one that breaks this rule, a timeout that walks
// away from a call that ignores its context, say, must hurt nobody except its own
// caller. So a frame in which anything may still be going on is never used again. To
// know that, the runs of its operation are counted, unless all policies vouch for being
// [Sequential].
type head struct {
	do      func(context.Context) error
	watched bool
	// The runs that have begun in the upper half, those that go on in the lower. It is not
	// reset between uses, because a store costs as much as an addition: a use compares
	// with what it found.
	runs atomic.Uint64
}

// compose nests the policies around op, the first one outermost.
func (h *head) compose(policies []Policy, op func(context.Context) error, watched bool) {
	h.do, h.watched = op, watched
	if watched {
		h.do = func(ctx context.Context) error {
			h.runs.Add(1<<32 | 1)
			defer h.runs.Add(^uint64(0)) // also of a run that panics, for a policy may recover from that
			return op(ctx)
		}
	}
	for i := len(policies) - 1; i >= 0; i-- {
		p, inner := policies[i], h.do
		h.do = func(ctx context.Context) error { return p.Do(ctx, inner) }
	}
}

// run runs the policies, and reports whether the frame is settled: whether nothing goes on
// in it any more, and nothing is about to begin. A run that follows others, and begins after
// the policy has returned, is the one thing that only a frame for each call could tell.
func (h *head) run(ctx context.Context) (settled bool, err error) {
	if !h.watched {
		return true, h.do(ctx)
	}
	before := h.runs.Load()
	err = h.do(ctx)
	switch after := h.runs.Load(); {
	case uint32(after) != 0:
		if err == nil {
			err = errStillRunning
		}
		return false, err
	case after == before:
		// One whose operation has not begun may be in the hands of a goroutine that is about
		// to begin it, unless the policy says that there was no call.
		return errors.Is(err, ErrRejected), err
	default:
		return true, err
	}
}

// errStillRunning replaces a success that a policy claimed too early: its value is
// still being made.
var errStillRunning = errors.New("resilience: a policy reported success while its operation was still running")
