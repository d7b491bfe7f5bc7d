package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func Example() {
	c := memory.New()
	defer c.Close()
	ctx := context.Background()

	ask := cache.Request{Limit: 2, Window: time.Hour, Weight: 1}
	for range 3 {
		grant, err := c.Acquire(ctx, "tenant", ask)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(grant.OK)
	}
	// Output:
	// true
	// true
	// false
}

func ExampleNew() {
	c := memory.New()
	fmt.Println(c.Set(context.Background(), "circuit", "open", time.Minute))
	fmt.Println(c.Get(context.Background(), "circuit"))
	fmt.Println(c.Close())
	fmt.Println(c.Set(context.Background(), "circuit", "open", time.Minute))
	// Output:
	// <nil>
	// open true <nil>
	// <nil>
	// cache: used after it was closed
}

// A caller who may wait is given a slot in the future, and gives it back if it does
// not want it after all.
func ExampleCache_Acquire_wait() {
	c := memory.New()
	defer c.Close()
	ctx := context.Background()

	ask := cache.Request{Limit: 1, Window: time.Hour, Weight: 1, MaxWait: 24 * time.Hour}
	for range 3 {
		grant, err := c.Acquire(ctx, "tenant", ask)
		fmt.Println(grant.Wait.Round(time.Minute), err)
		if grant.Wait > 90*time.Minute {
			fmt.Println(c.GiveBack(ctx, "tenant", grant.Slot))
		}
	}
	fmt.Println(c.Used(ctx, "tenant", time.Hour))
	// Output:
	// 0s <nil>
	// 1h0m0s <nil>
	// 2h0m0s <nil>
	// <nil>
	// 2 <nil>
}
