package ratelimit

import (
	"slices"
	"sync"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A queue holds the callers of one limiter who wait, in a line for each series, cost
// and clock: slots of equal weight are exchangeable, others are not. Its zero value is
// empty.
type queue struct {
	mu     sync.Mutex
	lines  map[lineID]*line
	closed bool
}

type lineID struct {
	series string
	cost   int
	clock  uint32 // of the slots: those of two clocks have no common order
}

// A line has as many waiters as slots. They are apart, so that who leaves from the
// middle takes the last slot along, and everyone behind has moved up without being
// touched. Only the waiter at the head has a timer; it lets in everyone who is due,
// and wakes the next head.
type line struct {
	head, tail *waiter
	slots      []slot // in order, and so are their due times
}

type slot struct {
	cache.Slot
	due time.Time // by the clock of this process
}

type waiter struct {
	prev, next *waiter
	wake       chan struct{} // holds a token when there is something to look at
	verdict    verdict
	slot       cache.Slot // what it has in its hands, once it is out of the line
}

// A verdict is what look tells a waiter.
type verdict int

const (
	queued    verdict = iota // others come first
	next                     // is at the head, and has to sleep
	served                   // may go ahead
	dismissed                // the queue was closed
)

// join puts a caller with its slot in line. It returns nil if the queue is closed.
func (q *queue) join(id lineID, s cache.Slot, due time.Time) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	if q.lines == nil {
		q.lines = map[lineID]*line{}
	}
	ln := q.lines[id]
	if ln == nil {
		ln = &line{}
		q.lines[id] = ln
	}
	w := &waiter{wake: make(chan struct{}, 1)}
	ln.enqueue(w, ln.put(slot{s, due}))
	return w
}

// look tells a waiter where it stands and, at the head, how long it has to sleep.
func (q *queue) look(id lineID, w *waiter) (verdict, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.verdict != queued {
		return w.verdict, 0
	}
	ln := q.lines[id]
	if ln.head != w {
		return queued, 0
	}
	now := time.Now()
	for ln.head != nil && !ln.slots[0].due.After(now) {
		ln.dismiss(ln.head, ln.shift(), served)
	}
	if w.verdict == queued {
		return next, ln.slots[0].due.Sub(now)
	}
	q.settle(id, ln, w)
	return served, 0
}

// leave takes out a waiter that has given up, whatever its verdict, and returns the
// slot that nobody needs any more.
func (q *queue) leave(id lineID, w *waiter) cache.Slot {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.lines[id]
	if w.verdict != queued {
		if ln == nil {
			return w.slot
		}
		// It was let in as it gave up: another may go in its place.
		ln.put(slot{w.slot, time.Now()})
		return ln.pop()
	}
	first := ln.head
	ln.remove(w)
	last := ln.pop()
	q.settle(id, ln, first)
	return last
}

// close sends everybody away, each with one of the slots.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, ln := range q.lines {
		for ln.head != nil {
			ln.dismiss(ln.head, ln.shift(), dismissed)
		}
	}
	q.lines = nil
}

// settle ends the taking out of waiters: it removes an empty line, and wakes a head
// that has not been it before.
func (q *queue) settle(id lineID, ln *line, before *waiter) {
	switch ln.head {
	case nil:
		delete(q.lines, id)
	case before:
	default:
		ln.head.rouse()
	}
}

// put inserts a slot in its place, which is nearly always the last, and returns how
// many are behind it. An answer that took long makes its slot seem late; but no slot is
// later than the one behind it.
func (ln *line) put(s slot) (behind int) {
	i := len(ln.slots)
	for i > 0 && ln.slots[i-1].Compare(s.Slot) > 0 {
		i--
	}
	if i < len(ln.slots) && ln.slots[i].due.Before(s.due) {
		s.due = ln.slots[i].due
	}
	behind = len(ln.slots) - i
	ln.slots = slices.Insert(ln.slots, i, s)
	for ; i > 0 && ln.slots[i-1].due.After(s.due); i-- {
		ln.slots[i-1].due = s.due
	}
	if i == 0 && ln.head != nil {
		ln.head.rouse() // its slot is another, or due earlier
	}
	return behind
}

// shift takes out the first slot.
func (ln *line) shift() cache.Slot {
	s := ln.slots[0].Slot
	ln.slots = ln.slots[1:]
	return s
}

// pop takes out the last slot.
func (ln *line) pop() cache.Slot {
	end := len(ln.slots) - 1
	s := ln.slots[end].Slot
	ln.slots = ln.slots[:end]
	return s
}

// enqueue inserts a waiter with so many behind it. Its place is that of its slot, and
// not to be told from the slots that others have come with: those have moved up.
func (ln *line) enqueue(w *waiter, behind int) {
	w.prev = ln.tail
	for range behind {
		w.prev = w.prev.prev
	}
	if w.prev == nil {
		w.next, ln.head = ln.head, w
	} else {
		w.next, w.prev.next = w.prev.next, w
	}
	if w.next == nil {
		ln.tail = w
	} else {
		w.next.prev = w
	}
}

// remove takes a waiter out, from anywhere.
func (ln *line) remove(w *waiter) {
	if w.prev == nil {
		ln.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// dismiss takes a waiter out with a verdict and a slot.
func (ln *line) dismiss(w *waiter, s cache.Slot, v verdict) {
	ln.remove(w)
	w.verdict, w.slot = v, s
	w.rouse()
}

// rouse makes a waiter look where it stands.
func (w *waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
