package retry

import (
	"fmt"
	"math"
	"time"
)

// A Backoff says how long to wait after a failed attempt.
//
// Delay is a pure function: attempt is the number of the attempt that has just
// failed, counted from 1; previous is what Delay returned after the attempt before
// it, and 0 after the first; random is uniform in [0, 1). There is no state to
// share, so one Backoff serves any number of calls at once, and no call sees
// another's progress. A negative result counts as zero.
//
// The ones of this package are values that can be compared and copied. [New]
// checks their fields.
type Backoff interface {
	Delay(attempt int, previous time.Duration, random float64) time.Duration
}

var (
	_ Backoff = Constant(0)
	_ Backoff = Exponential{}
	_ Backoff = FullJitter{}
	_ Backoff = EqualJitter{}
	_ Backoff = Decorrelated{}
)

// DefaultBackoff returns what a nil [Config.Backoff] stands for: 1 s, doubling to
// 60 s, each delay spread by 10 % to either side and none above 60 s.
func DefaultBackoff() Exponential {
	return Exponential{Base: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.1}
}

// Constant waits the same time after every attempt. Constant(0) does not wait at
// all. Calls that failed together come back together; where many may, take one of
// the others.
type Constant time.Duration

// Delay implements [Backoff].
func (c Constant) Delay(int, time.Duration, float64) time.Duration {
	return time.Duration(c)
}

func (c Constant) check() error {
	return notNegative("Constant", time.Duration(c))
}

// Exponential waits Base after the first attempt and Factor times longer after
// each further one, up to Max, with every delay spread evenly over Jitter of
// itself to either side.
//
// Max bounds the delay as it is waited, after the spread. For calls that have
// reached it the spread is cut off above, not pushed together: with a Jitter of
// 0.1 they wait between 0.9 Max and Max. Nothing overflows, whatever the attempt.
type Exponential struct {
	// Base is the delay after the first attempt, before the spread. It must be above
	// zero: Constant(0) is no delay, and a forgotten Base is not.
	Base time.Duration

	// Max is the longest delay, at least Base. Zero means no maximum but
	// that of time.Duration.
	Max time.Duration

	// Factor is what a delay is multiplied with to get the next, at least 1. Zero
	// means 2.
	Factor float64

	// Jitter is the fraction of a delay it may be shorter or longer by, from 0 to
	// 1. Zero means no spread.
	Jitter float64
}

// Delay implements [Backoff].
func (e Exponential) Delay(attempt int, _ time.Duration, random float64) time.Duration {
	factor := e.Factor
	if factor == 0 {
		factor = 2
	}
	d := grow(e.Base, e.Max, factor, attempt)
	reach := min(scale(d, e.Jitter), d)
	high := ceiling(e.Max)
	if d < high-reach {
		high = d + reach
	}
	return between(d-reach, high, random)
}

func (e Exponential) check() error {
	if err := checkRange("Exponential", e.Base, e.Max); err != nil {
		return err
	}
	if e.Factor != 0 && !(e.Factor >= 1 && e.Factor <= math.MaxFloat64) {
		return fmt.Errorf("Exponential.Factor is %v, want 0 or a finite number from 1 up", e.Factor)
	}
	if !(e.Jitter >= 0 && e.Jitter <= 1) {
		return fmt.Errorf("Exponential.Jitter is %v, want a number from 0 to 1", e.Jitter)
	}
	return nil
}

// FullJitter waits anything from 0 to a bound that is Base after the first attempt
// and doubles up to Max. It spreads the most and waits the least; a delay may be
// next to nothing.
//
// The three jitters are those of Marc Brooker, "Exponential Backoff And Jitter",
// AWS Architecture Blog, 2015, which compares them.
type FullJitter struct {
	// Base is the longest delay after the first attempt. It must be above zero.
	Base time.Duration

	// Max is the longest delay, at least Base. Zero means no maximum but
	// that of time.Duration.
	Max time.Duration
}

// Delay implements [Backoff].
func (f FullJitter) Delay(attempt int, _ time.Duration, random float64) time.Duration {
	return between(0, grow(f.Base, f.Max, 2, attempt), random)
}

func (f FullJitter) check() error { return checkRange("FullJitter", f.Base, f.Max) }

// EqualJitter waits anything from half of a bound to the whole of it; the bound is
// Base after the first attempt and doubles up to Max. Unlike [FullJitter] it
// always waits for at least half of the bound.
type EqualJitter struct {
	// Base is the longest delay after the first attempt. It must be above zero.
	Base time.Duration

	// Max is the longest delay, at least Base. Zero means no maximum but
	// that of time.Duration.
	Max time.Duration
}

// Delay implements [Backoff].
func (e EqualJitter) Delay(attempt int, _ time.Duration, random float64) time.Duration {
	d := grow(e.Base, e.Max, 2, attempt)
	return between(d/2, d, random)
}

func (e EqualJitter) check() error { return checkRange("EqualJitter", e.Base, e.Max) }

// Decorrelated waits anything from Base to three times the previous delay, or to
// Max if that is less; after the first attempt, to three times Base. Each call
// takes a path of its own, and never waits less than Base.
//
// The article that [FullJitter] names draws first and caps then, which makes two
// calls in three that have reached the maximum wait exactly that long. Here the
// range is capped and not the draw, so that they stay apart.
type Decorrelated struct {
	// Base is the shortest delay. It must be above zero.
	Base time.Duration

	// Max is the longest delay, at least Base. Zero means no maximum but
	// that of time.Duration.
	Max time.Duration
}

// Delay implements [Backoff].
func (d Decorrelated) Delay(_ int, previous time.Duration, random float64) time.Duration {
	return between(d.Base, min(scale(max(d.Base, previous), 3), ceiling(d.Max)), random)
}

func (d Decorrelated) check() error { return checkRange("Decorrelated", d.Base, d.Max) }

// grow returns base times factor to the power of attempt-1, but at most limit.
// Floating point goes to infinity where integers would wrap.
func grow(base, limit time.Duration, factor float64, attempt int) time.Duration {
	if base <= 0 {
		return 0
	}
	return min(scale(base, math.Pow(factor, float64(attempt-1))), ceiling(limit))
}

// scale returns d times f, or the longest duration if that is less.
func scale(d time.Duration, f float64) time.Duration {
	if x := float64(d) * f; x < math.MaxInt64 {
		return time.Duration(x)
	}
	return math.MaxInt64
}

// between returns the duration that lies random of the way from low to high, and
// never one beyond them: the rounding of a range above 2^53 ns may come out larger
// than the range.
func between(low, high time.Duration, random float64) time.Duration {
	return low + max(0, min(scale(high-low, random), high-low))
}

func ceiling(limit time.Duration) time.Duration {
	if limit <= 0 {
		return math.MaxInt64
	}
	return limit
}

func checkRange(family string, base, limit time.Duration) error {
	if base <= 0 {
		return fmt.Errorf("%s.Base is %v, want above 0 (Constant(0) is no delay)", family, base)
	}
	if err := notNegative(family+".Max", limit); err != nil {
		return err
	}
	if limit > 0 && limit < base {
		return fmt.Errorf("%s.Max is %v, want 0 or at least Base, which is %v", family, limit, base)
	}
	return nil
}

func notNegative(field string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is %v, want 0 or more", field, d)
	}
	return nil
}
