package compliancetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
)

var llmRules = []rule[*llmTrial]{
	{
		name: "model-names-itself",
		why:  "the name is kept with every record, and one without provider and version cannot be asked for later",
		check: func(t *llmTrial) {
			h := t.host(saying(ada))
			name := h.LLM.Model()
			if err := provider.CheckModel(name); err != nil {
				failf("%w", err)
			}
			if _, err := t.complete(context.Background(), h, t.request("Ada")); err != nil {
				failf("%w", err)
			}
			if again := h.LLM.Model(); again != name {
				failf("Model returned %q and then %q", name, again)
			}
		},
	},
	{
		name: "answer-is-returned",
		why:  "it is what the call is made for",
		check: func(t *llmTrial) {
			t.wantAnswer(saying(ada))
			t.wantAnswer(saying(" \n" + ada + "\n"))
			t.wantAnswer(saying("```json\n" + ada + "\n```"))
		},
	},
	{
		name: "answer-passes-the-gate",
		why:  "a caller who gets no error has data that matches the schema, whatever the host was asked to keep to",
		check: func(t *llmTrial) {
			for _, text := range []string{
				"Her name was Ada.", `{"name":"Ada"`, `{"nom":"Ada"}`, `{"name":1815}`, `[]`, `null`, ada + ada, "Here it is: " + ada,
			} {
				if e, can := wantCompletionError[*provider.MalformedCompletionError](t, saying(text)); can {
					if e.Err == nil || e.Schema != t.schema().Name() || e.Snippet == "" {
						failf("for %q the error lacks its schema, snippet or cause: %+v", text, *e)
					}
				}
			}
		},
	},
	{
		name: "empty-is-an-error",
		why:  "an empty result would be a claim about the text, and the finish reason tells what to mend",
		check: func(t *llmTrial) {
			for _, text := range []string{"", " \n\t"} {
				e, can := wantCompletionError[*provider.EmptyCompletionError](t, saying(text))
				if can && e.Finish != provider.FinishStop {
					failf("the finish reason is %q, want %q", e.Finish, provider.FinishStop)
				}
			}
		},
	},
	{
		name: "truncated-is-an-error",
		why:  "part of an answer may look like a whole one, and a larger budget is the remedy, not another try",
		check: func(t *llmTrial) {
			for _, text := range []string{"", `{"name":"A`, ada, "ok"} {
				a := saying(text)
				a.Completion.Finish = provider.FinishLength
				e, can := wantCompletionError[*provider.TruncatedCompletionError](t, a)
				if can && e.Text != text {
					failf("the partial text is %q, want %q", e.Text, text)
				}
			}
		},
	},
	{
		name: "refusal-is-an-error",
		why:  "it is a lasting property of the text, and the model's words say so to whoever looks into it",
		check: func(t *llmTrial) {
			a := HostAnswer{Completion: provider.Completion{Refusal: "I cannot help with that.", Finish: provider.FinishStop}}
			e, can := wantCompletionError[*provider.RefusedCompletionError](t, a)
			if can && (e.Filtered() || e.Refusal != a.Completion.Refusal) {
				failf("the error says filtered: %v, refusal: %q; want the model's own %q", e.Filtered(), e.Refusal, a.Completion.Refusal)
			}
		},
	},
	{
		name: "filter-is-an-error",
		why:  "what a filter has cut is no answer, and whether the model or a filter declined decides whom to ask about it",
		check: func(t *llmTrial) {
			for _, text := range []string{"", `{"name":"A`, ada} {
				a := saying(text)
				a.Completion.Finish = provider.FinishFiltered
				e, can := wantCompletionError[*provider.RefusedCompletionError](t, a)
				if can && (!e.Filtered() || e.Text != text) {
					failf("the error says filtered: %v, partial text: %q; want true and %q", e.Filtered(), e.Text, text)
				}
			}
		},
	},
	{
		name: "reasoning-is-no-answer",
		why:  "what a model considered on the way is not what it says",
		check: func(t *llmTrial) {
			a := saying(ada)
			a.Completion.Reasoning = `{"name":"Charles","born":1791}`
			t.wantAnswer(a)

			a = saying("")
			a.Completion.Reasoning = ada
			e, can := wantCompletionError[*provider.EmptyCompletionError](t, a)
			if can && e.Reasoning != ada {
				failf("the error's reasoning is %q, want %q", e.Reasoning, ada)
			}
		},
	},
	{
		name: "usage-is-kept",
		why:  "a call that came to nothing was paid for all the same, and the error is where its cost can be read",
		check: func(t *llmTrial) {
			a := HostAnswer{Completion: provider.Completion{Finish: provider.FinishLength, Usage: provider.Usage{Input: 31, Output: 41, Reasoning: 40}}}
			e, can := wantCompletionError[*provider.TruncatedCompletionError](t, a)
			if can && e.Usage != a.Completion.Usage {
				failf("the usage is %+v, want %+v", e.Usage, a.Completion.Usage)
			}
		},
	},
	{
		name: "junk-is-an-error",
		why:  "a proxy's page must be told from a model's answer, and must not crash anybody",
		check: func(t *llmTrial) {
			for _, body := range []string{"<html>Sign in</html>", "{}", "null", "[]", " ", `"ok"`, "{"} {
				e, can := wantCompletionError[*provider.MalformedCompletionError](t, HostAnswer{Junk: body})
				if can && e.Err == nil {
					failf("for the body %q the error has no cause", body)
				}
			}
		},
	},
	{
		name: "text-and-prompt-arrive-as-they-are",
		why:  "what a model was asked must be what the caller's code says, to be asked again in a year",
		check: func(t *llmTrial) {
			h := t.host(saying(ada))
			r := t.request(" Ada,\tborn <1815> & \"d.\" 1852 \u2028\U0001f469\u200d\U0001f4bb\r\n")
			r.System = "  Take it from the text.\n\n%s {{.}} \\ \x01"
			if _, err := t.complete(context.Background(), h, r); err != nil {
				failf("%w", err)
			}
			t.wantRequests(h, 1)
			got := h.Requests()[0]
			if got.Text != r.Text {
				failf("the host got the text %q, want %q", got.Text, r.Text)
			}
			if got.System == nil || *got.System != r.System {
				failf("the host got the prompt %v, want %q", quoted(got.System), r.System)
			}
		},
	},
	{
		name: "no-prompt-is-no-prompt",
		why:  "a prompt that an adapter makes up is in nobody's code, and changes with the adapter",
		check: func(t *llmTrial) {
			h := t.host(saying(ada))
			if _, err := t.complete(context.Background(), h, t.request("Ada")); err != nil {
				failf("%w", err)
			}
			t.wantRequests(h, 1)
			if got := h.Requests()[0]; got.System != nil {
				failf("the host got the prompt %v, want none", quoted(got.System))
			}
		},
	},
	{
		name: "bad-request-makes-no-call",
		why:  "there is nothing in blank text, and asking costs money and a slot of the allowance",
		check: func(t *llmTrial) {
			h := t.host(saying(ada))
			bad := []provider.Request{t.request(""), t.request(" \n\t\u00a0\u200b"), t.request("caf\xe9"), {Text: "Ada"}}
			for _, r := range bad {
				_, err := t.complete(context.Background(), h, r)
				if e, ok := errors.AsType[*provider.RequestError](err); !ok || !errors.Is(err, resilience.ErrRejected) {
					failf("for the text %q Complete returned %T (%w), want %T", r.Text, err, err, e)
				}
			}
			t.wantRequests(h, 0)
		},
	},
	{
		name: "one-call-is-one-request",
		why:  "a retry around an adapter that retries multiplies, and nobody sees by how much",
		check: func(t *llmTrial) {
			for _, kind := range []provider.Kind{provider.Unavailable, provider.Overloaded, provider.RateLimited, provider.TimedOut, provider.Conflict, provider.Disconnected} {
				t.fails(HostAnswer{Kind: kind})
			}
			t.fails(saying(""))
			t.fails(saying("no JSON"))
		},
	},
	{
		name: "failures-are-told-apart",
		why:  "what to do next differs for each of them, and nobody should need a vendor's words to know",
		check: func(t *llmTrial) {
			for _, kind := range slices.Concat(lasting, passing) {
				if e, can := t.wantHostError(HostAnswer{Kind: kind}); can && e.Kind != kind {
					failf("for the failure %q the kind is %q", string(kind), string(e.Kind))
				}
			}
		},
	},
	{
		name: "lasting-failures-are-not-transient",
		why:  "the same request will fail in the same way, and each try costs as much as the first",
		check: func(t *llmTrial) {
			for _, kind := range lasting {
				e, can := t.wantHostError(HostAnswer{Kind: kind, Hint: 30 * time.Second})
				if can && e.Transient {
					failf("the failure %q is transient, want not", string(kind))
				}
				if can && e.Hint != 0 {
					failf("the failure %q is no passing one and has a hint, %v, want none", string(kind), e.Hint)
				}
			}
		},
	},
	{
		name: "passing-failures-are-transient",
		why:  "a retry goes by it, and would give up on what the next second mends",
		check: func(t *llmTrial) {
			for _, kind := range passing {
				if e, can := t.wantHostError(HostAnswer{Kind: kind}); can && !e.Transient {
					failf("the failure %q is not transient, want so", string(kind))
				}
			}
		},
	},
	{
		name: "hint-is-carried",
		why:  "who comes back earlier than the host asks is refused again, and perhaps for longer",
		check: func(t *llmTrial) {
			for _, kind := range []provider.Kind{provider.RateLimited, provider.Overloaded} {
				for _, want := range []time.Duration{time.Second, 90 * time.Second, 0} {
					e, can := t.wantHostError(HostAnswer{Kind: kind, Hint: want})
					if !can {
						continue
					}
					if got, _ := resilience.RetryAfter(e); got != want {
						failf("the host asked for %v, and RetryAfter is %v", want, got)
					}
				}
			}
		},
	},
	{
		name: "done-context-makes-no-call",
		why:  "nobody is there any more to want the answer",
		check: func(t *llmTrial) {
			h := t.host(saying(ada))
			cause := errors.New("left")
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(cause)
			_, err := t.complete(ctx, h, t.request("Ada"))
			wantContextError(err, context.Canceled, cause)
			t.wantRequests(h, 0)
		},
	},
	{
		name: "context-ends-the-call",
		why:  "a caller who leaves must not be held, nor be taken for the host's failure",
		check: func(t *llmTrial) {
			slow := saying(ada)
			slow.Delay = 3 * time.Second
			h := t.host(slow)
			cause := errors.New("left")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			begun := time.Now()
			time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
			_, err := t.complete(ctx, h, t.request("Ada"))
			wantContextError(err, context.Canceled, cause)
			wantSooner(begun, slow.Delay)

			begun = time.Now()
			late, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer stop()
			_, err = t.complete(late, h, t.request("Ada"))
			wantContextError(err, context.DeadlineExceeded, context.DeadlineExceeded)
			wantSooner(begun, slow.Delay)
		},
	},
	{
		name: "concurrent-calls-stay-apart",
		why:  "an LLM serves a whole program, and one caller's data must not reach another",
		check: func(t *llmTrial) {
			h := t.hostedBy(func(text string) HostAnswer { return saying(fmt.Sprintf(`{"name":%q}`, text)) })
			var wg sync.WaitGroup
			wrong := make(chan error, 16)
			for i := range cap(wrong) {
				wg.Go(func() {
					text := fmt.Sprintf("caller %d", i)
					got, err := provider.Extract[record](context.Background(), h.LLM, provider.Request{Text: text})
					if err == nil && got.Name != text {
						err = fmt.Errorf("%q was answered with the record of %q", text, got.Name)
					}
					wrong <- err
				})
			}
			wg.Wait()
			for range cap(wrong) {
				if err := <-wrong; err != nil {
					failf("%w", err)
				}
			}
			t.wantRequests(h, cap(wrong))
		},
	},
}

var (
	lasting = []provider.Kind{
		provider.Unauthenticated, provider.Forbidden, provider.NotFound, provider.TooLong,
		provider.InvalidRequest, provider.QuotaExhausted,
	}
	passing = []provider.Kind{
		provider.RateLimited, provider.Overloaded, provider.Unavailable, provider.TimedOut, provider.Disconnected,
	}
)

func wantContextError(err, want, cause error) {
	if !errors.Is(err, want) || !errors.Is(err, cause) {
		failf("the error is %T (%w), want one that matches %v and %v", err, err, want, cause)
	}
	if _, ok := errors.AsType[*provider.HostError](err); ok || errors.Is(err, provider.ErrCompletion) {
		failf("the error is %T (%w), want the context's own", err, err)
	}
}

func wantSooner(begun time.Time, than time.Duration) {
	if took := time.Since(begun); took >= than {
		failf("Complete returned after %v, with the host's answer, and its caller had left", took)
	}
}

func quoted(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}
