package openai_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

// Whatever a host sends, the caller gets a record that is whole or an error of one of
// the two families, with a text of bounded length and without the key.
func FuzzResponse(f *testing.F) {
	for _, body := range []string{
		"", "{}", "null", "[]", "[null]", `{"choices":[null]}`, `{"choices":[{}]}`, `{"choices":{}}`, `{"error":{}}`, `{"error":[]}`,
		`{"error":"x"}`, `{"error":{"code":429,"message":["x"]}}`, `[{"error":{"code":"429"}}]`, `{"detail":{"a":1}}`,
		`{"choices":[{"error":{"code":1e999}}]}`, `{"choices":[{"message":{"content":[{"type":"text"}]}}]}`, `{"choices":[{"message":{"content":[1]}}]}`,
		`{"choices":[{"message":{"content":"<think>"}}]}`, `{"choices":[{"message":{"reasoning":{}}}]}`, `{"error":{"innererror":1,"metadata":[]}}`,
		message(ada, "stop"), message(nil, "length"), failure("insufficient_quota", "x", "y"), "<html>" + apiKey, `{"error":{"message":"` + apiKey + `"}}`,
	} {
		for _, status := range []int{200, 204, 302, 400, 429, 503} {
			f.Add(status, body, "5", "")
		}
	}
	f.Fuzz(func(t *testing.T, status int, body, after, again string) {
		if status < 200 || status > 599 {
			return
		}
		w := &wire{answer: func(n int, r *http.Request) (*http.Response, error) {
			res, err := reply(status, body)(n, r)
			res.Header["Retry-After"] = []string{after}
			res.Header["X-Should-Retry"] = []string{again}
			return res, err
		}}
		llm, err := openai.New("test-1", openai.Config{BaseURL: "http://host.invalid/v1", Provider: "wire", APIKey: apiKey, HTTPClient: &http.Client{Transport: w}})
		require.NoError(t, err)
		got, err := provider.Extract[person](t.Context(), llm, ask("Ada"))
		if err == nil {
			assert.True(t, status < 300)
			return
		}
		assert.Zero(t, got)
		host, isHost := errors.AsType[*provider.HostError](err)
		assert.NotEqual(t, isHost, errors.Is(err, provider.ErrCompletion), "%T: %v", err, err)
		assert.Less(t, len(err.Error()), 4000)
		assert.NotContains(t, err.Error(), apiKey)
		if isHost {
			assert.GreaterOrEqual(t, host.Hint, time.Duration(0))
			assert.True(t, host.Transient || host.Hint == 0)
			assert.False(t, host.Transient && (host.Kind == provider.QuotaExhausted || host.Kind == provider.TooLong))
		}
	})
}
