package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
)

type Invoice struct {
	Number string  `json:"number" jsonschema:"as printed on it"`
	Total  float64 `json:"total"`
}

func ExampleExtract() {
	llm := fake.Match(
		fake.Rule{Contains: "A-17", Answer: fake.JSON(Invoice{"A-17", 12.5})},
		fake.Rule{Contains: "recipe", Answer: fake.JSON(`{"number": null}`)},
	)
	for _, text := range []string{"Invoice A-17 over 12.50", "A recipe for scones", " \n"} {
		invoice, err := provider.Extract[Invoice](context.Background(), llm, provider.Request{
			Text:   text,
			System: "Take the invoice's number and total from the text.",
		})
		var refused *provider.RequestError
		switch {
		case errors.Is(err, provider.ErrCompletion):
			fmt.Println("the model gave no usable answer")
		case errors.As(err, &refused):
			fmt.Println("not asked:", refused.Field, refused.Problem)
		default:
			fmt.Println(invoice.Number, invoice.Total)
		}
	}
	// Output:
	// A-17 12.5
	// the model gave no usable answer
	// not asked: Text is blank
}

func ExampleWith() {
	// Once for the process; in production the cache is Redis, so that all of them agree.
	shared := memory.New()
	circuit, _ := breaker.New(breaker.Config{Name: "fake", Cache: shared, Classify: provider.Classify})
	allowance, _ := ratelimit.New(60, time.Minute, ratelimit.Config{Name: "fake", Cache: shared})
	again, _ := retry.New(provider.Retryable, retry.Config{Backoff: retry.Constant(time.Millisecond)})

	host := fake.Script(
		fake.Fail(provider.StatusError(503)),
		fake.JSON(Invoice{"A-17", 12.5}),
	)
	// Once for each tenant.
	llm := provider.With(host, circuit, allowance.For("tenant-1"), again)

	invoice, err := provider.Extract[Invoice](context.Background(), llm, provider.Request{Text: "Invoice A-17 over 12.50"})
	left, _ := allowance.Remaining(context.Background(), "tenant-1")
	fmt.Println(invoice.Number, err)
	fmt.Println(llm.Model(), "was asked", len(host.Requests()), "times for one slot,", left, "are left")
	// Output:
	// A-17 <nil>
	// fake/canned-v1 was asked 2 times for one slot, 59 are left
}

// A client for a host of one's own takes one method, and the gate does the rest.
type homemade struct {
	call func(ctx context.Context, text string) (answer string, cut bool, err error)
}

func (homemade) Model() string { return "homemade/v1" }

func (h homemade) Complete(ctx context.Context, r provider.Request) (json.RawMessage, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	answer, cut, err := h.call(ctx, r.Text)
	if done := resilience.ContextError(ctx); err != nil && done != nil {
		return nil, done
	} else if err != nil {
		return nil, &provider.HostError{Kind: provider.Disconnected, Transient: true, Err: err}
	}
	c := provider.Completion{Text: answer, Finish: provider.FinishStop}
	if cut {
		c.Finish = provider.FinishLength
	}
	return provider.Gate(c, r.Schema)
}

func ExampleGate() {
	llm := homemade{func(context.Context, string) (string, bool, error) {
		return "```json\n{\"number\": \"A-17\", \"tot", true, nil
	}}
	_, err := provider.Extract[Invoice](context.Background(), llm, provider.Request{Text: "Invoice A-17 over 12.50"})
	fmt.Println(err)
	var truncated *provider.TruncatedCompletionError
	fmt.Println(errors.As(err, &truncated), truncated.Text)
	// Output:
	// provider: completion is truncated
	// true ```json
	// {"number": "A-17", "tot
}

func ExampleSchemaOf() {
	schema, _ := provider.SchemaOf[Invoice]()
	fmt.Println(schema.Name())
	fmt.Println(string(schema.JSON()))
	// Output:
	// Invoice
	// {"type":"object","properties":{"number":{"type":"string","description":"as printed on it"},"total":{"type":"number"}},"required":["number","total"],"additionalProperties":false}
}

func ExampleHostError() {
	err := error(&provider.HostError{Kind: provider.TooLong, Status: 400, Message: "at most 8192 tokens"})
	if errors.Is(err, provider.TooLong) {
		fmt.Println("split the document:", err)
	}
	// Output: split the document: provider: the request is too long (status 400): at most 8192 tokens
}

func ExampleClassifyRateLimit() {
	classify := provider.ClassifyRateLimit(breaker.Failure)
	ctx := context.Background()
	fmt.Println(classify(ctx, provider.StatusError(429)), provider.Classify(ctx, provider.StatusError(429)))
	// Output: failure neutral
}
