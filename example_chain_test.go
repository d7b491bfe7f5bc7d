package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// A host that fails once and then answers.
type host struct{ calls int }

func (h *host) Ask(_ context.Context, question string) (string, error) {
	if h.calls++; h.calls == 1 {
		return "", errBusy
	}
	return "the answer to " + question, nil
}

var errBusy = errors.New("busy")

// Breaker, limiter and retry around a call, in the order that the documentation argues
// for. The user says which error is worth a retry.
func Example() {
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	client := &host{}
	question := "everything"

	circuit, err := breaker.New(breaker.Config{}) // opens at 5 failures, probes after 30 s
	must(err)
	defer circuit.Close()
	limiter, err := ratelimit.New(60, time.Minute, ratelimit.Config{MaxWait: 5 * time.Second})
	must(err)
	defer limiter.Close()
	again, err := retry.New(retry.On(errBusy), retry.Config{Backoff: retry.Constant(time.Millisecond)})
	must(err)
	guard := resilience.With[string](circuit, limiter.For("tenant-7"), again) // circuit(limiter(again(call)))

	answer, err := guard(func(ctx context.Context) (string, error) { return client.Ask(ctx, question) })(context.Background())
	fmt.Println(answer, err)
	fmt.Println(client.calls, "attempts")
	// Output:
	// the answer to everything <nil>
	// 2 attempts
}
