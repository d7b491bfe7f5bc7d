package cache

import (
	"context"
	"time"
)

// An Acquirer decides about a slot of a sliding window and records it in one
// atomic step. It is an optional capability of a [HitWindow], and what makes a
// limiter exact: over the plain methods every concurrent caller can see the same
// last free slot, and an instant that was read before the step can be older than
// one already recorded. Use [AcquirerOf] to have one for any cache.
//
// The instant is taken inside the step, by the one clock of the store. Questions
// and answers are durations, so no instant is ever compared with another host's
// clock.
//
// A series is used through this interface or through the plain methods of
// HitWindow, not through both; Delete clears either kind.
type Acquirer interface {
	// Acquire takes the next slot to come free at key for a hit of the given weight,
	// if it comes free within the longest wait, and otherwise records nothing.
	//
	// With the recorded hits in order of their instants, those of the future included,
	// the slot is at the first instant, not before now and not before the last hit, at
	// which the weights of the hits less than one window old leave room for this one.
	// A hit at t has left the window at t + window exactly. So no span of one window
	// ever holds more than the limit, and slots are given in order of arrival.
	Acquire(ctx context.Context, key string, r Request) (Grant, error)

	// GiveBack removes what a Grant's slot recorded, as if it had never been; it
	// moves no other hit. A slot that is no longer there is no error.
	GiveBack(ctx context.Context, key string, s Slot) error

	// Used returns the weight of the hits at key that are less than one window old,
	// those of the future included. It records and discards nothing. A window below a
	// microsecond is an [*ArgumentError], and others are rounded up to a whole one.
	Used(ctx context.Context, key string, window time.Duration) (int64, error)
}

// A Request says what is asked of [Acquirer.Acquire].
type Request struct {
	Limit   int64         // the most that any span of Window may hold; at least 1
	Window  time.Duration // the width of the window; at least a microsecond, and rounded up to a whole one
	Weight  int64         // what this hit counts; at least 1, at most Limit
	MaxWait time.Duration // the longest acceptable wait; zero for a slot now or none
}

// Validate returns an [*ArgumentError] for the first field that is out of its
// range, and nil if there is none. Every implementation of [Acquirer.Acquire]
// begins with it.
func (r Request) Validate() error {
	bad := func(field string, value any, want string) error {
		return &ArgumentError{Op: "acquire", Field: field, Value: value, Want: want}
	}
	switch {
	case r.Limit < 1:
		return bad("Limit", r.Limit, "at least 1")
	case r.Window < time.Microsecond:
		return bad("Window", r.Window, "at least 1µs")
	case r.Weight < 1:
		return bad("Weight", r.Weight, "at least 1")
	case r.Weight > r.Limit:
		return bad("Weight", r.Weight, "at most Limit")
	case r.MaxWait < 0:
		return bad("MaxWait", r.MaxWait, "zero or more")
	}
	return nil
}

// A Grant is the answer to a [Request].
type Grant struct {
	// OK tells whether the slot was taken.
	OK bool
	// Wait is how long after the step the slot is: zero for now. If OK is false, it is
	// how long from now a slot would be free for this weight if nobody else came, and
	// always above zero.
	Wait time.Duration
	// Slot is what was recorded, if OK.
	Slot Slot
}

// A Slot names one recorded hit of a series. Its zero value names none.
type Slot struct {
	// At is the slot's instant in microseconds of the store's clock. It orders the
	// slots of one series and means nothing else.
	At int64
	// ID tells apart the slots of one instant and, of slots of one instant that one
	// process took one after the other, is the greater in the later.
	ID uint64
	// Clock tells apart the clocks of a cache that has several: slots of one clock can
	// be compared, others cannot. It is zero in a cache that has one.
	Clock uint32
}

// Compare orders the slots of one series and one clock by instant, then by ID: -1 if
// s comes before t, +1 if after, 0 if they are the same.
func (s Slot) Compare(t Slot) int {
	switch {
	case s.At < t.At:
		return -1
	case s.At > t.At:
		return +1
	case s.ID < t.ID:
		return -1
	case s.ID > t.ID:
		return +1
	}
	return 0
}
