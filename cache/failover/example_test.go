package failover_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/failover"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// unplugged is a shared cache whose store is away.
type unplugged struct{ *memory.Cache }

func (unplugged) Acquire(context.Context, string, cache.Request) (cache.Grant, error) {
	return cache.Grant{}, &cache.UnavailableError{Op: "acquire", Err: errors.New("connection refused")}
}

// While the store is away, the limiter holds this process to a window of its own.
func ExampleNew() {
	local := memory.New()
	defer local.Close()
	store, err := failover.New(unplugged{memory.New()}, local, failover.Config{
		OnLeave: func(_ context.Context, reason error) { fmt.Println("going on alone:", reason) },
	})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(2, time.Minute, ratelimit.Config{Cache: store})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		fmt.Println(limiter.Acquire(context.Background(), "tenant-7") == nil)
	}
	// Output:
	// going on alone: cache: acquire: store unavailable: connection refused
	// true
	// true
	// false
}
