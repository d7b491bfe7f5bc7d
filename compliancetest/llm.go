package compliancetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience/provider"
)

// An LLMHarness says how to try the rules on an adapter for language models: how to
// have its host give a certain answer, and how to see what the host was asked. New is
// required.
//
// The host is usually a server on this machine that speaks the wire format. What the
// rules want of it is said in no vendor's words; the harness puts it into those of the
// host, and the adapter has to find its way back.
type LLMHarness struct {
	// New returns a model whose host does with each request what answer says for the
	// text in it. Every host is disposed of by HostedLLM.Close. The function may be
	// called by any number of goroutines at once.
	New func(answer func(text string) HostAnswer) (HostedLLM, error)

	// Cannot tells that the host has no way to give an answer of this kind: some have no
	// reasoning or no filter, or say nothing of the usage. The rules leave such answers out.
	// Nil means that it can give all of them.
	Cannot func(HostAnswer) bool

	// Bubble tells that model and host live in this process, without a connection, and
	// read the clock of package time. Run then puts each rule in a bubble of
	// [testing/synctest].
	Bubble bool
}

// A HostAnswer is what a host does with a request. The zero HostAnswer is a
// completion that says nothing.
type HostAnswer struct {
	// Completion is what it says, if Junk and Kind are empty. MaxOutput is for
	// the adapter to fill in and not for the host.
	Completion provider.Completion

	// Junk, if not empty, is the body of a response that is a success by its status
	// and no completion.
	Junk string

	// Kind, if not empty, is what goes wrong. Disconnected is a connection that breaks
	// before an answer; TimedOut is the host's own saying so, or a gateway's.
	Kind provider.Kind

	// Hint is how long the host asks to be left alone, together with a Kind. It is in
	// whole seconds. Zero means that it does not say.
	Hint time.Duration

	// Delay is how long the host takes for it, unless the connection ends before.
	Delay time.Duration
}

// A HostedLLM is a model together with a way to look at its host.
type HostedLLM struct {
	// LLM is what the rules are tried on.
	LLM provider.LLM
	// Requests returns what has reached the host so far.
	Requests func() []HostRequest
	// Close disposes of both. Nil means that there is nothing to dispose of.
	Close func() error
}

// A HostRequest is a request as the host understood it.
type HostRequest struct {
	Text   string
	System *string // nil if there was no system turn
}

// LLM returns the rules for an adapter for language models.
func LLM(h LLMHarness) Suite {
	if h.New == nil {
		panic("compliancetest: LLMHarness.New is nil")
	}
	open := func() (*llmTrial, func() error, error) {
		t := &llmTrial{harness: h}
		return t, t.close, nil
	}
	return Suite{bubble: h.Bubble, groups: []group{newGroup("LLM", open, llmRules)}}
}

// An llmTrial is what one rule is tried with.
type llmTrial struct {
	harness LLMHarness
	open    []HostedLLM
}

