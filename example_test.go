package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
)

// A policy of one's own is one method: this one tells how long each run took.
type stopwatch struct{ report func(time.Duration, error) }

func (s stopwatch) Do(ctx context.Context, op func(context.Context) error) error {
	start := time.Now()
	err := op(ctx)
	s.report(time.Since(start).Truncate(time.Hour), err)
	return err
}

// shout tells when it is entered and left.
type shout string

func (s shout) Do(ctx context.Context, op func(context.Context) error) error {
	fmt.Println(s, "begins")
	defer fmt.Println(s, "ends")
	return op(ctx)
}

func greet(context.Context) (string, error) { return "hello", nil }

// The first policy is the outermost: Wrap(f, a, b) is a(b(f)).
func ExampleWrap() {
	call := resilience.Wrap(greet, shout("a"), shout("b"))
	fmt.Println(call(context.Background()))
	// Output:
	// a begins
	// b begins
	// b ends
	// a ends
	// hello <nil>
}

// Compose once, then apply to a fresh closure for each invocation: that is how a
// call gets its arguments.
func ExampleWith() {
	guard := resilience.With[int](stopwatch{func(d time.Duration, err error) { fmt.Println("took", d, err) }})

	double := func(ctx context.Context, n int) (int, error) {
		return guard(func(context.Context) (int, error) { return 2 * n, nil })(ctx)
	}
	fmt.Println(double(context.Background(), 21))
	// Output:
	// took 0s <nil>
	// 42 <nil>
}

// A joined chain serves calls of any type.
func ExampleJoin() {
	both := resilience.Join(shout("outer"), shout("inner"))

	length := func(context.Context) (int, error) { return 5, nil }
	fmt.Println(resilience.Wrap(greet, both)(context.Background()))
	fmt.Println(resilience.Wrap(length, both)(context.Background()))
	// Output:
	// outer begins
	// inner begins
	// inner ends
	// outer ends
	// hello <nil>
	// outer begins
	// inner begins
	// inner ends
	// outer ends
	// 5 <nil>
}

// What must see the value is a decorator; Chain puts it beside policies.
func ExampleChain() {
	fallback := func(call resilience.Call[string]) resilience.Call[string] {
		return func(ctx context.Context) (string, error) {
			if v, err := call(ctx); err == nil {
				return v, nil
			}
			return "what we said yesterday", nil
		}
	}
	failing := func(context.Context) (string, error) { return "", errors.New("no route to host") }

	call := resilience.Chain(fallback, resilience.With[string](shout("guard")))(failing)
	fmt.Println(call(context.Background()))
	// Output:
	// guard begins
	// guard ends
	// what we said yesterday <nil>
}

// Any error with a RetryAfter method carries a hint, however deep it is wrapped.
func ExampleRetryAfter() {
	err := fmt.Errorf("ask the model: %w", tooManyRequests{wait: 2 * time.Second})
	fmt.Println(resilience.RetryAfter(err))
	// Output: 2s true
}

type tooManyRequests struct{ wait time.Duration }

func (e tooManyRequests) Error() string             { return "429 Too Many Requests" }
func (e tooManyRequests) RetryAfter() time.Duration { return e.wait }

// A refusal of your own matches ErrRejected, so that a breaker does not count it
// and a retry does not repeat it.
func ExampleErrRejected() {
	err := fmt.Errorf("not in office hours: %w", resilience.ErrRejected)
	fmt.Println(errors.Is(err, resilience.ErrRejected))
	// Output: true
}

// A cancelled call's error tells both that the caller left and why.
func ExampleContextError() {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the user closed the tab"))

	err := resilience.ContextError(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(err, context.Cause(ctx)))
	// Output:
	// context canceled: the user closed the tab
	// true true
}
