// Package retry repeats a call that the other side may answer differently next
// time.
//
// What is worth another attempt only the caller knows, so a predicate is the first
// argument of [New], and this package names no error type of anyone's. [On],
// [OnType], [Any], [All] and [Not] make predicates:
//
//	again, err := retry.New(retry.OnType[*TransientError](), retry.Config{})
//	...
//	ask := resilience.Wrap(client.Ask, circuit, allowance.For(tenant), again)
//
// A repeated call may take effect twice: an attempt whose answer was lost is
// repeated like one that never arrived. Retry what is idempotent.
//
// # After a failed attempt
//
// These questions are asked in this order, and the first that is answered with yes
// ends the call:
//
//   - Is the error a refusal ([resilience.ErrRejected])? It goes through without
//     the predicate being asked, unless [Config.RetryRejected] is set. If an
//     earlier attempt was a real failure, that is reported, in an
//     [ExhaustedError] that carries the refusal.
//   - Is there an [ExhaustedError] in it, of another retry inside? That is final
//     and goes through: three attempts inside three are three, not nine.
//   - Does the predicate decline it? It goes through at once, as it is. But if it
//     only says that the caller's context is done, and an earlier attempt was a
//     real failure, an [ExhaustedError] reports both.
//   - Is the caller's context done? Have all attempts been made? Does the server
//     ask for a longer wait than is honoured? Would the wait reach or outlast the
//     context's deadline, or [Config.MaxElapsed]? An [ExhaustedError] says which.
//
// Whether the caller's time is up, only the caller's context says. An attempt that
// ran into a time limit of its own fails with [context.DeadlineExceeded] just the
// same, and it is for the predicate to say whether that is worth another attempt.
//
// # Waiting
//
// The wait is that of the [Backoff] or the one the server asked for
// ([resilience.RetryAfter]), whichever is longer. What the server asked for is not
// limited by the backoff's maximum and never shortened by its jitter. The end of
// the context ends a wait at once. A wait of zero takes no timer.
//
// # Errors
//
// An error that is not worth another attempt comes back as it is. One that is, but
// got none, comes back in an [ExhaustedError], also if a single attempt was all
// that was allowed. A context that is done on arrival gives
// [resilience.ContextError], and there was no attempt.
//
// # Zero values and concurrency
//
// The zero [Config] is usable. The zero [Policy] is not; New makes one. A Policy
// has no state of its own, and may be used by any number of goroutines at once.
// However often a call is repeated, it keeps one error.
//
// # Roads not taken
//
// The context is handed to the operation as it is, and never a derived one that
// ends with the attempt: a result that is read later, a response's body or a
// stream, would end with it. Limit an attempt with package timeout, inside the
// retry, and the whole with package timeout or a deadline, outside.
//
// The errors of all attempts are not collected: a call that is repeated until it
// is cancelled would grow without bound. [Config.OnRetry] sees each of them.
//
// There is no hook for giving up, because the error says all of it to whoever
// made the call. Values are not judged: a call whose value is not good enough
// should return an error that says why.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// Unlimited is a [Config.MaxAttempts] that never runs out. The context or
// MaxElapsed ends such a call, if it does not succeed.
const Unlimited = math.MaxInt

const (
	defaultAttempts = 4
	defaultMaxHint  = time.Minute
)

// A Config says how often, how fast and for how long a [Policy] repeats. Its zero
// value is four attempts with the default backoff.
type Config struct {
	// MaxAttempts is how many attempts a call may make in all, the first included.
	// Zero means 4, 1 means that nothing is repeated.
	MaxAttempts int

	// Backoff is the wait after each failed attempt. Nil means [DefaultBackoff];
	// Constant(0) is no wait.
	Backoff Backoff

	// MaxElapsed is how long after the call's beginning an attempt may begin: a
	// wait that would reach it is not begun. It never cuts an attempt short, so a
	// call may take longer than this by one attempt; package timeout, or a
	// deadline, limits a call to the instant. Zero means no limit.
	MaxElapsed time.Duration

	// MaxHint is the longest wait that is honoured if the server asks for it. A
	// call that is asked to wait any longer gives up at once, since a shorter wait
	// would only annoy. Zero means one minute.
	MaxHint time.Duration

	// RetryRejected has the predicate judge refusals too, which otherwise go
	// through unseen. The predicate still has to accept them, with
	// On(resilience.ErrRejected) for instance; what it declines ends the call as if
	// it had not been asked. When to come back, by a refusal's word, is waited for
	// like a server's.
	RetryRejected bool

	// Rand returns what the backoff spreads its delays by, uniform in [0, 1). It
	// must be safe for concurrent use. Nil means Float64 of math/rand/v2.
	Rand func() float64

	// OnRetry, if not nil, is told of each wait before it begins. It gets the
	// caller's context and runs in the caller's goroutine; what it takes is added
	// to the wait.
	OnRetry func(ctx context.Context, e Event)
}

