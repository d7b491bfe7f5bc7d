package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

// printed is v in every way in which it may get into a log.
func printed(v any) string {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
	return b.String()
}

func TestTheKeyIsInNoErrorAndNoLog(t *testing.T) {
	echo := "Incorrect API key provided: " + apiKey + ". (" + apiKey[:8] + "****" + apiKey[20:] + ")"
	for name, answer := range map[string]func(int, http.ResponseWriter, *http.Request){
		"in a message":                    send(401, failure("invalid_api_key", "", echo)),
		"in a code":                       send(401, failure(apiKey, "", "")),
		"spelled otherwise":               send(401, strings.ReplaceAll(failure(apiKey, apiKey, apiKey), "sk-", `\u0073k-`)),
		"in an answer, spelled otherwise": send(200, strings.ReplaceAll(message(apiKey, apiKey, "refusal", apiKey, "reasoning", apiKey), "sk-", `\u0073k-`)),
		"in a page":                       send(403, "<html>"+echo+"</html>"),
		"in an answer":                    send(200, message(apiKey, "stop")),
		"in a body":                       send(200, echo),
		"in a filter's":                   send(400, failure("content_filter", "", echo)),
		"under a 200":                     send(200, failure("", "", echo)),
		"in no answer":                    func(_ int, w http.ResponseWriter, _ *http.Request) { hijack(w, true, "") },
		"in a bad header":                 func(_ int, w http.ResponseWriter, _ *http.Request) { hijack(w, false, apiKey+"\r\n\r\n") },
		"in a bad location":               send(307, "", "Location", "http://"+apiKey+".invalid/"),
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, answer)
			llm := h.model(t, openai.Config{})
			_, err := provider.Extract[person](t.Context(), llm, ask("Ada"))
			require.Error(t, err)
			for e := err; e != nil; e = errors.Unwrap(e) {
				out := printed(e)
				assert.NotContains(t, out, apiKey)
				assert.NotContains(t, out, apiKey[20:])
			}
			if vendor, ok := errors.AsType[*sdk.Error](err); ok {
				dump := string(vendor.DumpRequest(true))
				assert.Contains(t, dump, "POST /v1/chat/completions")
				assert.NotContains(t, dump, apiKey)
				assert.NotContains(t, string(vendor.DumpResponse(true)), apiKey)
				assert.NotContains(t, vendor.RawJSON(), apiKey)
				assert.NotContains(t, vendor.Message+vendor.Code+vendor.Type, apiKey)
			}
		})
	}
	cfg := openai.Config{APIKey: apiKey, BaseURL: "http://localhost/v1", Provider: "loopback"}
	llm, err := openai.New("test-1", cfg)
	require.NoError(t, err)
	assert.NotContains(t, printed(cfg), apiKey)
	assert.NotContains(t, printed(&cfg), apiKey)
	assert.NotContains(t, printed(llm), apiKey)
	assert.NotContains(t, printed(*llm), apiKey)
	assert.Contains(t, fmt.Sprintf("%+v", cfg), "http://localhost/v1", "and the rest is there")
}

// Hosts on one's own machine are given any word for a key.
func TestAKeyThatIsAWordChangesNothing(t *testing.T) {
	for _, key := range []string{"none", "x", "Ada", "1", "error", "length", "{"} {
		cfg := openai.Config{APIKey: key}
		got, err := provider.Extract[person](t.Context(), start(t, send(200, message(`{"name":"Ada Nonex, none","born":1815}`, "stop"))).model(t, cfg), ask("Ada"))
		require.NoError(t, err, key)
		assert.Equal(t, person{"Ada Nonex, none", 1815}, got, key)

		for _, test := range []struct {
			status int
			body   string
			want   error
		}{
			{400, failure("context_length_exceeded", "invalid_request_error", "no"), provider.TooLong},
			{429, failure("insufficient_quota", "insufficient_quota", "no"), provider.QuotaExhausted},
			{200, failure("rate_limit_exceeded", "", "no"), provider.RateLimited},
			{400, failure("content_filter", "", "no"), provider.ErrCompletion},
			{200, message(ada, "length"), provider.ErrCompletion},
		} {
			_, err := provider.Extract[person](t.Context(), start(t, send(test.status, test.body)).model(t, cfg), ask("Ada"))
			assert.ErrorIs(t, err, test.want, key)
		}
	}
}

