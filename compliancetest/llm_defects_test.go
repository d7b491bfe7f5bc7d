package compliancetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/provider"
)

// An llmDefect is one way for an adapter to break one rule.
type llmDefect struct {
	rule string
	name string
	put  func(b *brokenLLM)
}

// before changes what the gate gets to see.
func before(change func(c *provider.Completion)) func(*brokenLLM) {
	return func(b *brokenLLM) {
		b.gate = func(c provider.Completion, s *provider.Schema) (json.RawMessage, error) {
			change(&c)
			return provider.Gate(c, s)
		}
	}
}

// instead changes what the gate says.
func instead(change func(c provider.Completion, raw json.RawMessage, err error) (json.RawMessage, error)) func(*brokenLLM) {
	return func(b *brokenLLM) {
		b.gate = func(c provider.Completion, s *provider.Schema) (json.RawMessage, error) {
			raw, err := provider.Gate(c, s)
			return change(c, raw, err)
		}
	}
}

// failing changes what a failure of the host comes to.
func failing(change func(a compliancetest.HostAnswer, e *provider.HostError) error) func(*brokenLLM) {
	return func(b *brokenLLM) {
		good := b.fail
		b.fail = func(a compliancetest.HostAnswer) error {
			err := good(a)
			if e, ok := errors.AsType[*provider.HostError](err); ok {
				return change(a, e)
			}
			return err
		}
	}
}

