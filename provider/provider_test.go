package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
)

type invoice struct {
	Number string  `json:"number" jsonschema:"the invoice's own number"`
	Total  float64 `json:"total"`
	Note   string  `json:"note,omitempty"`
	Lines  []line  `json:"lines"`
}

type line struct {
	Text     string     `json:"text"`
	Quantity int        `json:"quantity"`
	Due      *time.Time `json:"due"`
}

const whole = `{"number":"A-1","total":12.5,"lines":[{"text":"tea","quantity":2,"due":null}]}`

func ask(text string) provider.Request { return provider.Request{Text: text} }

func TestExtractReturnsTheWholeRecord(t *testing.T) {
	got, err := provider.Extract[invoice](t.Context(), fake.Script(fake.JSON(whole)), ask("two teas"))
	require.NoError(t, err)
	assert.Equal(t, invoice{Number: "A-1", Total: 12.5, Lines: []line{{Text: "tea", Quantity: 2}}}, got)

	pointer, err := provider.Extract[*invoice](t.Context(), fake.Script(fake.JSON(whole)), ask("two teas"))
	require.NoError(t, err)
	assert.Equal(t, got, *pointer)

	prices, err := provider.Extract[map[string]int](t.Context(), fake.Script(fake.JSON(`{"tea":3}`)), ask("tea is 3"))
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"tea": 3}, prices)
}

