package cache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// Keys of one group are kept together, so that they can be read in one step.
func ExampleKey() {
	state, failures := cache.Key("breaker/payments", "state"), cache.Key("breaker/payments", "failures")
	fmt.Printf("%q\n%q\n", state, failures)
	fmt.Println(cache.Group(state) == cache.Group(failures))
	// Output:
	// "breaker/payments\x00state"
	// "breaker/payments\x00failures"
	// true
}

func ExampleGetMany() {
	c := memory.New()
	defer c.Close()
	ctx := context.Background()
	state, failures := cache.Key("breaker/payments", "state"), cache.Key("breaker/payments", "failures")
	_ = c.Set(ctx, state, "open", time.Minute)

	entries := make([]cache.Entry, 2)
	err := cache.GetMany(ctx, c, []string{state, failures}, entries)
	fmt.Println(entries[0], entries[1].Present, err)
	// Output: {open true} false <nil>
}

func ExampleCompareAndSwap() {
	c := memory.New()
	defer c.Close()
	ctx := context.Background()

	for range 2 { // only the first finds nothing
		swapped, err := cache.CompareAndSwap(ctx, c, "leader", cache.Absent(), cache.Present("me"), time.Minute)
		fmt.Println(swapped, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleArgumentError() {
	c := memory.New()
	defer c.Close()
	err := c.Set(context.Background(), "k", "v", -time.Second)
	if bad, ok := errors.AsType[*cache.ArgumentError](err); ok {
		fmt.Println(bad.Field, bad.Value)
	}
	fmt.Println(err)
	// Output:
	// ttl -1s
	// cache: set: ttl is -1s, want zero or more
}

func ExampleSlot_Compare() {
	first, second := cache.Slot{At: 1_000_000, ID: 7}, cache.Slot{At: 1_000_000, ID: 8}
	fmt.Println(first.Compare(second))
	// Output: -1
}
