package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

const apiKey = "sk-secret-0123456789abcdef"

// A host is a loopback server that speaks the wire format, records what it is sent, and
// answers what a test has it answer.
type host struct {
	answer func(n int, w http.ResponseWriter, r *http.Request) // n counts from 1

	server      *httptest.Server
	connections atomic.Int32

	mu      sync.Mutex
	bodies  [][]byte
	headers []http.Header
}

func start(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *host {
	t.Helper()
	h := &host{answer: answer}
	h.server = httptest.NewUnstartedServer(h)
	h.server.Config.ConnState = func(_ netConn, s http.ConnState) {
		if s == http.StateNew {
			h.connections.Add(1)
		}
	}
	h.server.Config.ErrorLog = quiet
	h.server.Start()
	t.Cleanup(h.server.Close)
	return h
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.mu.Lock()
	h.bodies = append(h.bodies, body)
	h.headers = append(h.headers, r.Header.Clone())
	n := len(h.bodies)
	h.mu.Unlock()
	h.answer(n, w, r)
}

func (h *host) requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bodies)
}

func (h *host) url() string { return h.server.URL + "/v1" }

// model returns the adapter for the host, with the settings that a test leaves open.
func (h *host) model(t testing.TB, cfg openai.Config) *openai.LLM {
	t.Helper()
	cfg.BaseURL = h.url()
	if cfg.Provider == "" {
		cfg.Provider = "loopback"
	}
	if cfg.APIKey == "" {
		cfg.APIKey = apiKey
	}
	llm, err := openai.New("test-1", cfg)
	require.NoError(t, err)
	return llm
}

// send answers with a status, a body and headers in pairs.
func send(status int, body string, headers ...string) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// message is a completion in the shape in which the vendor sends it.
func message(content any, finish string, extra ...string) string {
	m := map[string]any{"role": "assistant", "content": content, "refusal": nil}
	for i := 0; i+1 < len(extra); i += 2 {
		m[extra[i]] = extra[i+1]
	}
	body, err := json.Marshal(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1764500000, "model": "test-1-20260101",
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": finish, "logprobs": nil}},
		"usage": map[string]any{
			"prompt_tokens": 20, "completion_tokens": 200, "total_tokens": 220,
			"completion_tokens_details": map[string]any{"reasoning_tokens": 199},
		},
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// failure is an error object in the shape in which the vendor sends it.
func failure(code, kind, text string) string {
	c := "null"
	if code != "" {
		c = fmt.Sprintf("%q", code)
	}
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, text, kind, c)
}

type person struct {
	Name string `json:"name"`
	Born int    `json:"born,omitempty"`
}

const ada = `{"name":"Ada","born":1815}`

func ask(text string) provider.Request { return provider.Request{Text: text} }
