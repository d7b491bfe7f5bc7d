// Command extract turns a handful of documents into typed records, through a hardened
// model, and says what happened to each.
//
// The model's host is a server on the loopback interface that speaks the wire format
// and misbehaves in every way that is known of one. With OPENAI_BASE_URL and
// OPENAI_MODEL in the environment, and OPENAI_API_KEY where the host wants a key, it is
// a real one instead:
//
//	OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=llama3.2:3b go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"time"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

// A Receipt is what is asked for. The descriptions are for the model to read.
type Receipt struct {
	Shop  string  `json:"shop" jsonschema:"the shop's name"`
	Total float64 `json:"total" jsonschema:"what was paid in all"`
	Items []Item  `json:"items" jsonschema:"what was bought, in order"`
}

// An Item is a line of a receipt.
type Item struct {
	Name  string  `json:"name"`
	Price float64 `json:"price"`
}

const prompt = "Take the receipt's data from the text. Say only what is there."

func main() {
	if err := run(context.Background(), os.Stdout, os.Getenv); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, env func(string) string) error {
	model, loopback, err := connect(env)
	if err != nil {
		return err
	}
	defer loopback.close()
	llm, err := harden(model, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Model: %s\n", llm.Model())
	for _, d := range documents {
		fmt.Fprintf(out, "\n%s\n", d.name)
		before := loopback.served()
		receipt, err := provider.Extract[Receipt](ctx, llm, provider.Request{Text: d.text, System: prompt})
		if err != nil {
			fmt.Fprintf(out, "    no record: %s\n", advice(err))
		} else {
			fmt.Fprintf(out, "    %s, %.2f, %d items\n", receipt.Shop, receipt.Total, len(receipt.Items))
		}
		if loopback != nil {
			fmt.Fprintf(out, "    requests: %d\n", loopback.served()-before)
		}
	}
	return nil
}

// connect returns the model, and its host if that is the one on the loopback interface.
func connect(env func(string) string) (provider.LLM, *host, error) {
	if base := env("OPENAI_BASE_URL"); base != "" {
		u, err := url.Parse(base)
		if err != nil {
			return nil, nil, err
		}
		model, err := openai.New(env("OPENAI_MODEL"), openai.Config{
			BaseURL:  base,
			APIKey:   env("OPENAI_API_KEY"),
			Provider: u.Hostname(),
		})
		return model, nil, err
	}
	h := newHost()
	model, err := openai.New("moody-1", openai.Config{
		BaseURL:   h.server.URL + "/v1",
		Provider:  "loopback",
		MaxOutput: 500,
		Timeout:   500 * time.Millisecond,
	})
	return model, h, err
}

// harden puts the three policies around the model, over one cache. In production that
// would be Redis, so that all processes share the circuit and the allowance.
func harden(model provider.LLM, out io.Writer) (provider.LLM, error) {
	shared := memory.New()
	circuit, err := breaker.New(breaker.Config{
		Name:             model.Model(),
		Cache:            shared,
		FailureThreshold: 2,
		Classify:         provider.Classify,
	})
	if err != nil {
		return nil, err
	}
	allowance, err := ratelimit.New(60, time.Minute, ratelimit.Config{Name: model.Model(), Cache: shared})
	if err != nil {
		return nil, err
	}
	again, err := retry.New(provider.Retryable, retry.Config{
		MaxAttempts: 3,
		Backoff:     retry.Exponential{Base: 10 * time.Millisecond, Max: 10 * time.Second},
		OnRetry: func(_ context.Context, e retry.Event) {
			fmt.Fprintf(out, "    attempt %d: %v; again in %v\n", e.Attempt, e.Err, e.Delay)
		},
	})
	if err != nil {
		return nil, err
	}
	return provider.With(model, circuit, allowance.For("example"), again), nil
}

// advice says what went wrong and what to do about it, which differs for each of the
// errors and is why they have types.
func advice(err error) string {
	if refused, ok := errors.AsType[*provider.RequestError](err); ok {
		return fmt.Sprintf("nothing was asked, the %s %s", refused.Field, refused.Problem)
	}
	if over, ok := errors.AsType[*ratelimit.ExceededError](err); ok {
		return fmt.Sprintf("nothing was asked, come back in %v", over.RetryAfter())
	}
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		return fmt.Sprintf("nothing was asked, the circuit is %v", open.State)
	}
	if cut, ok := errors.AsType[*provider.TruncatedCompletionError](err); ok {
		return fmt.Sprintf("give the model more than %d tokens, %d went into reasoning", cut.MaxOutput, cut.Usage.Reasoning)
	}
	if empty, ok := errors.AsType[*provider.EmptyCompletionError](err); ok {
		return fmt.Sprintf("look at the prompt, the model said nothing but thought %q", empty.Reasoning)
	}
	if refused, ok := errors.AsType[*provider.RefusedCompletionError](err); ok {
		if refused.Filtered() {
			return "take a note of the document, a filter stopped it"
		}
		return fmt.Sprintf("take a note of the document, the model said %q", refused.Refusal)
	}
	if bad, ok := errors.AsType[*provider.MalformedCompletionError](err); ok {
		return fmt.Sprintf("look at the prompt or the model, it wrote %q", bad.Snippet)
	}
	switch {
	case errors.Is(err, provider.TooLong):
		return "split the document, it is too long"
	case errors.Is(err, provider.QuotaExhausted):
		return "top up the account"
	case errors.Is(err, provider.Unauthenticated):
		return "look at the key"
	}
	return err.Error()
}
