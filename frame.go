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
	frames   sync.Pool // of *frame[T]
}

// A frame is what one run of a chain needs: the policies composed into one
// function that ends in the call, and room for the call's value. Composing costs a
// closure per policy, so frames are pooled, and the call is put in for each run.
type frame[T any] struct {
	runs  runs
	head  func(context.Context) error // the outermost policy
	call  Call[T]
	value T
}

func newChain[T any](policies []Policy) *chain[T] {
	c := &chain[T]{policies: policies}
	c.frames.New = func() any {
		f := new(frame[T])
		f.head = compose(c.policies, f.invoke)
		return f
	}
	return c
}

func (c *chain[T]) run(ctx context.Context, call Call[T]) (T, error) {
	var zero T
	f := c.frames.Get().(*frame[T])
	f.call = call
	before := f.runs.begun()
	// No defer: after a panic or a Goexit the frame is left to the collector.
	err := f.head(ctx)
	state := f.runs.since(before)
	value := zero
	if err == nil {
		switch state {
		case over:
			value = f.value
		case goingOn:
			err = errStillRunning
		}
	}
	if state.reusable(err) {
		f.call, f.value = nil, zero
		c.frames.Put(f)
	}
	return value, err
}

func (f *frame[T]) invoke(ctx context.Context) error {
	f.runs.begin()
	defer f.runs.end() // also of a run that panics, for a policy may recover from that
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
	frames   sync.Pool // of *joinedFrame
}

type joinedFrame struct {
	runs runs
	head func(context.Context) error
	op   func(context.Context) error
}

var _ Policy = (*joined)(nil)

func newJoined(policies []Policy) *joined {
	j := &joined{policies: policies}
	j.frames.New = func() any {
		f := new(joinedFrame)
		f.head = compose(j.policies, f.invoke)
		return f
	}
	return j
}

// Do implements [Policy].
func (j *joined) Do(ctx context.Context, op func(context.Context) error) error {
	f := j.frames.Get().(*joinedFrame)
	f.op = op
	before := f.runs.begun()
	err := f.head(ctx)
	state := f.runs.since(before)
	if err == nil && state == goingOn {
		err = errStillRunning
	}
	if state.reusable(err) {
		f.op = nil
		j.frames.Put(f)
	}
	return err
}

func (f *joinedFrame) invoke(ctx context.Context) error {
	f.runs.begin()
	defer f.runs.end()
	return f.op(ctx)
}

// compose nests the policies around op, the first one outermost.
func compose(policies []Policy, op func(context.Context) error) func(context.Context) error {
	next := op
	for i := len(policies) - 1; i >= 0; i-- {
		p, inner := policies[i], next
		next = func(ctx context.Context) error { return p.Do(ctx, inner) }
	}
	return next
}

// errStillRunning replaces a success that a policy claimed too early: its value is
// still being made.
var errStillRunning = errors.New("resilience: a policy reported success while its operation was still running")

// runs counts the runs of a frame's operation: begun in the upper half, still going
// on in the lower.
//
// It is what makes pooling safe. A [Policy] runs its operation in sequence and
// never after it has returned, but one that breaks this rule, a timeout that walks
// away from a call that ignores its context, say, must hurt nobody except its own
// caller. So a frame in which anything may still be going on is never used again.
// The count is not reset between uses, because a store costs as much as an addition:
// a use compares with what it found.
type runs struct{ n atomic.Uint64 }

func (r *runs) begin()        { r.n.Add(1<<32 | 1) }
func (r *runs) end()          { r.n.Add(^uint64(0)) }
func (r *runs) begun() uint32 { return uint32(r.n.Load() >> 32) }

// since tells what has become of the runs of a use that found the count before.
func (r *runs) since(before uint32) runState {
	switch n := r.n.Load(); {
	case uint32(n) != 0:
		return goingOn
	case uint32(n>>32) == before:
		return notBegun
	default:
		return over
	}
}

type runState int

const (
	notBegun runState = iota
	goingOn
	over
)

// reusable reports whether a frame may serve another caller after a use that ended
// with err. One whose operation has not begun may be in the hands of a goroutine
// that is about to begin it, unless the policy says that there was no call.
func (s runState) reusable(err error) bool {
	return s == over || s == notBegun && errors.Is(err, ErrRejected)
}
