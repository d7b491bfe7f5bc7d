package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/timeout"
)

func ExampleNew() {
	limit, err := timeout.New(10 * time.Millisecond)
	if err != nil {
		panic(err)
	}
	ask := resilience.Wrap(func(ctx context.Context) (string, error) {
		<-ctx.Done() // a host that never answers
		return "", ctx.Err()
	}, limit)

	_, err = ask(context.Background())
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// timeout: limit of 10ms exceeded: context deadline exceeded
	// true
}

func ExampleExceededError() {
	limit, err := timeout.New(time.Minute)
	if err != nil {
		panic(err)
	}
	ask := resilience.Wrap(func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, limit)

	// The caller's own deadline is not the limit's.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = ask(ctx)
	_, exceeded := errors.AsType[*timeout.ExceededError](err)
	fmt.Println(err, exceeded)
	// Output: context deadline exceeded false
}