func TestACompletionIsToldWithoutTheKey(t *testing.T) {
	var told string
	cfg := openai.Config{OnCompletion: func(_ ctx, c provider.Completion) { told = fmt.Sprint(c) }}
	h := start(t, send(200, message(`{"name":"`+apiKey+`"}`, "stop", "reasoning", apiKey)))
	got, err := provider.Extract[person](t.Context(), h.model(t, cfg), ask("Ada"))
	require.NoError(t, err)
	assert.Equal(t, apiKey, got.Name)
	assert.Contains(t, told, "[key]")
	assert.NotContains(t, told, apiKey)
}

func TestNoPartOfTheKeyIsLeftWhereABodyIsCut(t *testing.T) {
	h := start(t, send(200, strings.Repeat(" x", 32<<10)[20:]+apiKey))
	_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
	bad, ok := errors.AsType[*provider.MalformedCompletionError](err)
	require.True(t, ok)
	assert.NotContains(t, bad.Text, apiKey[:8])
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	local := openai.Config{BaseURL: "http://localhost:8080/v1", Provider: "ollama"}
	change := func(f func(*openai.Config)) openai.Config { c := local; f(&c); return c }
	for want, test := range map[string]struct {
		model string
		cfg   openai.Config
	}{
		"APIKey is empty, want the key that https://api.openai.com/v1/ asks for":  {"gpt-4.1", openai.Config{}},
		"Provider is empty, want the name of who serves http://localhost:8080/v1": {"qwen3", change(func(c *openai.Config) { c.Provider = "" })},
		`Provider is "a/b"`:                               {"qwen3", change(func(c *openai.Config) { c.Provider = "a/b" })},
		`BaseURL is "localhost`:                           {"qwen3", change(func(c *openai.Config) { c.BaseURL = "localhost:8080" })},
		`BaseURL is "/v1"`:                                {"qwen3", change(func(c *openai.Config) { c.BaseURL = "/v1" })},
		`BaseURL is "http://h/v1", want one without user`: {"qwen3", change(func(c *openai.Config) { c.BaseURL = "http://me:secret@h/v1?key=secret" })},
		"want one that ends before /chat/completions":     {"qwen3", change(func(c *openai.Config) { c.BaseURL += "/chat/completions/" })},
		"MaxOutput is -1":                                 {"qwen3", change(func(c *openai.Config) { c.MaxOutput = -1 })},
		"Timeout is -1ns":                                 {"qwen3", change(func(c *openai.Config) { c.Timeout = -1 })},
		"Fields: ":                                        {"qwen3", change(func(c *openai.Config) { c.Fields = map[string]any{"f": func() {}} })},
		"APIKey holds a space":                            {"qwen3", change(func(c *openai.Config) { c.APIKey = "sk-secret\n" })},
		`model name is "ollama/"`:                         {"", local},
		`model name is "ollama/llama"`:                    {"llama", local},
		`model name is "ollama/llama3:latest"`:            {"llama3:latest", local},
	} {
		llm, err := openai.New(test.model, test.cfg)
		assert.Nil(t, llm)
		require.ErrorContains(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), "openai: "))
		assert.NotContains(t, err.Error(), "secret")
	}
	llm, err := openai.New("gpt-4.1-2025-04-14", openai.Config{APIKey: apiKey})
	require.NoError(t, err)
	assert.Equal(t, "openai/gpt-4.1-2025-04-14", llm.Model())
}
