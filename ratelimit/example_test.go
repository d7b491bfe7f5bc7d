package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

func ask(context.Context) (string, error) { return "42", nil }

func ExampleNew() {
	allowance, err := ratelimit.New(2, time.Hour, ratelimit.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer allowance.Close()

	limited := resilience.Wrap(ask, allowance.For("tenant-7"))
	for range 3 {
		answer, err := limited(context.Background())
		switch refusal, ok := errors.AsType[*ratelimit.ExceededError](err); {
		case err == nil:
			fmt.Println(answer)
		case ok:
			fmt.Println("refused:", refusal.Limit, "per", refusal.Window, "are used up")
		}
	}
	// Output:
	// 42
	// 42
	// refused: 2 per 1h0m0s are used up
}

// With MaxWait a caller reserves the next slot to come free, and sleeps until then,
// or until it has had enough.
func ExampleConfig_maxWait() {
	ctx, giveUp := context.WithCancel(context.Background())
	allowance, err := ratelimit.New(1, time.Hour, ratelimit.Config{
		MaxWait: 2 * time.Hour,
		OnWait: func(_ context.Context, w ratelimit.Wait) {
			fmt.Println("waiting for", w.Key, "for", w.For.Round(time.Minute))
			giveUp()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer allowance.Close()

	fmt.Println(allowance.Acquire(ctx, "gpu"))
	fmt.Println(allowance.Acquire(ctx, "gpu"))
	// Output:
	// <nil>
	// waiting for gpu for 1h0m0s
	// context canceled
}

// Limiters of one name and window on one cache share their allowances.
func ExampleConfig_cache() {
	shared := memory.New() // or redis.New(client), for several processes
	defer shared.Close()
	cfg := ratelimit.Config{Name: "api", Cache: shared}
	first, err := ratelimit.New(1, time.Hour, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	second, err := ratelimit.New(1, time.Hour, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()

	fmt.Println(first.Acquire(context.Background(), "k"))
	fmt.Println(errors.Is(second.Acquire(context.Background(), "k"), resilience.ErrRejected))
	// Output:
	// <nil>
	// true
}

// lost is a cache whose store is away.
type lost struct{ *memory.Cache }

func (lost) Acquire(context.Context, string, cache.Request) (cache.Grant, error) {
	return cache.Grant{}, &cache.UnavailableError{Op: "acquire", Err: errors.New("connection refused")}
}

func ExampleUnavailable() {
	allowance, err := ratelimit.New(1, time.Hour, ratelimit.Config{
		Cache:           lost{memory.New()},
		WhenUnavailable: ratelimit.Admit,
		OnUnavailable: func(_ context.Context, o ratelimit.Outage) {
			fmt.Println("admitted without an answer:", o.Err)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer allowance.Close()
	fmt.Println(allowance.Acquire(context.Background(), "k"))
	// Output:
	// admitted without an answer: cache: acquire: store unavailable: connection refused
	// <nil>
}

func ExampleLimiter_By() {
	type tenant struct{}
	allowance, err := ratelimit.New(1, time.Hour, ratelimit.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer allowance.Close()
	limited := resilience.Wrap(ask, allowance.By(func(ctx context.Context) string {
		return ctx.Value(tenant{}).(string)
	}))
	for _, who := range []string{"ann", "ben", "ann"} {
		_, err := limited(context.WithValue(context.Background(), tenant{}, who))
		fmt.Println(who, err == nil)
	}
	// Output:
	// ann true
	// ben true
	// ann false
}

// What a call costs need not be 1: tokens, bytes, rows.
func ExampleLimiter_AcquireN() {
	tokens, err := ratelimit.New(1000, time.Hour, ratelimit.Config{Name: "tokens"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tokens.Close()
	ctx := context.Background()
	fmt.Println(tokens.AcquireN(ctx, "k", 700))
	left, err := tokens.Remaining(ctx, "k")
	fmt.Println(left, err)
	fmt.Println(tokens.AcquireN(ctx, "k", 1001))
	// Output:
	// <nil>
	// 300 <nil>
	// ratelimit: tokens: key "k": a cost of 1001 can never fit a limit of 1000 per 1h0m0s
}

func ExamplePolicy_Cost() {
	allowance, err := ratelimit.New(10, time.Hour, ratelimit.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer allowance.Close()
	search := resilience.Wrap(ask, allowance.For("ann").Cost(8)) // heavier than others
	for range 2 {
		_, err := search(context.Background())
		fmt.Println(err == nil)
	}
	_, err = resilience.Wrap(ask, allowance.For("ann"))(context.Background())
	fmt.Println(err == nil)
	// Output:
	// true
	// false
	// true
}

func ExampleLimiter_Reset() {
	allowance, err := ratelimit.New(1, time.Hour, ratelimit.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer allowance.Close()
	ctx := context.Background()
	fmt.Println(allowance.Acquire(ctx, "k") == nil, allowance.Acquire(ctx, "k") == nil)
	fmt.Println(allowance.Reset(ctx, "k"))
	fmt.Println(allowance.Acquire(ctx, "k") == nil)
	// Output:
	// true false
	// <nil>
	// true
}
