package provider_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
)

type everything struct {
	Zed     string            `json:"zed" jsonschema:"the last comes first"`
	When    time.Time         `json:"when"`
	Until   *time.Time        `json:"until"`
	Address netip.Addr        `json:"address"`
	Picture []byte            `json:"picture"`
	Small   uint8             `json:"small"`
	Maybe   *int              `json:"maybe"`
	Left    int               `json:"left,omitempty"`
	Out     *[]string         `json:"out,omitzero"`
	Names   map[string]string `json:"names"`
	Pair    [2]bool           `json:"pair"`
	Any     any               `json:"any"`
	Skipped func()            `json:"-"`
	Raw     json.RawMessage   `json:"-"`
	hidden
}

type hidden struct {
	Inner float64 `json:"inner"`
}

func TestASchemaSaysWhatTheTypeDoes(t *testing.T) {
	s := schemaOf[everything](t)
	assert.Equal(t, "everything", s.Name())
	assert.JSONEq(t, `{
		"type": "object", "additionalProperties": false,
		"required": ["zed","when","until","address","picture","small","maybe","names","pair","any","inner"],
		"properties": {
			"zed": {"type":"string","description":"the last comes first"},
			"when": {"type":"string","format":"date-time"},
			"until": {"type":["null","string"],"format":"date-time"},
			"address": {"type":"string"},
			"picture": {"type":"string","description":"in base64"},
			"small": {"type":"integer","minimum":0,"maximum":255},
			"maybe": {"type":["null","integer"]},
			"left": {"type":["integer","null"]},
			"out": {"type":["array","null"],"items":{"type":"string"}},
			"names": {"type":"object","additionalProperties":{"type":"string"}},
			"pair": {"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2},
			"any": true,
			"inner": {"type":"number"}
		}}`, string(s.JSON()))
	text := string(s.JSON())
	assert.Less(t, strings.Index(text, `"zed"`), strings.Index(text, `"address"`), "properties are in the order of the fields, which is that of the answer")
}

func TestWhatATypeCanHoldPassesItsSchema(t *testing.T) {
	s := schemaOf[everything](t)
	two, out := 2, []string{"x"}
	for _, v := range []everything{
		{When: time.Now(), Address: netip.MustParseAddr("::1"), Picture: []byte{1}, Names: map[string]string{}},
		{Until: &time.Time{}, Maybe: &two, Left: 1, Out: &out, Picture: []byte{}, Names: map[string]string{"a": "b"}, Any: []any{1}},
	} {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		assert.NoError(t, s.Validate(raw), "%s", raw)
	}
}

func TestAFieldThatMayBeLeftOutMayBeNull(t *testing.T) {
	s := schemaOf[invoice](t)
	for _, note := range []string{``, `"note":null,`, `"note":"x",`} {
		assert.NoError(t, s.Validate(json.RawMessage(`{`+note+`"number":"A","total":1,"lines":[]}`)), note)
	}
	assert.Error(t, s.Validate(json.RawMessage(`{"note":1,"number":"A","total":1,"lines":[]}`)))
}

func TestListsAreNeverNullHoweverDeep(t *testing.T) {
	type leaf struct {
		Tags []string `json:"tags"`
		Note string   `json:"note,omitempty"`
	}
	type tree struct {
		Leaves []leaf              `json:"leaves"`
		ByName map[string][]string `json:"by_name"`
	}
	s := schemaOf[tree](t)
	assert.NoError(t, s.Validate(json.RawMessage(`{"leaves":[{"tags":[],"note":null}],"by_name":{"a":[]}}`)))
	assert.Error(t, s.Validate(json.RawMessage(`{"leaves":[{"tags":null}],"by_name":{}}`)))
	assert.Error(t, s.Validate(json.RawMessage(`{"leaves":[],"by_name":{"a":null}}`)))
}

func TestASchemaIsDerivedOncePerType(t *testing.T) {
	type fresh struct{ A int }
	var wg sync.WaitGroup
	got := make([]*provider.Schema, 16)
	for i := range got {
		wg.Go(func() { got[i], _ = provider.SchemaOf[fresh]() })
	}
	wg.Wait()
	for _, s := range got {
		require.NotNil(t, s)
		assert.Same(t, got[0], s)
	}
	assert.Same(t, got[0], schemaOf[*fresh](t), "a pointer has the schema of what it points to")
}

func TestANameSuitsEveryHost(t *testing.T) {
	type pair[A, B any] struct {
		First  A
		Second B
	}
	assert.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, schemaOf[pair[invoice, map[string]line]](t).Name())
	assert.Equal(t, "answer", schemaOf[struct{ A int }](t).Name())
	assert.Equal(t, "answer", schemaOf[map[string]int](t).Name())
}

