package resilience_test

import (
	"context"
	"fmt"

	"github.com/resilience-toolkit/resilience"
)

// bulkhead lets a number of calls run at a time, and refuses all others.
type bulkhead struct {
	resilience.Sequential[*bulkhead] // Do runs op once, here, and not after it has returned

	places chan struct{}
}

func (b *bulkhead) Do(ctx context.Context, op func(context.Context) error) error {
	select {
	case b.places <- struct{}{}:
		defer func() { <-b.places }()
		return op(ctx)
	default:
		return fmt.Errorf("%w: %d calls are running", resilience.ErrRejected, cap(b.places))
	}
}

func ExampleSequential() {
	one := &bulkhead{places: make(chan struct{}, 1)}
	var call resilience.Call[string]
	call = resilience.Wrap(func(ctx context.Context) (string, error) {
		_, err := call(ctx) // while this one runs
		return "first", err
	}, one)
	fmt.Println(call(context.Background()))
	// Output:
	// resilience: rejected without a call: 1 calls are running
}
