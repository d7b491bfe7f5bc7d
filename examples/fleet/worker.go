package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/failover"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// How the conductor tells a process that it is a worker, and what to work on.
const (
	storeVariable = "FLEET_STORE"
	hostVariable  = "FLEET_HOST"
)

func isWorker() bool { return os.Getenv(hostVariable) != "" }

// A report is a line that a worker writes for the conductor: what happened, or how many
// calls there were since the last one.
type report struct {
	Event    string `json:"event,omitempty"`
	Admitted int64  `json:"admitted,omitempty"`
	Limited  int64  `json:"limited,omitempty"`
	Refused  int64  `json:"refused,omitempty"` // by the circuit
}

const reportEvery = 100 * time.Millisecond

// work calls the host from eight goroutines until in ends, which it does when the
// conductor ends.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	tell := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(r)
	}
	guard, release, err := newGuard(tell)
	if err != nil {
		return err
	}
	defer release()

	var admitted, limited, refused atomic.Int64
	url := os.Getenv(hostVariable)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := guard(func(ctx context.Context) (struct{}, error) { return struct{}{}, ask(ctx, url) })(ctx)
				switch {
				case isA[*ratelimit.ExceededError](err):
					limited.Add(1)
				case isA[*breaker.OpenError](err):
					refused.Add(1)
				default:
					admitted.Add(1)
				}
				pause(ctx, 50*time.Millisecond)
			}
		})
	}
	for ctx.Err() == nil {
		pause(ctx, reportEvery)
		tell(report{Admitted: admitted.Swap(0), Limited: limited.Swap(0), Refused: refused.Swap(0)})
	}
	callers.Wait()
	return nil
}

// newGuard makes the chain of one worker. Its cache is all that differs from a chain for
// a single process.
func newGuard(tell func(report)) (guard resilience.Decorator[struct{}], release func(), err error) {
	shared, err := redis.Open(os.Getenv(storeVariable), redis.Config{})
	if err != nil {
		return nil, nil, err
	}
	local := memory.New()
	store, err := failover.New(shared, local, failover.Config{
		CoolDown: 500 * time.Millisecond,
		OnLeave:  func(context.Context, error) { tell(report{Event: "goes on alone: Redis is away"}) },
		OnReturn: func(context.Context, time.Duration) { tell(report{Event: "is back: Redis answers"}) },
	})
	if err != nil {
		return nil, nil, err
	}
	limiter, err := ratelimit.New(limit, time.Second, ratelimit.Config{Name: "fleet", Cache: store})
	if err != nil {
		return nil, nil, err
	}
	circuit, err := breaker.New(breaker.Config{
		Name:            "host",
		Cache:           store,
		RecoveryTimeout: 2 * time.Second,
		OnStateChange: func(_ context.Context, t breaker.Transition) {
			tell(report{Event: "sees the circuit " + t.To.String()})
		},
	})
	if err != nil {
		return nil, nil, err
	}
	release = func() { _, _, _, _ = circuit.Close(), limiter.Close(), local.Close(), shared.Close() }
	return resilience.With[struct{}](circuit, limiter.For("host")), release, nil
}

func ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the host says %s", resp.Status)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