func is[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

var llmDefects = []llmDefect{
	{rule: "model-names-itself", name: "it is a bare name", put: func(b *brokenLLM) { b.model = func() string { return "good-v1" } }},
	{rule: "model-names-itself", name: "it has no version", put: func(b *brokenLLM) { b.model = func() string { return "good/model" } }},
	{rule: "model-names-itself", name: "it changes", put: func(b *brokenLLM) {
		b.model = func() string { return fmt.Sprintf("good/v%d", len(b.seen)) }
	}},
	{rule: "answer-is-returned", name: "a fence is taken for the answer", put: instead(func(c provider.Completion, raw json.RawMessage, err error) (json.RawMessage, error) {
		if strings.HasPrefix(c.Text, "```") {
			return nil, &provider.MalformedCompletionError{Completion: c, Err: io.ErrUnexpectedEOF}
		}
		return raw, err
	})},
	{rule: "answer-is-returned", name: "it is another one", put: before(func(c *provider.Completion) { c.Text = strings.ReplaceAll(c.Text, "1815", "1816") })},
	{rule: "answer-passes-the-gate", name: "there is no gate", put: func(b *brokenLLM) {
		b.gate = func(c provider.Completion, _ *provider.Schema) (json.RawMessage, error) {
			return json.RawMessage(c.Text), nil
		}
	}},
	{rule: "answer-passes-the-gate", name: "it asks only whether it is JSON", put: func(b *brokenLLM) {
		b.gate = func(c provider.Completion, s *provider.Schema) (json.RawMessage, error) {
			if json.Valid([]byte(c.Text)) {
				return json.RawMessage(c.Text), nil
			}
			return provider.Gate(c, s)
		}
	}},
	{rule: "answer-passes-the-gate", name: "the first value will do", put: before(func(c *provider.Completion) {
		if i := strings.Index(c.Text, "}{"); i >= 0 {
			c.Text = c.Text[:i+1]
		}
	})},
	{rule: "answer-passes-the-gate", name: "prose is skipped", put: before(func(c *provider.Completion) { c.Text = c.Text[max(0, strings.Index(c.Text, "{")):] })},
	{rule: "answer-passes-the-gate", name: "the answer comes with the error", put: func(b *brokenLLM) {
		b.finally = func(raw json.RawMessage, err error) (json.RawMessage, error) { return json.RawMessage("{}"), err }
	}},
	{rule: "answer-passes-the-gate", name: "the error has lost its cause", put: instead(func(c provider.Completion, raw json.RawMessage, err error) (json.RawMessage, error) {
		if is[*provider.MalformedCompletionError](err) {
			return nil, &provider.MalformedCompletionError{Schema: "record", Snippet: c.Text}
		}
		return raw, err
	})},
	{rule: "empty-is-an-error", name: "it is an empty record", put: before(func(c *provider.Completion) {
		if strings.TrimSpace(c.Text) == "" {
			c.Text = `{"name":""}`
		}
	})},
	{rule: "empty-is-an-error", name: "the reason is lost", put: before(func(c *provider.Completion) { c.Finish = "" })},
	{rule: "empty-is-an-error", name: "it is taken for bad JSON", put: instead(func(c provider.Completion, raw json.RawMessage, err error) (json.RawMessage, error) {
		if is[*provider.EmptyCompletionError](err) {
			return nil, &provider.MalformedCompletionError{Completion: c, Err: io.EOF}
		}
		return raw, err
	})},
	{rule: "truncated-is-an-error", name: "the reason is not looked at", put: before(func(c *provider.Completion) { c.Finish = provider.FinishStop })},
	{rule: "truncated-is-an-error", name: "what is valid is taken", put: func(b *brokenLLM) {
		b.gate = func(c provider.Completion, s *provider.Schema) (json.RawMessage, error) {
			if s.Validate(json.RawMessage(c.Text)) == nil {
				return json.RawMessage(c.Text), nil
			}
			return provider.Gate(c, s)
		}
	}},
	{rule: "truncated-is-an-error", name: "the text is lost", put: before(func(c *provider.Completion) {
		if c.Finish == provider.FinishLength {
			c.Text = ""
		}
	})},
	{rule: "refusal-is-an-error", name: "it is not looked at", put: before(func(c *provider.Completion) { c.Refusal = "" })},
	{rule: "refusal-is-an-error", name: "it is taken for the answer", put: before(func(c *provider.Completion) { c.Text, c.Refusal = c.Text+c.Refusal, "" })},
	{rule: "refusal-is-an-error", name: "it is blamed on a filter", put: before(func(c *provider.Completion) {
		if c.Refusal != "" {
			c.Finish = provider.FinishFiltered
		}
	})},
	{rule: "filter-is-an-error", name: "what is left is taken", put: before(func(c *provider.Completion) { c.Finish = provider.FinishStop })},
	{rule: "filter-is-an-error", name: "it is blamed on the model", put: before(func(c *provider.Completion) {
		if c.Finish == provider.FinishFiltered {
			c.Finish = provider.FinishRefused
		}
	})},
	{rule: "filter-is-an-error", name: "it is taken for a bad request", put: instead(func(_ provider.Completion, raw json.RawMessage, err error) (json.RawMessage, error) {
		if is[*provider.RefusedCompletionError](err) {
			return nil, provider.StatusError(400)
		}
		return raw, err
	})},
	{rule: "reasoning-is-no-answer", name: "it stands in for one", put: before(func(c *provider.Completion) {
		if c.Text == "" {
			c.Text = c.Reasoning
		}
	})},
	{rule: "reasoning-is-no-answer", name: "it is put in front", put: before(func(c *provider.Completion) { c.Text = c.Reasoning + c.Text })},
	{rule: "reasoning-is-no-answer", name: "it is lost", put: before(func(c *provider.Completion) { c.Reasoning = "" })},
	{rule: "junk-is-an-error", name: "it is an empty record", put: func(b *brokenLLM) {
		good := b.fail
		b.fail = func(a compliancetest.HostAnswer) error {
			if a.Junk != "" {
				return nil
			}
			return good(a)
		}
		b.finally = func(raw json.RawMessage, err error) (json.RawMessage, error) {
			if raw == nil && err == nil {
				return json.RawMessage(`{"name":""}`), nil
			}
			return raw, err
		}
	}},
	{rule: "junk-is-an-error", name: "it is a decoder's error", put: func(b *brokenLLM) {
		good := b.fail
		b.fail = func(a compliancetest.HostAnswer) error {
			if a.Junk == "{" {
				return io.ErrUnexpectedEOF
			}
			return good(a)
		}
	}},
	{rule: "text-and-prompt-arrive-as-they-are", name: "the text is trimmed", put: func(b *brokenLLM) {
		b.send = func(r provider.Request) compliancetest.HostRequest {
			r.Text = strings.TrimSpace(r.Text)
			return asSeen(r)
		}
	}},
	{rule: "text-and-prompt-arrive-as-they-are", name: "the prompt is trimmed", put: func(b *brokenLLM) {
		b.send = func(r provider.Request) compliancetest.HostRequest {
			r.System = strings.TrimSpace(r.System)
			return asSeen(r)
		}
	}},
	{rule: "text-and-prompt-arrive-as-they-are", name: "the prompt is dropped", put: func(b *brokenLLM) {
		b.send = func(r provider.Request) compliancetest.HostRequest {
			return compliancetest.HostRequest{Text: r.Text}
		}
	}},
	{rule: "text-and-prompt-arrive-as-they-are", name: "the prompt is put before the text", put: func(b *brokenLLM) {
		b.send = func(r provider.Request) compliancetest.HostRequest {
			return compliancetest.HostRequest{Text: r.System + r.Text}
		}
	}},
	{rule: "no-prompt-is-no-prompt", name: "it makes one up", put: func(b *brokenLLM) {
		b.send = func(r provider.Request) compliancetest.HostRequest {
			if r.System == "" {
				r.System = "Answer in JSON."
			}
			return asSeen(r)
		}
	}},
	{rule: "usage-is-kept", name: "it is not read", put: before(func(c *provider.Completion) { c.Usage = provider.Usage{} })},
	{rule: "usage-is-kept", name: "reasoning is taken off the output", put: before(func(c *provider.Completion) { c.Usage.Output -= c.Usage.Reasoning })},
	{rule: "lasting-failures-are-not-transient", name: "one has a hint", put: failing(func(a compliancetest.HostAnswer, e *provider.HostError) error {
		if e.Kind == provider.QuotaExhausted {
			e.Hint = a.Hint
		}
		return e
	})},
	{rule: "no-prompt-is-no-prompt", name: "it sends an empty one", put: func(b *brokenLLM) {
		b.send = func(r provider.Request) compliancetest.HostRequest {
			return compliancetest.HostRequest{Text: r.Text, System: &r.System}
		}
	}},
	{rule: "bad-request-makes-no-call", name: "it is not looked at", put: func(b *brokenLLM) {
		b.validate = func(r provider.Request) error {
			if r.Schema == nil {
				return r.Validate()
			}
			return nil
		}
	}},
	{rule: "bad-request-makes-no-call", name: "the host is asked first", put: func(b *brokenLLM) {
		b.validate = func(r provider.Request) error {
			b.seen = append(b.seen, asSeen(r))
			return r.Validate()
		}
	}},
	{rule: "bad-request-makes-no-call", name: "it is an empty completion", put: func(b *brokenLLM) {
		b.validate = func(r provider.Request) error {
			if r.Validate() != nil {
				return &provider.EmptyCompletionError{}
			}
			return nil
		}
	}},
	{rule: "one-call-is-one-request", name: "it tries again", put: func(b *brokenLLM) {
		b.times = func(a compliancetest.HostAnswer) int {
			if a.Kind == provider.Overloaded {
				return 3
			}
			return 1
		}
	}},
	{rule: "one-call-is-one-request", name: "it asks again for a better answer", put: func(b *brokenLLM) {
		b.times = func(a compliancetest.HostAnswer) int {
			if a.Completion.Text == "no JSON" {
				return 2
			}
			return 1
		}
	}},
	{rule: "failures-are-told-apart", name: "a quota is taken for a rate limit", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		if e.Kind == provider.QuotaExhausted {
			e.Kind = provider.RateLimited
		}
		return e
	})},
	{rule: "failures-are-told-apart", name: "a long text is taken for a bad request", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		if e.Kind == provider.TooLong {
			e.Kind = provider.InvalidRequest
		}
		return e
	})},
	{rule: "failures-are-told-apart", name: "the vendor's error comes through", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		if e.Kind == provider.Disconnected {
			return io.ErrUnexpectedEOF
		}
		return e
	})},
	{rule: "failures-are-told-apart", name: "it is of both families", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		return errors.Join(e, provider.ErrCompletion)
	})},
	{rule: "lasting-failures-are-not-transient", name: "an exhausted quota is", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		e.Transient = e.Transient || e.Kind == provider.QuotaExhausted
		return e
	})},
	{rule: "passing-failures-are-transient", name: "a broken connection is not", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		e.Transient = e.Transient && e.Kind != provider.Disconnected
		return e
	})},
	{rule: "hint-is-carried", name: "it is lost", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		e.Hint = 0
		return e
	})},
	{rule: "hint-is-carried", name: "it is made up", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		if e.Hint == 0 {
			e.Hint = time.Second
		}
		return e
	})},
	{rule: "hint-is-carried", name: "it is cut short", put: failing(func(_ compliancetest.HostAnswer, e *provider.HostError) error {
		e.Hint = min(e.Hint, time.Minute)
		return e
	})},
	{rule: "done-context-makes-no-call", name: "it is noticed too late", put: func(b *brokenLLM) {
		b.arrive = func(ctx context.Context) error {
			if ctx.Err() != nil {
				b.seen = append(b.seen, compliancetest.HostRequest{})
			}
			return resilience.ContextError(ctx)
		}
	}},
	{rule: "done-context-makes-no-call", name: "its cause is lost", put: func(b *brokenLLM) {
		b.arrive = func(ctx context.Context) error { return ctx.Err() }
	}},
	{rule: "context-ends-the-call", name: "the call goes on", put: func(b *brokenLLM) {
		b.wait = func(_ context.Context, d time.Duration) error {
			time.Sleep(d)
			return nil
		}
	}},
	{rule: "context-ends-the-call", name: "it is looked at when the answer is there", put: func(b *brokenLLM) {
		b.wait = func(ctx context.Context, d time.Duration) error {
			time.Sleep(d)
			return resilience.ContextError(ctx)
		}
	}},
	{rule: "context-ends-the-call", name: "a deadline is looked at when the answer is there", put: func(b *brokenLLM) {
		good := b.wait
		b.wait = func(ctx context.Context, d time.Duration) error {
			if _, ok := ctx.Deadline(); !ok {
				return good(ctx, d)
			}
			time.Sleep(d)
			return resilience.ContextError(ctx)
		}
	}},
	{rule: "context-ends-the-call", name: "it is taken for a broken connection", put: func(b *brokenLLM) {
		good := b.wait
		b.wait = func(ctx context.Context, d time.Duration) error {
			if err := good(ctx, d); err != nil {
				return &provider.HostError{Kind: provider.Disconnected, Transient: true, Err: err}
			}
			return nil
		}
	}},
	{rule: "context-ends-the-call", name: "a deadline is taken for the host's timeout", put: func(b *brokenLLM) {
		good := b.wait
		b.wait = func(ctx context.Context, d time.Duration) error {
			err := good(ctx, d)
			if errors.Is(err, context.DeadlineExceeded) {
				return &provider.HostError{Kind: provider.TimedOut, Transient: true, Err: err}
			}
			return err
		}
	}},
	{rule: "concurrent-calls-stay-apart", name: "the last answer is everybody's", put: func(b *brokenLLM) {
		var last json.RawMessage
		b.finally = func(raw json.RawMessage, err error) (json.RawMessage, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if last == nil {
				last = raw
			}
			return last, err
		}
	}},
}
