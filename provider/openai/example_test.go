package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

func Example() {
	// A host on this machine stands in for llama.cpp, vLLM, Ollama or the vendor's own.
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > 1000 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error": {"code": "context_length_exceeded", "message": "at most 1000 bytes"}}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices": [{"finish_reason": "stop", "message": {"content": "{\"name\": \"Ada\"}"}}]}`)
	}))
	defer host.Close()

	llm, err := openai.New("llama-3.2-3b", openai.Config{
		BaseURL:  host.URL + "/v1",
		Provider: "llamacpp",
		Fields:   map[string]any{"temperature": 0},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	type person struct {
		Name string `json:"name"`
	}
	p, err := provider.Extract[person](context.Background(), llm, provider.Request{Text: "Ada wrote it."})
	fmt.Println(p.Name, err, llm.Model())

	_, err = provider.Extract[person](context.Background(), llm, provider.Request{Text: fmt.Sprintf("%1000d", 1)})
	fmt.Println(errors.Is(err, provider.TooLong), err)
	// Output:
	// Ada <nil> llamacpp/llama-3.2-3b
	// true provider: the request is too long (status 400): at most 1000 bytes
}

func ExampleNew() {
	_, err := openai.New("llama", openai.Config{BaseURL: "http://localhost:8080/v1", Provider: "ollama"})
	fmt.Println(err)
	// Output:
	// openai: provider: model name is "ollama/llama", want one with its version, as in "openai/gpt-4.1-2025-04-14"
}
