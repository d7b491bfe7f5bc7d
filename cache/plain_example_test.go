package cache_test

import (
	"context"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// Three methods are enough for a limiter: the rest is done with them.
func ExampleAcquirerOf() {
	type simple struct{ cache.HitWindow } // hides what else there is
	hits := cache.AcquirerOf(simple{memory.New()})

	for range 3 {
		g, err := hits.Acquire(context.Background(), "k", cache.Request{Limit: 2, Window: time.Minute, Weight: 1})
		fmt.Println(g.OK, g.Wait.Round(time.Minute), err)
	}
	// Output:
	// true 0s <nil>
	// true 0s <nil>
	// false 1m0s <nil>
}
