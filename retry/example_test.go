package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
)

// A StatusError is what the examples' client makes of a response that is no
// answer.
type StatusError struct {
	Code  int
	After time.Duration // of the Retry-After header
}

func (e *StatusError) Error() string             { return fmt.Sprintf("status %d", e.Code) }
func (e *StatusError) RetryAfter() time.Duration { return e.After }

// transient accepts what the host may answer differently next time.
func transient(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && (e.Code == 429 || e.Code >= 500)
}

// answers returns a call that fails with the errors given, one each time, and then
// succeeds.
func answers(failures ...error) resilience.Call[string] {
	n := 0
	return func(context.Context) (string, error) {
		if n++; n <= len(failures) {
			return "", failures[n-1]
		}
		return "42", nil
	}
}

func ExampleNew() {
	again, err := retry.New(transient, retry.Config{
		MaxAttempts: 5,
		Backoff:     retry.Exponential{Base: time.Millisecond, Max: time.Second, Jitter: 0.2},
	})
	if err != nil {
		panic(err)
	}

	ask := resilience.Wrap(answers(&StatusError{Code: 503}, &StatusError{Code: 502}), again)
	fmt.Println(ask(context.Background()))

	ask = resilience.Wrap(answers(&StatusError{Code: 400}), again)
	fmt.Println(ask(context.Background()))
	// Output:
	// 42 <nil>
	//  status 400
}

func ExampleNew_badInput() {
	_, err := retry.New(nil, retry.Config{})
	fmt.Println(err)
	_, err = retry.New(transient, retry.Config{MaxAttempts: -1})
	fmt.Println(err)
	_, err = retry.New(transient, retry.Config{Backoff: retry.FullJitter{Base: time.Minute, Max: time.Second}})
	fmt.Println(err)
	// Output:
	// retry: retryable is nil, want a predicate such as On(err)
	// retry: MaxAttempts is -1, want 0 or more (Unlimited for no limit)
	// retry: Backoff: FullJitter.Max is 1s, want 0 or at least Base, which is 1m0s
}