func TestNewSchemaRefusesWhatNoHostTakes(t *testing.T) {
	object := &jsonschema.Schema{Type: "object"}
	for want, make := range map[string]func() (*provider.Schema, error){
		`schema name is "a b"`:     func() (*provider.Schema, error) { return provider.NewSchema("a b", object) },
		`schema name is ""`:        func() (*provider.Schema, error) { return provider.NewSchema("", object) },
		`schema "s" is nil`:        func() (*provider.Schema, error) { return provider.NewSchema("s", nil) },
		`has the root type "array`: func() (*provider.Schema, error) { return provider.NewSchema("s", &jsonschema.Schema{Type: "array"}) },
		`want "object"`:            func() (*provider.Schema, error) { return provider.NewSchema("s", &jsonschema.Schema{}) },
		`schema "s": `: func() (*provider.Schema, error) {
			return provider.NewSchema("s", &jsonschema.Schema{Type: "object", Ref: "#/$defs/none"})
		},
	} {
		s, err := make()
		assert.Nil(t, s)
		assert.ErrorContains(t, err, want)
	}
}

func TestASchemaKeepsItsOwnCopy(t *testing.T) {
	given := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {Type: "string"}}}
	s, err := provider.NewSchema("s", given)
	require.NoError(t, err)
	given.Properties["a"].Type = "number"
	s.JSONSchema().Properties["a"].Type = "boolean"
	assert.NoError(t, s.Validate(json.RawMessage(`{"a":"x"}`)))
}

func TestACopyOfASchemaSharesNoList(t *testing.T) {
	type pair struct {
		A string `json:"a"`
		B string `json:"b,omitempty"`
		C string `json:"c"`
	}
	s := schemaOf[pair](t)
	want := string(s.JSON())
	c := s.JSONSchema()
	c.Required = slices.DeleteFunc(c.Required, func(name string) bool { return name == "a" })
	c.Properties["b"].Types[1] = "number"
	slices.Reverse(c.PropertyOrder)
	again, err := json.Marshal(s.JSONSchema())
	require.NoError(t, err)
	assert.Equal(t, want, string(again))
	assert.NoError(t, s.Validate(json.RawMessage(`{"a":"x","b":null,"c":"x"}`)))
	assert.Error(t, s.Validate(json.RawMessage(`{"c":"x"}`)))

	given := &jsonschema.Schema{
		Type: "object", Required: []string{"a"}, Extra: map[string]any{"x-deep": []any{map[string]any{"a": 1}}},
		Properties: map[string]*jsonschema.Schema{"a": {Enum: []any{"x"}}},
	}
	own, err := provider.NewSchema("s", given)
	require.NoError(t, err)
	given.Properties["a"].Enum[0], given.Required[0] = "y", "b"
	given.Extra["x-deep"].([]any)[0].(map[string]any)["a"] = 2
	assert.NoError(t, own.Validate(json.RawMessage(`{"a":"x"}`)))
	assert.Equal(t, 1, own.JSONSchema().Extra["x-deep"].([]any)[0].(map[string]any)["a"])
}

func TestAJSONNumberIsANumber(t *testing.T) {
	type exact struct {
		N json.Number `json:"n"`
	}
	got, err := provider.Extract[exact](t.Context(), fake.Script(fake.JSON(`{"n":12.50}`)), ask("x"))
	require.NoError(t, err)
	assert.Equal(t, json.Number("12.50"), got.N)
}

type unseen struct{ B string }

// The host would answer as it is asked, and no answer would ever fit.
func TestATypeThatNoAnswerCouldFillIsRefused(t *testing.T) {
	for want, extract := range map[string]func(provider.LLM) error{
		`field N of struct { N int "json:\"n,string\"" } has the json option "string"`: func(llm provider.LLM) error {
			_, err := provider.Extract[struct {
				N int `json:"n,string"`
			}](t.Context(), llm, ask("x"))
			return err
		},
		`are both "B" in JSON`: func(llm provider.LLM) error {
			_, err := provider.Extract[struct {
				A string `json:"B"`
				B string
			}](t.Context(), llm, ask("x"))
			return err
		},
		"the interface error": func(llm provider.LLM) error {
			_, err := provider.Extract[struct{ L []error }](t.Context(), llm, ask("x"))
			return err
		},
		"field unseen of": func(llm provider.LLM) error {
			_, err := provider.Extract[struct{ *unseen }](t.Context(), llm, ask("x"))
			return err
		},
	} {
		llm := fake.Script()
		assert.ErrorContains(t, extract(llm), want)
		assert.Empty(t, llm.Requests())
	}
	type base struct{ A string }
	_, err := provider.SchemaOf[struct {
		base
		B string `json:"base"`
		C any
		F func() `json:"-"`
	}]()
	assert.NoError(t, err)
}