// An Event is a failed attempt that another will follow, unless the context ends
// before that.
type Event struct {
	Attempt int           // the number of the attempt that failed, from 1
	Err     error         // what it failed with
	Delay   time.Duration // the wait until the next attempt
	Hint    time.Duration // the wait the server asked for, 0 if it did not
	Elapsed time.Duration // how long the call has taken so far
}

// A Policy repeats operations, as a [resilience.Policy]. Make one with [New].
type Policy struct {
	resilience.Sequential[*Policy]

	retryable     func(error) bool
	attempts      int
	backoff       Backoff
	maxElapsed    time.Duration // 0 for none
	maxHint       time.Duration
	retryRejected bool
	random        func() float64
	onRetry       func(context.Context, Event)
	timed         bool // somebody wants to know the elapsed time
}

var _ resilience.Policy = (*Policy)(nil)

// New returns a policy that repeats an operation for as long as retryable accepts
// its error and cfg allows. The predicate must be safe for concurrent use and is
// never given a nil error. New returns an error if retryable is nil, or a field of
// cfg or of its backoff is out of range.
func New(retryable func(error) bool, cfg Config) (*Policy, error) {
	if retryable == nil {
		return nil, errors.New("retry: retryable is nil, want a predicate such as On(err)")
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("retry: %w", err)
	}
	p := &Policy{
		retryable:     retryable,
		attempts:      cfg.MaxAttempts,
		backoff:       cfg.Backoff,
		maxElapsed:    cfg.MaxElapsed,
		maxHint:       cfg.MaxHint,
		retryRejected: cfg.RetryRejected,
		random:        cfg.Rand,
		onRetry:       cfg.OnRetry,
		timed:         cfg.MaxElapsed > 0 || cfg.OnRetry != nil,
	}
	if p.attempts == 0 {
		p.attempts = defaultAttempts
	}
	if p.backoff == nil {
		p.backoff = DefaultBackoff()
	}
	if p.maxHint == 0 {
		p.maxHint = defaultMaxHint
	}
	if p.random == nil {
		p.random = rand.Float64
	}
	return p, nil
}

func (c Config) check() error {
	if c.MaxAttempts < 0 {
		return fmt.Errorf("MaxAttempts is %d, want 0 or more (Unlimited for no limit)", c.MaxAttempts)
	}
	if err := notNegative("MaxElapsed", c.MaxElapsed); err != nil {
		return err
	}
	if err := notNegative("MaxHint", c.MaxHint); err != nil {
		return err
	}
	if v := reflect.ValueOf(c.Backoff); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("Backoff is a nil %T", c.Backoff)
	}
	if b, ok := c.Backoff.(interface{ check() error }); ok {
		if err := b.check(); err != nil {
			return fmt.Errorf("Backoff: %w", err)
		}
	}
	return nil
}

// Do implements [resilience.Policy]. It runs op until it succeeds, fails with an
// error that is not worth another attempt, or may not be run again; the package
// comment says in which order that is decided. It gives op the very ctx it got.
// A success at the first attempt costs no clock reading, unless MaxElapsed or
// OnRetry asks for one, and no allocation.
func (p *Policy) Do(ctx context.Context, op func(context.Context) error) error {
	if ctx.Err() != nil {
		return resilience.ContextError(ctx)
	}
	var start time.Time
	if p.timed {
		start = time.Now()
	}
	err := op(ctx)
	if err == nil {
		return nil
	}
	return p.repeat(ctx, op, call{start: start}, err)
}

