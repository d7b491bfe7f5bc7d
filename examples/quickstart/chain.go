package main

import (
	"context"
	"errors"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// A chain is what stands between the callers and the host: breaker, limiter, retry,
// and what must be closed afterwards.
type chain struct {
	guard   resilience.Decorator[string]
	circuit *breaker.Breaker
	limiter *ratelimit.Limiter
}

func newChain(seen *timeline) (*chain, error) {
	// At most 90 calls in any half second, and a tenth of a second of patience.
	limiter, err := ratelimit.New(90, 500*time.Millisecond, ratelimit.Config{MaxWait: 100 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	// Open after 10 calls that failed, and ask the host again after a second. An
	// overloaded host that says so is alive: 429 counts neither way.
	circuit, err := breaker.New(breaker.Config{
		FailureThreshold: 10,
		RecoveryTimeout:  time.Second,
		Classify: func(ctx context.Context, err error) breaker.Outcome {
			if status, ok := errors.AsType[*statusError](err); ok && status.code == 429 {
				return breaker.Neutral
			}
			return breaker.Classify(ctx, err)
		},
		OnStateChange: seen.circuitChanged,
	})
	if err != nil {
		return nil, err
	}
	// Three attempts in all, for what may be answered differently next time.
	again, err := retry.New(temporary, retry.Config{
		MaxAttempts: 3,
		Backoff:     retry.EqualJitter{Base: 100 * time.Millisecond, Max: 500 * time.Millisecond},
		OnRetry:     seen.retried,
	})
	if err != nil {
		return nil, err
	}
	return &chain{
		guard:   resilience.With[string](circuit, limiter.For("host"), again),
		circuit: circuit,
		limiter: limiter,
	}, nil
}

func (c *chain) close() {
	_ = c.circuit.Close()
	_ = c.limiter.Close()
}

// threeAttempts is what stands there where nothing was thought of.
func threeAttempts(call resilience.Call[string]) resilience.Call[string] {
	return func(ctx context.Context) (answer string, err error) {
		for range 3 {
			if answer, err = call(ctx); err == nil {
				return answer, nil
			}
		}
		return "", err
	}
}
