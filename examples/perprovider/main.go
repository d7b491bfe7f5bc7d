// Perprovider calls two hosts that can answer the same question. Each has a chain of
// its own, because each fails and recovers by itself; the second takes over while the
// first one's circuit is open. It needs nothing and ends by itself after five seconds:
//
//	go run ./examples/perprovider
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "perprovider:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	start := time.Now()
	north, south := newProvider("north"), newProvider("south")
	defer north.server.Close()
	defer south.server.Close()

	// One allowance for both would let a busy first host starve the second, and one
	// circuit for both would take a healthy host away: a chain per host.
	guardNorth, closeNorth, err := newGuard(north.name)
	if err != nil {
		return err
	}
	defer closeNorth()
	guardSouth, closeSouth, err := newGuard(south.name)
	if err != nil {
		return err
	}
	defer closeSouth()

	// South answers what north does not. A fallback sees the value, so it is a decorator
	// and not a policy; it stands outside north's chain and has south's inside.
	ask := resilience.Chain(
		orElse(guardSouth(south.ask), func(err error) {
			fmt.Fprintf(out, "%5.1fs  north: %-42s", time.Since(start).Seconds(), short(err))
		}),
		guardNorth,
	)(func(ctx context.Context) (string, error) {
		answer, err := north.ask(ctx)
		if err == nil {
			fmt.Fprintf(out, "%5.1fs  north: %-42s", time.Since(start).Seconds(), "answers")
		}
		return answer, err
	})

	fmt.Fprint(out, "Two hosts can answer the same question. South is asked when north does not answer, and north\n"+
		"is down from 1.0s to 3.0s. A line is a question: what became of it at north, and the answer.\n\n")
	for time.Since(start) < 5*time.Second {
		age := time.Since(start)
		north.down.Store(age > time.Second && age < 3*time.Second)
		answer, err := ask(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, " -> %q\n", answer)
		time.Sleep(150 * time.Millisecond)
	}
	fmt.Fprintf(out, "\nnorth saw %d requests, south %d; every question had an answer\n",
		north.requests.Load(), south.requests.Load())
	return nil
}

// newGuard makes the chain of one host. Whoever makes a breaker and a limiter closes them.
func newGuard(name string) (guard resilience.Decorator[string], release func(), err error) {
	circuit, err := breaker.New(breaker.Config{Name: name, FailureThreshold: 2, RecoveryTimeout: 800 * time.Millisecond})
	if err != nil {
		return nil, nil, err
	}
	limiter, err := ratelimit.New(20, time.Second, ratelimit.Config{Name: name, MaxWait: time.Second})
	if err != nil {
		return nil, nil, err
	}
	again, err := retry.New(retry.OnType[*unavailable](), retry.Config{
		MaxAttempts: 2,
		Backoff:     retry.Constant(20 * time.Millisecond),
	})
	if err != nil {
		return nil, nil, err
	}
	release = func() { _, _ = circuit.Close(), limiter.Close() }
	return resilience.With[string](circuit, limiter.For("calls"), again), release, nil
}

// orElse asks another where the inner call fails, whatever it failed of, and reports why.
func orElse[T any](other resilience.Call[T], report func(error)) resilience.Decorator[T] {
	return func(call resilience.Call[T]) resilience.Call[T] {
		return func(ctx context.Context) (T, error) {
			value, err := call(ctx)
			if err == nil || ctx.Err() != nil {
				return value, err
			}
			report(err)
			return other(ctx)
		}
	}
}

func short(err error) string {
	if after, ok := resilience.RetryAfter(err); ok && errors.Is(err, resilience.ErrRejected) {
		return fmt.Sprintf("circuit open, again in %.1fs", after.Seconds())
	}
	if spent, ok := errors.AsType[*retry.ExhaustedError](err); ok {
		return fmt.Sprintf("%v (%d attempts)", spent.Last, spent.Attempts)
	}
	return err.Error()
}

// A provider is a host with a server of its own on a loopback port.
type provider struct {
	name     string
	server   *httptest.Server
	down     atomic.Bool
	requests atomic.Int64
}

func newProvider(name string) *provider {
	p := &provider{name: name}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.requests.Add(1)
		if p.down.Load() {
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "an answer from the %s", name)
	}))
	return p
}

func (p *provider) ask(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server.URL, nil)
	if err != nil {
		return "", err
	}
	resp, err := p.server.Client().Do(req)
	if err != nil {
		return "", &unavailable{p.name, err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", &unavailable{p.name, err.Error()}
	}
	if resp.StatusCode != http.StatusOK {
		return "", &unavailable{p.name, resp.Status}
	}
	return string(body), nil
}

type unavailable struct{ host, why string }

func (e *unavailable) Error() string { return e.why }
