package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func nothing(string) string { return "" }

func TestEachDocumentEndsAsItShould(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, nothing))
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), port.ReplaceAllString(out.String(), "127.0.0.1"))
}

func TestARealHostIsAskedForEachDocumentThatSaysSomething(t *testing.T) {
	requests := 0
	real := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		assert.Equal(t, "Bearer key", r.Header.Get("Authorization"))
		var body struct{ Model string }
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		assert.Equal(t, "llama3.2:3b", body.Model)
		complete(w, answer, "stop")
	}))
	defer real.Close()
	env := map[string]string{"OPENAI_BASE_URL": real.URL + "/v1", "OPENAI_MODEL": "llama3.2:3b", "OPENAI_API_KEY": "key"}
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, func(name string) string { return env[name] }))
	assert.Contains(t, out.String(), "Model: 127.0.0.1/llama3.2:3b\n")
	assert.Equal(t, len(documents)-1, strings.Count(out.String(), "Corner Shop, 5.50, 2 items"))
	assert.Equal(t, len(documents)-1, requests)
	assert.NotContains(t, out.String(), "requests:")

	env["OPENAI_MODEL"] = "llama"
	assert.ErrorContains(t, run(t.Context(), &out, func(name string) string { return env[name] }), "want one with its version")
}
