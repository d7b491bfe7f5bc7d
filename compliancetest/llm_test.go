package compliancetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// fakes is a harness for the fake model, with something around it.
func fakes(wrap func(provider.LLM) provider.LLM) compliancetest.LLMHarness {
	return compliancetest.LLMHarness{Bubble: true, New: func(answer func(string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
		llm := fake.Func(func(text string) fake.Answer { return canned(answer(text)) })
		return compliancetest.HostedLLM{LLM: wrap(llm), Requests: func() []compliancetest.HostRequest {
			var seen []compliancetest.HostRequest
			for _, r := range llm.Requests() {
				seen = append(seen, asSeen(r))
			}
			return seen
		}}, nil
	}}
}

func TestTheFakeModelPasses(t *testing.T) {
	compliancetest.LLM(fakes(func(llm provider.LLM) provider.LLM { return llm })).Run(t)
}

// Policies that have nothing to say change nothing: what is around a model keeps the
// rules that the model keeps.
func TestAHardenedModelPasses(t *testing.T) {
	compliancetest.LLM(fakes(func(llm provider.LLM) provider.LLM {
		circuit, err := breaker.New(breaker.Config{FailureThreshold: 1000, Classify: provider.Classify})
		if err != nil {
			panic(err)
		}
		allowance, err := ratelimit.New(1000, time.Minute, ratelimit.Config{})
		if err != nil {
			panic(err)
		}
		return provider.With(llm, circuit, allowance.For("tenant"))
	})).Run(t)
}

// canned is the fake's way to do what a host would.
func canned(a compliancetest.HostAnswer) fake.Answer {
	switch {
	case a.Kind != "":
		return fake.Fail(hostError(a))
	case a.Junk != "":
		return fake.Fail(&provider.MalformedCompletionError{Schema: "record", Status: 200, Err: errors.New("junk")})
	}
	return fake.Answer{Completion: a.Completion, Delay: a.Delay}
}

func hostError(a compliancetest.HostAnswer) *provider.HostError {
	switch a.Kind {
	case provider.RateLimited, provider.Overloaded, provider.Unavailable, provider.TimedOut, provider.Conflict, provider.Disconnected:
		return &provider.HostError{Kind: a.Kind, Transient: true, Hint: a.Hint}
	}
	return &provider.HostError{Kind: a.Kind}
}

func asSeen(r provider.Request) compliancetest.HostRequest {
	seen := compliancetest.HostRequest{Text: r.Text}
	if r.System != "" {
		seen.System = &r.System
	}
	return seen
}

// A brokenLLM is a good adapter of which single parts can be replaced by worse ones.
type brokenLLM struct {
	answer func(string) compliancetest.HostAnswer

	model    func() string
	validate func(provider.Request) error
	arrive   func(context.Context) error                       // what is done about a context that is done
	send     func(provider.Request) compliancetest.HostRequest // what the host gets
	times    func(compliancetest.HostAnswer) int               // how often
	wait     func(context.Context, time.Duration) error        // for an answer that takes its time
	fail     func(compliancetest.HostAnswer) error             // what a failure or junk comes to
	gate     func(provider.Completion, *provider.Schema) (json.RawMessage, error)
	finally  func(json.RawMessage, error) (json.RawMessage, error)

	mu   sync.Mutex
	seen []compliancetest.HostRequest
}

func (b *brokenLLM) Model() string { return b.model() }

func (b *brokenLLM) Complete(ctx context.Context, r provider.Request) (json.RawMessage, error) {
	return b.finally(b.complete(ctx, r))
}

func (b *brokenLLM) complete(ctx context.Context, r provider.Request) (json.RawMessage, error) {
	if err := b.validate(r); err != nil {
		return nil, err
	}
	if err := b.arrive(ctx); err != nil {
		return nil, err
	}
	a := b.answer(r.Text)
	b.mu.Lock()
	for range b.times(a) {
		b.seen = append(b.seen, b.send(r))
	}
	b.mu.Unlock()
	if err := b.wait(ctx, a.Delay); err != nil {
		return nil, err
	}
	if a.Kind != "" || a.Junk != "" {
		return nil, b.fail(a)
	}
	return b.gate(a.Completion, r.Schema)
}

func goodLLM() *brokenLLM {
	return &brokenLLM{
		model:    func() string { return "good/v1" },
		validate: provider.Request.Validate,
		arrive:   resilience.ContextError,
		send:     asSeen,
		times:    func(compliancetest.HostAnswer) int { return 1 },
		wait: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return resilience.ContextError(ctx)
			case <-time.After(d):
				return nil
			}
		},
		fail:    func(a compliancetest.HostAnswer) error { return canned(a).Err },
		gate:    provider.Gate,
		finally: func(raw json.RawMessage, err error) (json.RawMessage, error) { return raw, err },
	}
}

