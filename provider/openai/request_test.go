package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

// sentBy makes one call and returns the body and the headers of its request.
func sentBy(t *testing.T, cfg openai.Config, r provider.Request) (map[string]any, http.Header) {
	t.Helper()
	h := start(t, send(200, message(ada, "stop")))
	_, _ = provider.Extract[person](t.Context(), h.model(t, cfg), r)
	require.Equal(t, 1, h.requests())
	var body map[string]any
	require.NoError(t, json.Unmarshal(h.bodies[0], &body))
	return body, h.headers[0]
}

func TestARequestHoldsWhatItMustAndNothingElse(t *testing.T) {
	body, headers := sentBy(t, openai.Config{}, provider.Request{Text: "Ada", System: "Who?"})
	var schema any
	require.NoError(t, json.Unmarshal([]byte(`{
		"type":"object","additionalProperties":false,"required":["name","born"],
		"properties":{"name":{"type":"string"},"born":{"type":["integer","null"]}}}`), &schema))
	assert.Equal(t, map[string]any{
		"model": "test-1",
		"messages": []any{
			map[string]any{"role": "system", "content": "Who?"},
			map[string]any{"role": "user", "content": "Ada"},
		},
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "person", "strict": true, "schema": schema}},
		"max_tokens":      8192.0,
	}, body)
	assert.Equal(t, []string{"Bearer " + apiKey}, headers["Authorization"])
}

func TestWithoutAPromptOnlyTheTextIsSent(t *testing.T) {
	body, _ := sentBy(t, openai.Config{}, ask("Ada"))
	assert.Equal(t, []any{map[string]any{"role": "user", "content": "Ada"}}, body["messages"])
}

func TestFieldsOfTheHostsOwnAreSent(t *testing.T) {
	body, _ := sentBy(t, openai.Config{MaxOutput: 77, Fields: map[string]any{
		"temperature":          0,
		"chat_template_kwargs": map[string]any{"enable_thinking": false},
		"a.b":                  "not a path",
		"response_format":      nil,
		"model":                "test-1-special",
	}}, ask("Ada"))
	assert.Equal(t, 0.0, body["temperature"])
	assert.Equal(t, map[string]any{"enable_thinking": false}, body["chat_template_kwargs"])
	assert.Equal(t, "not a path", body["a.b"])
	assert.NotContains(t, body, "response_format")
	assert.Equal(t, "test-1-special", body["model"])
	assert.Equal(t, 77.0, body["max_tokens"])

	body, _ = sentBy(t, openai.Config{MaxOutput: 77, Fields: map[string]any{"max_tokens": nil, "max_completion_tokens": 78}}, ask("Ada"))
	assert.NotContains(t, body, "max_tokens")
	assert.Equal(t, 78.0, body["max_completion_tokens"])
}

func TestNothingIsTakenFromTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org-from-the-environment")
	t.Setenv("OPENAI_PROJECT_ID", "proj-from-the-environment")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://192.0.2.1/")
	h := start(t, send(200, message(ada, "stop")))
	llm, err := openai.New("test-1", openai.Config{BaseURL: h.url(), Provider: "loopback"})
	require.NoError(t, err)
	_, err = provider.Extract[person](t.Context(), llm, ask("Ada"))
	require.NoError(t, err)
	for name, values := range h.headers[0] {
		for _, v := range values {
			assert.NotContains(t, v, "from-the-environment", name)
		}
	}
	assert.NotContains(t, h.headers[0], "Authorization")
}

