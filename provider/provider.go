// Package provider calls language models for one purpose: to turn text into data
// that has been checked against a schema. [Extract] does that for a Go type,
// [LLM] is the port an adapter implements, and [With] puts the toolkit's policies
// around any of them:
//
//	llm := provider.With(host, circuit, allowance.For(tenant), again)
//	...
//	invoice, err := provider.Extract[Invoice](ctx, llm, provider.Request{Text: document, System: prompt})
//
// This is the only package of the toolkit that knows what a model is. Messages,
// roles, token budgets, response formats and streams are the adapter's business and
// stop at the port. There is no default prompt: what a model was asked is in the
// caller's code, or it is nowhere. A fake for tests is in provider/fake, an adapter
// for hosts that speak OpenAI's wire format in provider/openai, a module of its own.
// The suite of compliancetest tries every rule stated here on an adapter.
//
// # Zero values and concurrency
//
// An [LLM], a [Schema] and the results of [With] may be used by any number of
// goroutines at once. A Schema comes from [SchemaOf] or [NewSchema]; its zero value
// is of no use. The zero of every other type here is an empty one.
//
// # Errors
//
// What comes back is valid, or one of these:
//
//   - A [*RequestError], which matches [resilience.ErrRejected]: the request was
//     refused on this side and no call was made, because its text was blank, say.
//   - A completion error, which matches [ErrCompletion]: the host answered, and its
//     answer cannot be used. [*EmptyCompletionError], [*TruncatedCompletionError],
//     [*RefusedCompletionError] and [*MalformedCompletionError] are siblings, because
//     each calls for another response; none is worth a second try as it stands.
//   - A [*HostError]: something went wrong below a completion. Its [Kind] says what,
//     in no vendor's words, and is matched by [errors.Is]; Transient says whether the
//     same request may fare better later; what it wraps is the vendor's own.
//   - The context's error, as [resilience.ContextError] makes it, if the caller left
//     or the caller's deadline passed.
//   - What a policy of [With] returns.
//
// [Retryable] is the predicate for a retry over all of these, and [Classify] the
// classifier for a circuit breaker.
//
// # Roads not taken
//
// A port shaped like a chat would put one vendor's messages into every caller's
// signature. Two methods, for text and for data, would make the schema optional, and
// with it every promise above. An empty result for an empty answer would make a
// document about nothing and a model that ran out of budget look the same.
package provider

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/resilience-toolkit/resilience"
)

// An LLM is a language model as this toolkit sees it, and the port an adapter
// implements.
type LLM interface {
	// Model names what answers, for the record and not as a setting: the provider, a
	// slash, and the model with its version, as in "openai/gpt-4.1-2025-04-14". It
	// never changes and [CheckModel] accepts it.
	Model() string

	// Complete asks the model for JSON that says about the request's text what the
	// schema asks for, and returns it once it has passed [Gate].
	//
	// It begins with [Request.Validate] and makes no call if that fails. It sends the
	// text and the system prompt byte for byte, and for an empty prompt no system turn
	// at all. It makes one call: whether to try again is a policy's decision. It is not
	// lazy: the whole answer has been read when it returns. For a context that is done
	// it returns what [resilience.ContextError] makes of it. Its other errors are those
	// of the package comment, and with an error the JSON is nil.
	Complete(ctx context.Context, r Request) (json.RawMessage, error)
}

// A Request is what a model is asked.
type Request struct {
	// Text is what the data is to be taken from. It must say something: blank text is
	// refused before any call.
	Text string
	// System is the system prompt. Empty means none: nothing is put in its place.
	System string
	// Schema is what the answer must match. [Extract] derives it from the Go type if
	// it is nil; [LLM.Complete] requires it.
	Schema *Schema
}

// Validate returns a [*RequestError] for a request that must not be sent, and nil
// otherwise. Text and prompt must be valid UTF-8, because they travel in JSON, which
// would replace every other byte without a word. Every LLM begins with it.
func (r Request) Validate() error {
	switch {
	case blank(r.Text):
		return &RequestError{Field: "Text", Problem: "is blank"}
	case !utf8.ValidString(r.Text):
		return &RequestError{Field: "Text", Problem: "is not valid UTF-8"}
	case !utf8.ValidString(r.System):
		return &RequestError{Field: "System", Problem: "is not valid UTF-8"}
	case r.Schema == nil:
		return &RequestError{Field: "Schema", Problem: "is nil"}
	}
	return nil
}

// blank reports whether nothing in s would leave a mark on paper.
func blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r)
	})
}

// With puts policies around an LLM, the first one outermost, and is an LLM again. It
// names the same model and passes the request on untouched; a request that
// [Request.Validate] refuses reaches no policy. Without policies it returns llm. It
// panics if llm or a policy is nil.
func With(llm LLM, policies ...resilience.Policy) LLM {
	if isNil(llm) {
		panic("provider: With: llm is nil")
	}
	guard := resilience.With[json.RawMessage](policies...)
	if len(policies) == 0 {
		return llm
	}
	return &hardened{llm: llm, guard: guard}
}

type hardened struct {
	llm   LLM
	guard resilience.Decorator[json.RawMessage]
}

var _ LLM = (*hardened)(nil)

func (h *hardened) Model() string { return h.llm.Model() }

func (h *hardened) Complete(ctx context.Context, r Request) (json.RawMessage, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return h.guard(func(ctx context.Context) (json.RawMessage, error) {
		return h.llm.Complete(ctx, r)
	})(ctx)
}

// isNil also finds the nil pointer that is left of a constructor whose error nobody
// looked at.
func isNil(llm LLM) bool {
	if llm == nil {
		return true
	}
	v := reflect.ValueOf(llm)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