func ExamplePolicy_Do() {
	again, err := retry.New(retry.On(io.ErrUnexpectedEOF), retry.Config{Backoff: retry.Constant(0)})
	if err != nil {
		panic(err)
	}
	attempt := 0
	err = again.Do(context.Background(), func(context.Context) error {
		if attempt++; attempt < 3 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	fmt.Println(attempt, err)
	// Output: 3 <nil>
}

func ExampleConfig_onRetry() {
	again, err := retry.New(transient, retry.Config{
		Backoff: retry.Constant(time.Millisecond),
		OnRetry: func(_ context.Context, e retry.Event) {
			fmt.Printf("attempt %d: %v; again in %v\n", e.Attempt, e.Err, e.Delay)
		},
	})
	if err != nil {
		panic(err)
	}
	ask := resilience.Wrap(answers(&StatusError{Code: 503}, &StatusError{Code: 429, After: 2 * time.Millisecond}), again)
	fmt.Println(ask(context.Background()))
	// Output:
	// attempt 1: status 503; again in 1ms
	// attempt 2: status 429; again in 2ms
	// 42 <nil>
}

// What the server asks for is waited for, or else reported; it is never cut.
func ExampleConfig_maxHint() {
	again, err := retry.New(transient, retry.Config{MaxHint: 30 * time.Second})
	if err != nil {
		panic(err)
	}
	ask := resilience.Wrap(answers(&StatusError{Code: 429, After: time.Hour}), again)
	_, err = ask(context.Background())
	fmt.Println(err)

	after, _ := resilience.RetryAfter(err)
	fmt.Println("come back in", after)
	// Output:
	// retry: gave up after 1 attempt: asked to stay away longer than is honoured: status 429
	// come back in 1h0m0s
}

// turnstile is a policy that refuses every other call.
type turnstile struct{ calls int }

func (t *turnstile) Do(ctx context.Context, op func(context.Context) error) error {
	if t.calls++; t.calls%2 == 1 {
		return fmt.Errorf("turnstile: %w", resilience.ErrRejected)
	}
	return op(ctx)
}

// A refusal of a policy inside is passed on, unless you ask for more.
func ExampleConfig_retryRejected() {
	for _, wait := range []bool{false, true} {
		again, err := retry.New(
			retry.Any(transient, retry.On(resilience.ErrRejected)),
			retry.Config{Backoff: retry.Constant(0), RetryRejected: wait},
		)
		if err != nil {
			panic(err)
		}
		_, err = resilience.Wrap(answers(), again, &turnstile{})(context.Background())
		fmt.Println(err)
	}
	// Output:
	// turnstile: resilience: rejected without a call
	// <nil>
}

func ExampleExhaustedError() {
	again, err := retry.New(transient, retry.Config{MaxAttempts: 2, Backoff: retry.Constant(0)})
	if err != nil {
		panic(err)
	}
	failure := &StatusError{Code: 503}
	_, err = resilience.Wrap(answers(failure, failure, failure), again)(context.Background())

	if e, ok := errors.AsType[*retry.ExhaustedError](err); ok {
		fmt.Println(e.Attempts, "attempts;", e.Reason)
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		fmt.Println("the last answer was", e.Code)
	}
	// Output:
	// 2 attempts; attempts used up
	// the last answer was 503
}

// A wait that the context's deadline leaves no time for is not begun.
func ExampleExhaustedError_deadline() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	again, err := retry.New(transient, retry.Config{Backoff: retry.Constant(time.Hour)})
	if err != nil {
		panic(err)
	}
	_, err = resilience.Wrap(answers(&StatusError{Code: 503}), again)(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// retry: gave up after 1 attempt: no time left before the deadline: status 503; context: context deadline exceeded
	// true
}

func ExampleOn() {
	retryable := retry.On(io.ErrUnexpectedEOF, net.ErrClosed)
	fmt.Println(retryable(fmt.Errorf("reading the answer: %w", io.ErrUnexpectedEOF)))
	fmt.Println(retryable(io.EOF))
	// Output:
	// true
	// false
}

func ExampleOnType() {
	retryable := retry.OnType[net.Error]()
	fmt.Println(retryable(&net.DNSError{Err: "server misbehaving", IsTemporary: true}))
	fmt.Println(retryable(io.EOF))
	// Output:
	// true
	// false
}

func ExampleAny() {
	retryable := retry.Any(transient, retry.On(io.ErrUnexpectedEOF), retry.OnType[net.Error]())
	fmt.Println(retryable(&StatusError{Code: 503}), retryable(io.ErrUnexpectedEOF), retryable(io.EOF))
	// Output: true true false
}

// Network errors, except that a host which is not known now will not be known in a
// second either.
func ExampleAll() {
	unknownHost := func(err error) bool {
		e, ok := errors.AsType[*net.DNSError](err)
		return ok && e.IsNotFound
	}
	retryable := retry.All(retry.OnType[net.Error](), retry.Not(unknownHost))
	fmt.Println(retryable(&net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}))
	fmt.Println(retryable(&net.DNSError{Err: "no such host", IsNotFound: true}))
	// Output:
	// true
	// false
}

func ExampleNot() {
	retryable := retry.Not(retry.On(io.EOF))
	fmt.Println(retryable(io.ErrUnexpectedEOF), retryable(io.EOF))
	// Output: true false
}

// show prints the bounds of the first delays of a backoff.
func show(b retry.Backoff) {
	var shortest, longest time.Duration
	for attempt := 1; attempt <= 5; attempt++ {
		shortest = b.Delay(attempt, shortest, 0)
		longest = b.Delay(attempt, longest, 1)
		fmt.Printf("after attempt %d: %v to %v\n", attempt, shortest, longest)
	}
}

func ExampleConstant() {
	show(retry.Constant(250 * time.Millisecond))
	// Output:
	// after attempt 1: 250ms to 250ms
	// after attempt 2: 250ms to 250ms
	// after attempt 3: 250ms to 250ms
	// after attempt 4: 250ms to 250ms
	// after attempt 5: 250ms to 250ms
}

func ExampleExponential() {
	show(retry.Exponential{Base: time.Second, Max: 10 * time.Second, Jitter: 0.5})
	// Output:
	// after attempt 1: 500ms to 1.5s
	// after attempt 2: 1s to 3s
	// after attempt 3: 2s to 6s
	// after attempt 4: 4s to 10s
	// after attempt 5: 5s to 10s
}

func ExampleFullJitter() {
	show(retry.FullJitter{Base: time.Second, Max: 10 * time.Second})
	// Output:
	// after attempt 1: 0s to 1s
	// after attempt 2: 0s to 2s
	// after attempt 3: 0s to 4s
	// after attempt 4: 0s to 8s
	// after attempt 5: 0s to 10s
}

func ExampleEqualJitter() {
	show(retry.EqualJitter{Base: time.Second, Max: 10 * time.Second})
	// Output:
	// after attempt 1: 500ms to 1s
	// after attempt 2: 1s to 2s
	// after attempt 3: 2s to 4s
	// after attempt 4: 4s to 8s
	// after attempt 5: 5s to 10s
}

func ExampleDecorrelated() {
	show(retry.Decorrelated{Base: time.Second, Max: 10 * time.Second})
	// Output:
	// after attempt 1: 1s to 3s
	// after attempt 2: 1s to 9s
	// after attempt 3: 1s to 10s
	// after attempt 4: 1s to 10s
	// after attempt 5: 1s to 10s
}

func ExampleDefaultBackoff() {
	b := retry.DefaultBackoff()
	b.Max = 5 * time.Second
	show(b)
	// Output:
	// after attempt 1: 900ms to 1.1s
	// after attempt 2: 1.8s to 2.2s
	// after attempt 3: 3.6s to 4.4s
	// after attempt 4: 4.5s to 5s
	// after attempt 5: 4.5s to 5s
}

// Linear is a backoff of one's own: a function of its arguments.
type Linear time.Duration

func (l Linear) Delay(attempt int, _ time.Duration, random float64) time.Duration {
	step := float64(l)
	return time.Duration(min(step*(float64(attempt)-random), 100*step))
}

func ExampleBackoff() {
	fmt.Println(Linear(time.Second).Delay(3, 0, 0.25))
	_, err := retry.New(transient, retry.Config{Backoff: Linear(time.Second)})
	fmt.Println(err)
	// Output:
	// 2.75s
	// <nil>
}