func (t *llmTrial) close() error {
	var errs []error
	for _, h := range t.open {
		if h.Close != nil {
			errs = append(errs, h.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("HostedLLM.Close: %w", err)
	}
	return nil
}

// record is what the rules have models extract.
type record struct {
	Name string `json:"name"`
	Born int    `json:"born,omitempty"`
}

const ada = `{"name":"Ada","born":1815}`

// saying is a completion as a model gives it that has said what it had to say.
func saying(text string) HostAnswer {
	return HostAnswer{Completion: provider.Completion{Text: text, Finish: provider.FinishStop}}
}

// hosted returns a model whose host always gives the answer, and whether it can.
func (t *llmTrial) hosted(a HostAnswer) (HostedLLM, bool) {
	if t.harness.Cannot != nil && t.harness.Cannot(a) {
		return HostedLLM{}, false
	}
	return t.hostedBy(func(string) HostAnswer { return a }), true
}

// host returns a model whose host always gives the answer, which every host can.
func (t *llmTrial) host(a HostAnswer) HostedLLM {
	h, can := t.hosted(a)
	if !can {
		failf("LLMHarness.Cannot is true of %s, which every host can give", a)
	}
	return h
}

func (t *llmTrial) hostedBy(answer func(text string) HostAnswer) HostedLLM {
	h, err := t.harness.New(answer)
	if err != nil {
		failf("LLMHarness.New: %w", err)
	}
	if h.LLM == nil || h.Requests == nil {
		failf("LLMHarness.New returned no LLM, or no Requests to look at its host")
	}
	t.open = append(t.open, h)
	return h
}

func (t *llmTrial) schema() *provider.Schema {
	s, err := provider.SchemaOf[record]()
	if err != nil {
		failf("%w", err)
	}
	return s
}

func (t *llmTrial) request(text string) provider.Request {
	return provider.Request{Text: text, Schema: t.schema()}
}

// complete makes a call that may fail, and looks at what is the same for all of them.
func (t *llmTrial) complete(ctx context.Context, h HostedLLM, r provider.Request) (json.RawMessage, error) {
	raw, err := h.LLM.Complete(ctx, r)
	if err != nil && raw != nil {
		failf("Complete returned %s together with the error %v, want nil", raw, err)
	}
	if err == nil {
		if r.Schema == nil {
			failf("Complete returned %s without a schema to match, want an error", raw)
		}
		if bad := r.Schema.Validate(raw); bad != nil {
			failf("Complete returned %s, which does not match the schema: %w", raw, bad)
		}
	}
	return raw, err
}

// fails returns the error of a call that the host answers so, and whether it can.
func (t *llmTrial) fails(a HostAnswer) (error, bool) {
	h, can := t.hosted(a)
	if !can {
		return nil, false
	}
	raw, err := t.complete(context.Background(), h, t.request("Ada, born 1815"))
	if err == nil {
		failf("for %s Complete returned %s, want an error", a, raw)
	}
	t.wantRequests(h, 1)
	return err, true
}

// wantCompletionError tries that the host's answer becomes an error of the type E,
// which is of the completion family and nothing else, and returns it.
func wantCompletionError[E error](t *llmTrial, a HostAnswer) (e E, can bool) {
	err, can := t.fails(a)
	if !can {
		return e, false
	}
	e, ok := errors.AsType[E](err)
	if !ok || !errors.Is(err, provider.ErrCompletion) {
		failf("for %s Complete returned %T (%w), want %T", a, err, err, e)
	}
	if _, both := errors.AsType[*provider.HostError](err); both {
		failf("for %s Complete returned an error of both families: %w", a, err)
	}
	return e, true
}

// wantHostError tries that a failure of the host becomes a HostError of its kind, and
// returns it.
func (t *llmTrial) wantHostError(a HostAnswer) (e *provider.HostError, can bool) {
	err, can := t.fails(a)
	if !can {
		return nil, false
	}
	e, ok := errors.AsType[*provider.HostError](err)
	if !ok || errors.Is(err, provider.ErrCompletion) {
		failf("for %s Complete returned %T (%w), want *provider.HostError", a, err, err)
	}
	return e, true
}

func (t *llmTrial) wantAnswer(a HostAnswer) {
	h, can := t.hosted(a)
	if !can {
		return
	}
	raw, err := t.complete(context.Background(), h, t.request("Ada, born 1815"))
	if err != nil {
		failf("for %s Complete returned the error %w, want %s", a, err, ada)
	}
	var got record
	if err := json.Unmarshal(raw, &got); err != nil || got != (record{"Ada", 1815}) {
		failf("for %s Complete returned %s, want %s", a, raw, ada)
	}
}

func (t *llmTrial) wantRequests(h HostedLLM, want int) {
	if got := len(h.Requests()); got != want {
		failf("the host got %d requests, want %d", got, want)
	}
}

// String says what the host was told to do.
func (a HostAnswer) String() string {
	switch {
	case a.Kind != "":
		return fmt.Sprintf("the failure %q", string(a.Kind))
	case a.Junk != "":
		return fmt.Sprintf("the body %q", a.Junk)
	}
	c := a.Completion
	return fmt.Sprintf("the completion {Text: %q, Reasoning: %q, Refusal: %q, Finish: %q, Usage: %+v}", c.Text, c.Reasoning, c.Refusal, string(c.Finish), c.Usage)
}