func TestASchemaIsStrictWhereItCanBe(t *testing.T) {
	object := func(change func(*jsonschema.Schema)) *jsonschema.Schema {
		s := &jsonschema.Schema{
			Type:                 "object",
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Required:             []string{"name"},
			Properties:           map[string]*jsonschema.Schema{"name": {Type: "string"}},
		}
		change(s)
		return s
	}
	for name, test := range map[string]struct {
		schema *jsonschema.Schema
		want   bool
	}{
		"all required":          {object(func(*jsonschema.Schema) {}), true},
		"optional and null":     {object(func(s *jsonschema.Schema) { s.Properties["b"] = &jsonschema.Schema{Types: []string{"string", "null"}} }), true},
		"an enumeration":        {object(func(s *jsonschema.Schema) { s.Properties["name"].Enum = []any{"a", "b"} }), true},
		"a range and a pattern": {object(func(s *jsonschema.Schema) { s.Properties["name"].Pattern = "^a" }), true},
		"a list of the same": {object(func(s *jsonschema.Schema) {
			s.Properties["name"] = &jsonschema.Schema{Type: "array", Items: object(func(*jsonschema.Schema) {})}
		}), true},
		"alternatives": {object(func(s *jsonschema.Schema) {
			s.Properties["name"] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "null"}}}
		}), true},
		"a definition": {object(func(s *jsonschema.Schema) {
			s.Defs = map[string]*jsonschema.Schema{"n": {Type: "string"}}
			s.Properties["name"] = &jsonschema.Schema{Ref: "#/$defs/n"}
		}), true},
		"optional, and not null": {object(func(s *jsonschema.Schema) { s.Properties["b"] = &jsonschema.Schema{Type: "string"} }), false},
		"open":                   {object(func(s *jsonschema.Schema) { s.AdditionalProperties = nil }), false},
		"a map":                  {object(func(s *jsonschema.Schema) { s.AdditionalProperties = &jsonschema.Schema{Type: "string"} }), false},
		"anything":               {object(func(s *jsonschema.Schema) { s.Properties["name"] = &jsonschema.Schema{} }), false},
		"a length":               {object(func(s *jsonschema.Schema) { s.Properties["name"].MinLength = jsonschema.Ptr(1) }), false},
		"a condition":            {object(func(s *jsonschema.Schema) { s.If = &jsonschema.Schema{Type: "object"} }), false},
		"deep inside": {object(func(s *jsonschema.Schema) {
			s.Properties["name"] = &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string", MaxLength: jsonschema.Ptr(1)}}
		}), false},
		"in a definition": {object(func(s *jsonschema.Schema) { s.Defs = map[string]*jsonschema.Schema{"n": {Type: "object"}} }), false},
		"in an alternative": {object(func(s *jsonschema.Schema) {
			s.Properties["name"] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "object"}}}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := provider.NewSchema("thing", test.schema)
			require.NoError(t, err)
			body, _ := sentBy(t, openai.Config{}, provider.Request{Text: "Ada", Schema: s})
			format := body["response_format"].(map[string]any)["json_schema"].(map[string]any)
			assert.Equal(t, test.want, format["strict"])
			sent, err := json.Marshal(format["schema"])
			require.NoError(t, err)
			if !test.want {
				assert.JSONEq(t, string(s.JSON()), string(sent), "it is sent as it is")
				return
			}
			var strict jsonschema.Schema
			require.NoError(t, json.Unmarshal(sent, &strict))
			assert.Len(t, strict.Required, len(strict.Properties), "all properties are required")
		})
	}
}

func TestTheSchemaKeepsTheOrderOfTheFields(t *testing.T) {
	type thought struct {
		Zeal    string `json:"zeal"`
		Because string `json:"because,omitempty"`
		Answer  string `json:"answer"`
	}
	h := start(t, send(200, message("{}", "stop")))
	_, _ = provider.Extract[thought](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
	assert.Regexp(t, `"zeal":.*"because":.*"answer":`, string(h.bodies[0]), "a model answers in this order, and reasons by it")
}

func TestARequestIsTheSameEachTime(t *testing.T) {
	type many struct{ A, B, C, D, E, F, G, H, I, J *int }
	type optional struct {
		many
		K, L, M, N, O, P, Q string `json:",omitempty"`
	}
	h := start(t, send(200, message("{}", "stop")))
	llm := h.model(t, openai.Config{})
	for range 20 {
		_, _ = provider.Extract[optional](t.Context(), llm, ask("Ada"))
	}
	for _, body := range h.bodies {
		require.Equal(t, string(h.bodies[0]), string(body), "a host caches by it")
	}
}

func TestTheVendorsOwnHostTakesTheBudgetByItsOtherName(t *testing.T) {
	var sent string
	w := &wire{answer: func(n int, r *http.Request) (*http.Response, error) {
		assert.Equal(t, "https://api.openai.com/v1/chat/completions", r.URL.String())
		body, _ := r.GetBody()
		raw, _ := io.ReadAll(body)
		sent = string(raw)
		return reply(200, message(ada, "stop"))(n, r)
	}}
	llm, err := openai.New("gpt-4.1-2025-04-14", openai.Config{APIKey: apiKey, HTTPClient: &http.Client{Transport: w}})
	require.NoError(t, err)
	_, err = provider.Extract[person](t.Context(), llm, ask("Ada"))
	require.NoError(t, err)
	assert.Contains(t, sent, `"max_completion_tokens":8192`)
	assert.NotContains(t, sent, `"max_tokens"`)
}

func TestWhatCannotBeSentIsNobodyElsesFailure(t *testing.T) {
	w := &wire{answer: reply(200, message(ada, "stop"))}
	moody := &fickle{}
	llm, err := openai.New("test-1", openai.Config{
		BaseURL: "http://host.invalid/v1", Provider: "wire", HTTPClient: &http.Client{Transport: w}, Fields: map[string]any{"f": moody},
	})
	require.NoError(t, err)
	moody.err = errors.New("changed my mind")
	_, err = provider.Extract[person](t.Context(), llm, ask("Ada"))
	require.ErrorContains(t, err, "changed my mind")
	_, isHost := errors.AsType[*provider.HostError](err)
	assert.False(t, isHost)
	assert.False(t, provider.Retryable(err))
	assert.Zero(t, w.requests)

	moody.err = nil
	left, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = provider.Extract[person](left, llm, ask("Ada"))
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, w.requests, "no transport is asked for somebody who has left")
}