func TestExtractNeverReturnsAHalfFilledRecord(t *testing.T) {
	for name, answer := range map[string]string{
		"a field is missing":      `{"number":"A-1","lines":[]}`,
		"a field too many":        `{"number":"A-1","total":1,"lines":[],"vat":2}`,
		"a field of another type": `{"number":"A-1","total":"1","lines":[]}`,
		"a list that is null":     `{"number":"A-1","total":1,"lines":null}`,
		"null":                    `null`,
		"a list":                  `[]`,
		"deep inside":             `{"number":"A-1","total":1,"lines":[{"text":"tea","quantity":"two","due":null}]}`,
		"too large for its field": `{"number":"A-1","total":1,"lines":[{"text":"tea","quantity":1e30,"due":null}]}`,
		"no time":                 `{"number":"A-1","total":1,"lines":[{"text":"tea","quantity":1,"due":"soon"}]}`,
		"a fraction for a count":  `{"number":"A-1","total":1,"lines":[{"text":"tea","quantity":1.5,"due":null}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := provider.Extract[invoice](t.Context(), fake.Script(fake.JSON(answer)), ask("two teas"))
			assert.Zero(t, got)
			require.ErrorIs(t, err, provider.ErrCompletion)
			bad, ok := errors.AsType[*provider.MalformedCompletionError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, "invoice", bad.Schema)
			assert.Equal(t, answer, bad.Snippet)
			require.Error(t, bad.Err)
		})
	}
}

// careless is an LLM whose author forgot the gate.
type careless string

func (careless) Model() string { return "careless/1" }
func (c careless) Complete(context.Context, provider.Request) (json.RawMessage, error) {
	return json.RawMessage(c), nil
}

func TestExtractDoesNotTrustTheAdapter(t *testing.T) {
	_, err := provider.Extract[invoice](t.Context(), careless(`{"number":"A-1"}`), ask("x"))
	_, ok := errors.AsType[*provider.MalformedCompletionError](err)
	assert.True(t, ok, "%v", err)

	_, err = provider.Extract[invoice](t.Context(), careless(""), ask("x"))
	_, ok = errors.AsType[*provider.EmptyCompletionError](err)
	assert.True(t, ok, "%v", err)
}

func TestExtractRefusesATypeThatHasNoSchema(t *testing.T) {
	type node struct{ Next *node }
	llm := fake.Script(fake.JSON(`{}`))
	_, err := provider.Extract[[]invoice](t.Context(), llm, ask("x"))
	require.ErrorContains(t, err, "want a struct or a map")
	_, err = provider.Extract[string](t.Context(), llm, ask("x"))
	require.ErrorContains(t, err, "want a struct or a map")
	_, err = provider.Extract[node](t.Context(), llm, ask("x"))
	require.ErrorContains(t, err, "cycle")
	_, err = provider.Extract[struct{ F func() }](t.Context(), llm, ask("x"))
	require.ErrorContains(t, err, "cannot be extracted")
	_, err = provider.Extract[struct{ R json.RawMessage }](t.Context(), llm, ask("x"))
	require.ErrorContains(t, err, "UnmarshalJSON")
	_, err = provider.Extract[struct {
		L []struct{ M map[string]*json.RawMessage }
	}](t.Context(), llm, ask("x"))
	require.ErrorContains(t, err, "UnmarshalJSON")
	assert.Empty(t, llm.Requests())
}

// encoding/json merges them into one, so that a record would hold parts of two answers.
func TestExtractNeverMixesTwoAnswers(t *testing.T) {
	type inner struct {
		A string `json:"a,omitempty"`
		B string `json:"b,omitempty"`
	}
	type outer struct {
		List  []inner          `json:"list"`
		Named map[string]inner `json:"named"`
		Note  string           `json:"note,omitempty"`
	}
	for _, text := range []string{
		`{"list":[],"named":{},"note":"x","note":null}`,
		`{"list":[{"a":"1"}],"list":[{"b":"2"}],"named":{}}`,
		`{"list":[],"named":{"n":{"a":"1"},"n":{"b":"2"}}}`,
		`{"list":[{"a":"1","a":"2"}],"named":{}}`,
	} {
		got, err := provider.Extract[outer](t.Context(), fake.Script(fake.JSON(text)), ask("x"))
		assert.Zero(t, got)
		_, ok := errors.AsType[*provider.MalformedCompletionError](err)
		require.True(t, ok, "%s: %v", text, err)
		assert.ErrorContains(t, err, "twice in one object")
	}
	got, err := provider.Extract[outer](t.Context(), fake.Script(fake.JSON(`{"list":[{"a":"1"},{"a":"1"}],"named":{"a":{"a":"a"},"A":{}}}`)), ask("x"))
	require.NoError(t, err)
	assert.Len(t, got.Named, 2, "each object has names of its own")
}

func TestExtractTakesASchemaOfYourOwn(t *testing.T) {
	type ticket struct {
		Kind string `json:"kind"`
	}
	derived, err := provider.SchemaOf[ticket]()
	require.NoError(t, err)
	s := derived.JSONSchema()
	s.Properties["kind"].Enum = []any{"bug", "wish"}
	narrow, err := provider.NewSchema("ticket", s)
	require.NoError(t, err)

	llm := fake.Script(fake.JSON(`{"kind":"bug"}`), fake.JSON(`{"kind":"praise"}`))
	r := provider.Request{Text: "it broke", Schema: narrow}
	got, err := provider.Extract[ticket](t.Context(), llm, r)
	require.NoError(t, err)
	assert.Equal(t, "bug", got.Kind)
	_, err = provider.Extract[ticket](t.Context(), llm, r)
	require.ErrorIs(t, err, provider.ErrCompletion)

	require.NoError(t, derived.Validate(json.RawMessage(`{"kind":"praise"}`)), "the derived schema is shared and stays as it is")
}

func TestBlankTextIsRefusedBeforeAnythingIsCalled(t *testing.T) {
	called := 0
	policy := policyFunc(func(ctx context.Context, op func(context.Context) error) error { called++; return op(ctx) })
	llm := fake.Match(fake.Rule{Answer: fake.JSON(whole)})
	for _, text := range []string{"", " \t\r\n", "\u00a0\u2003\u3000", "\ufeff", "\u200b\u200d", "\x00"} {
		_, err := provider.Extract[invoice](t.Context(), provider.With(llm, policy), ask(text))
		refused, ok := errors.AsType[*provider.RequestError](err)
		require.True(t, ok, "%q: %v", text, err)
		assert.Equal(t, "Text", refused.Field)
		assert.ErrorIs(t, err, resilience.ErrRejected)
		assert.NotErrorIs(t, err, provider.ErrCompletion)
	}
	raw, err := provider.With(llm, policy).Complete(t.Context(), provider.Request{Text: " ", Schema: schemaOf[invoice](t)})
	assert.Nil(t, raw)
	assert.ErrorIs(t, err, resilience.ErrRejected, "nor by who calls the port itself")
	assert.Zero(t, called, "a policy was asked, and a slot may be gone")
	assert.Empty(t, llm.Requests())

	_, err = provider.Extract[invoice](t.Context(), careless(whole), ask(" "))
	assert.ErrorIs(t, err, resilience.ErrRejected, "nor by an adapter that does not look")
}

func TestARequestThatJSONWouldAlterIsRefused(t *testing.T) {
	schema, err := provider.SchemaOf[invoice]()
	require.NoError(t, err)
	for field, r := range map[string]provider.Request{
		"Text":   {Text: "caf\xe9", Schema: schema},
		"System": {Text: "tea", System: "\xff", Schema: schema},
		"Schema": {Text: "tea"},
	} {
		refused, ok := errors.AsType[*provider.RequestError](r.Validate())
		require.True(t, ok)
		assert.Equal(t, field, refused.Field)
	}
	assert.NoError(t, provider.Request{Text: "\ufffd", Schema: schema}.Validate(), "a replacement character that was there before is text")
}

type policyFunc func(context.Context, func(context.Context) error) error

func (f policyFunc) Do(ctx context.Context, op func(context.Context) error) error { return f(ctx, op) }

func TestAHardenedModelNamesTheSameModelAndPassesTheRequestOn(t *testing.T) {
	var order []string
	trace := func(name string) resilience.Policy {
		return policyFunc(func(ctx context.Context, op func(context.Context) error) error {
			order = append(order, name)
			return op(ctx)
		})
	}
	llm := fake.Script(fake.JSON(whole))
	hardened := provider.With(provider.With(llm, trace("inner")), trace("outer"), trace("middle"))
	assert.Equal(t, fake.Model, hardened.Model())

	r := provider.Request{Text: "  <b>caf\u00e9</b> \u2028 & \"tea\"\n", System: " Say  \x00 only\tthis.\r\n"}
	_, err := provider.Extract[invoice](t.Context(), hardened, r)
	require.NoError(t, err)
	assert.Equal(t, []string{"outer", "middle", "inner"}, order)

	require.Len(t, llm.Requests(), 1)
	got := llm.Requests()[0]
	assert.Equal(t, r.Text, got.Text)
	assert.Equal(t, r.System, got.System)
}

func TestAPolicyMayAskAgain(t *testing.T) {
	twice := policyFunc(func(ctx context.Context, op func(context.Context) error) error {
		if op(ctx) == nil {
			return nil
		}
		return op(ctx)
	})
	llm := fake.Script(fake.Fail(provider.StatusError(503)), fake.JSON(whole))
	_, err := provider.Extract[invoice](t.Context(), provider.With(llm, twice), ask("tea"))
	require.NoError(t, err)
	assert.Len(t, llm.Requests(), 2)
}

func TestWithRefusesWhatIsNil(t *testing.T) {
	llm := fake.Script()
	assert.PanicsWithValue(t, "provider: With: llm is nil", func() { provider.With(nil) })
	assert.PanicsWithValue(t, "provider: With: llm is nil", func() { provider.With((*fake.LLM)(nil)) })
	assert.Panics(t, func() { provider.With(llm, nil) })
	assert.Same(t, llm, provider.With(llm), "no policies, no layer")
}

func TestAModelNamesItsProviderAndItsVersion(t *testing.T) {
	for _, name := range []string{
		"openai/gpt-4.1-2025-04-14", "ollama/qwen3.6-27b-mtp", "anthropic/claude-opus-4-20250514",
		"fake/canned-v1", "openrouter/meta-llama/llama-3.3-70b-instruct", "ollama/llama3.2:3b",
	} {
		assert.NoError(t, provider.CheckModel(name), name)
	}
	for _, name := range []string{
		"", "/", "gpt-4.1", "openai/", "/gpt-4.1", "anthropic/claude", "openai/gpt-latest",
		"ollama/llama3:latest", "openai/gpt 4.1", "openai/gpt-4.1\n", "openai2/gpt",
	} {
		assert.ErrorContains(t, provider.CheckModel(name), "provider: model name is", name)
	}
}