// repeat goes on after a first attempt that failed with err.
func (p *Policy) repeat(ctx context.Context, op func(context.Context) error, c call, err error) error {
	for {
		delay, end := p.next(ctx, &c, err)
		if end != nil {
			return end
		}
		if !sleep(ctx, delay) {
			return c.cut(ctx)
		}
		if err = op(ctx); err == nil {
			return nil
		}
	}
}

// next takes down that an attempt failed with err. It returns the wait until the
// next one, or else the error to end the call with.
func (p *Policy) next(ctx context.Context, c *call, err error) (time.Duration, error) {
	c.attempts++
	refused := errors.Is(err, resilience.ErrRejected)
	_, final := errors.AsType[*ExhaustedError](err)
	accepted := !final && (!refused || p.retryRejected) && p.retryable(err)
	// An echo only says that the caller went away, where an earlier attempt had
	// something to say. The predicate may take its time, so this comes after it.
	echo := !final && c.last != nil && isContextError(ctx, err)
	if !accepted && !echo && (!refused || c.last == nil) {
		return 0, err
	}

	c.refusal = nil
	switch {
	case refused:
		c.refusal = err
	case !echo:
		c.last = err
	}
	switch {
	case ctx.Err() != nil:
		return 0, c.cut(ctx)
	case !accepted:
		return 0, c.exhausted(Rejected, nil)
	case c.attempts >= p.attempts:
		return 0, c.exhausted(AttemptsUsed, nil)
	}
	return p.delay(ctx, c, err)
}

// delay returns the wait after an attempt that failed with err and may be
// repeated, or else the error that says why there is no time for it.
func (p *Policy) delay(ctx context.Context, c *call, err error) (time.Duration, error) {
	hint, _ := resilience.RetryAfter(err)
	if hint > p.maxHint {
		return 0, c.exhausted(HintTooLong, nil)
	}
	c.backoff = max(0, p.backoff.Delay(c.attempts, c.backoff, unit(p.random())))
	delay := max(c.backoff, hint)

	deadline, bound := ctx.Deadline()
	bound = bound && delay > 0 // the end of the context itself bounds what is not a wait
	if !bound && !p.timed {
		return delay, nil
	}
	now := time.Now()
	if bound && deadline.Sub(now) <= delay {
		return 0, c.exhausted(DeadlineReached, context.DeadlineExceeded)
	}
	if p.timed {
		elapsed := now.Sub(c.start)
		if p.maxElapsed > 0 && p.maxElapsed-elapsed <= delay {
			return 0, c.exhausted(ElapsedReached, nil)
		}
		if p.onRetry != nil {
			p.onRetry(ctx, Event{Attempt: c.attempts, Err: err, Delay: delay, Hint: hint, Elapsed: elapsed})
		}
	}
	return delay, nil
}

// A call is what a call in progress keeps. It does not grow.
type call struct {
	start    time.Time     // zero if the policy is not timed
	attempts int           // made so far
	last     error         // the last real failure
	refusal  error         // of the last attempt, if that was refused
	backoff  time.Duration // what the backoff returned last
}

// cut returns the error for a call that ctx, which is done, has ended.
func (c *call) cut(ctx context.Context) error {
	return c.exhausted(contextReason(ctx.Err()), resilience.ContextError(ctx))
}

func (c *call) exhausted(reason Reason, ctxErr error) error {
	e := &ExhaustedError{Attempts: c.attempts, Reason: reason, Last: c.last, Context: ctxErr, Refusal: c.refusal}
	if e.Last == nil { // nothing but refusals, and then it is one
		e.Last, e.Refusal = e.Refusal, nil
	}
	return e
}

// isContextError reports whether ctx is done and err says no more than that.
func isContextError(ctx context.Context, err error) bool {
	done := ctx.Err()
	return done != nil && (errors.Is(err, done) || errors.Is(err, context.Cause(ctx)))
}

// sleep waits for d and reports whether ctx is still not done.
func sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// unit forces a number into [0, 1), whatever a Rand has returned.
func unit(x float64) float64 {
	if !(x > 0) { // NaN too
		return 0
	}
	return min(x, 1-0x1p-53)
}