type fickle struct{ err error }

func (f *fickle) MarshalJSON() ([]byte, error) { return []byte("1"), f.err }

func TestRedirectsInACircleEnd(t *testing.T) {
	h := start(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	})
	_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
	host, ok := errors.AsType[*provider.HostError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 307, host.Status)
	assert.False(t, host.Transient)
	assert.LessOrEqual(t, h.requests(), 6)
}

func TestARedirectThatWouldDropTheBodyIsNotFollowed(t *testing.T) {
	other := start(t, send(200, message(ada, "stop")))
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"/elsewhere", other.url() + "/chat/completions?token=secret"} {
			h := start(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					assert.Equal(t, http.MethodPost, r.Method)
					send(200, message(ada, "stop"))(n, w, r)
					return
				}
				send(status, "", "Location", to)(n, w, r)
			})
			_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
			if status >= 307 && to == "/elsewhere" {
				require.NoError(t, err)
				continue
			}
			host, ok := errors.AsType[*provider.HostError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, status, host.Status)
			assert.Equal(t, "the host refers to "+strings.TrimSuffix(to, "?token=secret"), host.Message)
			assert.False(t, host.Transient)
			assert.Equal(t, 1, h.requests())
		}
	}
	assert.Zero(t, other.requests())
}

func TestARetryOrARedirectSendsTheSameBody(t *testing.T) {
	text := strings.Repeat("Ada \"of\" Lovelace \u00e9 ", 500)
	h := start(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 1:
			http.Redirect(w, r, "/elsewhere/chat/completions", http.StatusTemporaryRedirect)
		case 2:
			send(429, "")(n, w, r)
		case 3:
			hijack(w, false, "")
		default:
			send(200, message(ada, "stop"))(n, w, r)
		}
	})
	llm := h.model(t, openai.Config{})
	r := provider.Request{Text: text, System: "Who?"}
	for range 3 {
		_, _ = provider.Extract[person](t.Context(), llm, r)
	}
	require.Equal(t, 4, h.requests())
	for i := range h.bodies {
		assert.Equal(t, h.bodies[0], h.bodies[i])
		assert.Len(t, h.headers[i]["Authorization"], 1)
		assert.Len(t, h.headers[i]["Content-Type"], 1)
	}
	assert.Equal(t, provider.Request{Text: text, System: "Who?"}, r)
}

func TestFiftyCallersAtOnceGetTheirOwnAnswers(t *testing.T) {
	h := start(t, func(n int, w http.ResponseWriter, r *http.Request) {
		var b sentBody
		_ = json.NewDecoder(r.Body).Decode(&b)
		send(200, message(`{"name":"`+b.seen().Text+`"}`, "stop"))(n, w, r)
	})
	llm := h.model(t, openai.Config{})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := string(rune('A' + i))
			if name == "\\" {
				name = "x"
			}
			got, err := provider.Extract[person](t.Context(), llm, ask(name))
			assert.NoError(t, err)
			assert.Equal(t, name, got.Name)
		})
	}
	wg.Wait()
}