func llmSuite(put func(*brokenLLM)) compliancetest.Suite {
	return compliancetest.LLM(compliancetest.LLMHarness{Bubble: true, New: func(answer func(string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
		b := goodLLM()
		b.answer = answer
		put(b)
		return compliancetest.HostedLLM{LLM: b, Requests: func() []compliancetest.HostRequest {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.Clone(b.seen)
		}}, nil
	}})
}

func TestEveryDefectOfAnAdapterIsCaughtByItsRule(t *testing.T) {
	for _, d := range llmDefects {
		t.Run(d.rule+": "+d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rule := "LLM/" + d.rule
				require.NoError(t, llmSuite(func(*brokenLLM) {}).Only(rule).Check(), "without the defect")
				broken, ok := errors.AsType[*compliancetest.RuleError](llmSuite(d.put).Only(rule).Check())
				require.True(t, ok, "the defect is not caught")
				assert.Equal(t, rule, broken.Rule)
			})
		})
	}
}

func TestEveryRuleForAdaptersIsBrokenByADefect(t *testing.T) {
	rules := map[string]bool{}
	for _, r := range llmSuite(func(*brokenLLM) {}).Rules() {
		assert.False(t, rules[r.Name], "%s is the name of two rules", r.Name)
		assert.NotEmpty(t, r.Why, r.Name)
		rules[r.Name] = true
		short := strings.TrimPrefix(r.Name, "LLM/")
		assert.True(t, slices.ContainsFunc(llmDefects, func(d llmDefect) bool { return d.rule == short }), "no defect breaks %s", r.Name)
	}
	for _, d := range llmDefects {
		assert.True(t, rules["LLM/"+d.rule], "there is no rule %s to catch %q", d.rule, d.name)
	}
}

func TestWhatAHostCannotDoIsLeftOut(t *testing.T) {
	h := compliancetest.LLMHarness{
		Cannot: func(a compliancetest.HostAnswer) bool {
			return a.Kind == provider.Conflict || a.Completion.Refusal != "" || a.Completion.Reasoning != ""
		},
		New: func(answer func(string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
			b := goodLLM()
			b.answer = func(text string) compliancetest.HostAnswer {
				a := answer(text)
				if a.Kind == provider.Conflict || a.Completion.Refusal != "" || a.Completion.Reasoning != "" {
					panic("it was asked for all the same")
				}
				return a
			}
			return compliancetest.HostedLLM{LLM: b, Requests: func() []compliancetest.HostRequest { return slices.Clone(b.seen) }}, nil
		},
	}
	synctest.Test(t, func(t *testing.T) { assert.NoError(t, compliancetest.LLM(h).Check()) })

	h.Cannot = func(compliancetest.HostAnswer) bool { return true }
	synctest.Test(t, func(t *testing.T) {
		assert.ErrorContains(t, compliancetest.LLM(h).Check(), "which every host can give", "a harness cannot have everything left out")
	})
}

func TestAnAdapterHarnessIsLookedAt(t *testing.T) {
	assert.PanicsWithValue(t, "compliancetest: LLMHarness.New is nil", func() { compliancetest.LLM(compliancetest.LLMHarness{}) })

	cause := errors.New("no port")
	assert.ErrorIs(t, compliancetest.LLM(compliancetest.LLMHarness{New: func(func(string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
		return compliancetest.HostedLLM{}, cause
	}}).Only("LLM/answer-is-returned").Check(), cause)

	assert.ErrorContains(t, compliancetest.LLM(compliancetest.LLMHarness{New: func(func(string) compliancetest.HostAnswer) (compliancetest.HostedLLM, error) {
		return compliancetest.HostedLLM{LLM: goodLLM()}, nil
	}}).Only("LLM/answer-is-returned").Check(), "no Requests")
}
