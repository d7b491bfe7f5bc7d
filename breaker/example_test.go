package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func Example() {
	circuit, err := breaker.New(breaker.Config{Name: "answers", FailureThreshold: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer circuit.Close()

	ask := resilience.Wrap(func(context.Context) (string, error) {
		return "", errors.New("the host is down")
	}, circuit)

	ctx := context.Background()
	for range 3 {
		_, err := ask(ctx)
		fmt.Println("refused:", errors.Is(err, resilience.ErrRejected))
	}
	fmt.Println(circuit.State(ctx))
	// Output:
	// refused: false
	// refused: false
	// refused: true
	// open <nil>
}

// Once the recovery timeout has passed, which takes no time here, a probe decides.
func Example_recovery() {
	circuit, err := breaker.New(breaker.Config{FailureThreshold: 1, RecoveryTimeout: time.Nanosecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer circuit.Close()

	ctx := context.Background()
	call := func(result error) {
		_ = circuit.Do(ctx, func(context.Context) error { return result })
		fmt.Println(circuit.State(ctx))
	}
	call(errors.New("the host is down"))
	call(errors.New("the host is down"))
	call(nil)
	// Output:
	// half-open <nil>
	// half-open <nil>
	// closed <nil>
}

// Whoever is refused is told what it was and when to come back.
func ExampleOpenError() {
	circuit, err := breaker.New(breaker.Config{Name: "answers"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer circuit.Close()
	ctx := context.Background()
	_ = circuit.ForceOpen(ctx, time.Minute)

	err = circuit.Do(ctx, func(context.Context) error { return nil })
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Println(open.Name, "is", open.State)
	}
	wait, ok := resilience.RetryAfter(err)
	fmt.Println(wait.Round(time.Minute), ok)
	// Output:
	// answers is open
	// 1m0s true
}

// Breakers of one name on one cache are one circuit, as they would be in several
// processes on one Redis.
func ExampleConfig_sharedCache() {
	shared := memory.New()
	cfg := breaker.Config{Name: "answers", Cache: shared, FailureThreshold: 2}
	one, err := breaker.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := breaker.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	down := func(context.Context) error { return errors.New("the host is down") }
	_ = one.Do(ctx, down)
	_ = other.Do(ctx, down)
	fmt.Println(one.State(ctx))
	fmt.Println(other.State(ctx))
	// Output:
	// open <nil>
	// open <nil>
}

// A classifier decides what it knows about and leaves the rest to the default.
func ExampleClassify() {
	errBadRequest := errors.New("bad request")
	circuit, err := breaker.New(breaker.Config{
		FailureThreshold: 1,
		Classify: func(ctx context.Context, err error) breaker.Outcome {
			if errors.Is(err, errBadRequest) {
				return breaker.Success // it did answer
			}
			return breaker.Classify(ctx, err)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer circuit.Close()

	ctx := context.Background()
	for _, result := range []error{errBadRequest, errors.New("connection refused")} {
		_ = circuit.Do(ctx, func(context.Context) error { return result })
		fmt.Println(circuit.State(ctx))
	}
	// Output:
	// closed <nil>
	// open <nil>
}

// A call that begins in one place and ends in another takes a permit.
func ExampleBreaker_Allow() {
	circuit, err := breaker.New(breaker.Config{FailureThreshold: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer circuit.Close()

	ctx := context.Background()
	permit, err := circuit.Allow(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// A stream is opened here, and read until it breaks.
	permit.Done(ctx, errors.New("stream reset"))
	fmt.Println(circuit.State(ctx))
	// Output:
	// open <nil>
}

func ExampleBreaker_Reset() {
	circuit, err := breaker.New(breaker.Config{
		Name: "answers",
		OnStateChange: func(_ context.Context, t breaker.Transition) {
			fmt.Printf("%s: %v, now %v\n", t.Name, t.From, t.To)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer circuit.Close()

	ctx := context.Background()
	_ = circuit.ForceOpen(ctx, time.Hour) // before maintenance
	_ = circuit.Reset(ctx)                // after it
	// Output:
	// answers: closed, now open
	// answers: open, now closed
}
