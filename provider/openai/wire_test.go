package openai_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/openai"
)

func TestAnAnswerBecomesARecord(t *testing.T) {
	for name, body := range map[string]string{
		"plain":                        message(ada, "stop"),
		"fenced":                       message("```json\n"+ada+"\n```", "stop"),
		"with a reasoning field":       message(ada, "stop", "reasoning_content", "She was born..."),
		"with the other one":           message(ada, "stop", "reasoning", "She was born..."),
		"with its reasoning in front":  message("<think>\n{\"name\":\"Charles\"}</think>\n"+ada, "stop"),
		"in parts":                     message([]any{map[string]any{"type": "thinking", "thinking": []any{map[string]any{"type": "text", "text": "hm"}}}, map[string]any{"type": "text", "text": ada}}, "stop"),
		"after space":                  "\r\n\n   " + message(ada, "stop"),
		"after a byte order mark":      "\ufeff" + message(ada, "stop"),
		"with an error that is {}":     `{"error":{},` + message(ada, "stop")[1:],
		"with thought after space":     message(" \n<think>hm</think>"+ada, "stop"),
		"with no thought":              message("<think></think>"+ada, "stop"),
		"with half a tag":              message("So, she was born...\n</think>\n\n"+ada, "stop"),
		"with an error that is null":   `{"error":null,` + message(ada, "stop")[1:],
		"without a reason for its end": strings.Replace(message(ada, "X"), `"X"`, "null", 1),
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, send(200, body))
			got, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada, born 1815"))
			require.NoError(t, err)
			assert.Equal(t, person{"Ada", 1815}, got)
			assert.Equal(t, 1, h.requests())
		})
	}
	for _, kind := range []string{"", "text/plain", "application/json; charset=utf-8", "text/html"} {
		h := start(t, send(200, message(ada, "stop"), "Content-Type", kind))
		_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
		require.NoError(t, err, "JSON is JSON, whatever the host calls it: %q", kind)
	}
}

// completionError returns the part of a completion error that all of them have.
func completionError(t *testing.T, err error) (kind string, c provider.Completion, status int) {
	t.Helper()
	require.ErrorIs(t, err, provider.ErrCompletion)
	require.False(t, provider.Retryable(err), "one consistent answer: never the same request again")
	switch e := err.(type) {
	case *provider.EmptyCompletionError:
		return "empty", e.Completion, 0
	case *provider.TruncatedCompletionError:
		return "truncated", e.Completion, 0
	case *provider.RefusedCompletionError:
		if e.Filtered() {
			return "filtered", e.Completion, 0
		}
		return "refused", e.Completion, 0
	case *provider.MalformedCompletionError:
		require.LessOrEqual(t, len(e.Snippet), 256)
		return "malformed", e.Completion, e.Status
	}
	t.Fatalf("%T: %v", err, err)
	return
}

func TestAnAnswerThatCannotBeUsedIsToldApart(t *testing.T) {
	huge := `{"choices":[],"x":"` + strings.Repeat("x", 64<<20) + `"}`
	for name, test := range map[string]struct {
		body   string
		kind   string
		status int // for what is no completion at all
	}{
		"empty and cut":                     {message("", "length"), "truncated", 0},
		"null and cut":                      {message(nil, "length"), "truncated", 0},
		"cut":                               {message("ok", "length"), "truncated", 0},
		"cut, in another host's word":       {message(`{"na`, "max_tokens"), "truncated", 0},
		"cut, in capitals":                  {message(ada, "MAX_TOKENS"), "truncated", 0},
		"filtered, in another host's word":  {message(ada, "SAFETY"), "filtered", 0},
		"no UTF-8":                          {strings.Replace(message(ada, "stop"), "Ada", "\xffda", 1), "malformed", 0},
		"cut while it reasoned in the text": {message("<think>so", "length"), "truncated", 0},
		"empty":                             {message("", "stop"), "empty", 0},
		"null":                              {message(nil, "stop"), "empty", 0},
		"only reasoning":                    {message("", "stop", "reasoning_content", "abc"), "empty", 0},
		"only reasoning, in the text":       {message("<think>abc</think>\n", "stop"), "empty", 0},
		"space":                             {message("  \n", "stop"), "empty", 0},
		"refused":                           {message(nil, "stop", "refusal", "I'm sorry."), "refused", 0},
		"filtered":                          {message("", "content_filter"), "filtered", 0},
		"filtered halfway":                  {message(`{"name":"A`, "content_filter"), "filtered", 0},
		"prose":                             {message("Her name was Ada.", "stop"), "malformed", 0},
		"prose before its reasoning":        {message("Well. <think>hm</think>"+ada, "stop"), "malformed", 0},
		"another schema":                    {message(`{"nom":"Ada"}`, "stop"), "malformed", 0},
		"no choices":                        {`{}`, "malformed", 200},
		"choices null":                      {`{"choices":null}`, "malformed", 200},
		"choices empty":                     {`{"choices":[]}`, "malformed", 200},
		"a choice that is null":             {`{"choices":[null]}`, "malformed", 200},
		"a choice without a message":        {`{"choices":[{"index":0,"finish_reason":"stop"}]}`, "malformed", 200},
		"a message that is null":            {`{"choices":[{"message":null}]}`, "malformed", 200},
		"a message of another type":         {`{"choices":[{"message":"hi"}]}`, "malformed", 200},
		"choices of another type":           {`{"choices":"none"}`, "malformed", 200},
		"no bytes":                          {"", "malformed", 200},
		"a body of spaces":                  {"   ", "malformed", 200},
		"text":                              {"unsupported model", "malformed", 200},
		"a page":                            {"<!DOCTYPE html><html><body>Sign in</body></html>", "malformed", 200},
		"null for a body":                   {"null", "malformed", 200},
		"a list":                            {"[]", "malformed", 200},
		"JSON that breaks off":              {message(ada, "stop")[:80], "malformed", 200},
		"more than anybody reads":           {huge, "malformed", 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, send(200, test.body))
			var told []provider.Completion
			llm := h.model(t, openai.Config{MaxOutput: 200, OnCompletion: func(_ ctx, c provider.Completion) { told = append(told, c) }})
			got, err := provider.Extract[person](t.Context(), llm, ask("Ada, born 1815"))
			assert.Zero(t, got)
			kind, c, status := completionError(t, err)
			assert.Equal(t, test.kind, kind, "%v", err)
			assert.Equal(t, test.status, status, "%v", err)
			assert.Equal(t, 1, h.requests())
			assert.Less(t, len(err.Error()), 2000)
			if test.status != 0 {
				assert.Empty(t, told)
				return
			}
			assert.Equal(t, provider.Usage{Input: 20, Output: 200, Reasoning: 199}, c.Usage)
			assert.Equal(t, 200, c.MaxOutput)
			assert.Equal(t, "test-1-20260101", c.Model)
			require.Len(t, told, 1)
			assert.Equal(t, told[0], c)
		})
	}
}

func TestReasoningIsThereAndNeverTheAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"a field":     message("", "stop", "reasoning_content", ada),
		"both":        message("", "stop", "reasoning", "later", "reasoning_content", ada),
		"the other":   message("", "stop", "reasoning", ada),
		"in parts":    message([]any{map[string]any{"type": "thinking", "thinking": []any{map[string]any{"text": ada[:9]}, map[string]any{"text": ada[9:]}}}}, "stop"),
		"in the text": message("<think>"+ada+"</think>", "stop"),
		"left open":   message("<think>"+ada, "stop"),
	} {
		h := start(t, send(200, body))
		_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
		kind, c, _ := completionError(t, err)
		assert.Equal(t, "empty", kind, name)
		assert.Equal(t, ada, c.Reasoning, name)
	}
}

func TestAResponseThatIsNoCompletionSaysWhatItIs(t *testing.T) {
	for body, want := range map[string]string{
		"":                                 "the body is empty",
		"<html>":                           "the body is not JSON",
		"[]":                               "the body is not a JSON object",
		"{}":                               "there is no choice in it",
		"{}" + strings.Repeat(" ", 16<<20): "the body is longer than 16777216 bytes",
		`{"choices":[null]}`:               "there is no message in its choice",
	} {
		h := start(t, send(200, body))
		_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
		bad, ok := errors.AsType[*provider.MalformedCompletionError](err)
		require.True(t, ok)
		assert.EqualError(t, bad.Err, want)
		assert.Equal(t, provider.Snippet(strings.TrimSpace(body)), bad.Snippet)
	}
}

func TestTheTwoShapesOfAFilterAreOneError(t *testing.T) {
	for name, answer := range map[string]func(int, http.ResponseWriter, *http.Request){
		"in the answer":      send(200, message(`{"na`, "content_filter")),
		"for an error":       send(400, failure("content_filter", "invalid_request_error", "The response was filtered")),
		"deeper":             send(400, `{"error":{"code":"bad","message":"filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`),
		"in a policy's name": send(400, failure("invalid_prompt", "invalid_request_error", "flagged")),
		"by moderation":      send(403, `{"error":{"code":403,"message":"flagged","metadata":{"reasons":["x"],"flagged_input":"Ada"}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, answer)
			_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
			kind, c, _ := completionError(t, err)
			assert.Equal(t, "filtered", kind)
			assert.Equal(t, provider.FinishFiltered, c.Finish)
			_, isHost := errors.AsType[*provider.HostError](err)
			assert.False(t, isHost)
			assert.Equal(t, 1, h.requests())
		})
	}
}

func TestWhatGoesWrongBelowACompletionIsToldApart(t *testing.T) {
	for name, test := range map[string]struct {
		answer    func(int, http.ResponseWriter, *http.Request)
		kind      provider.Kind
		transient bool
		hint      time.Duration
		code      string
		message   string
	}{
		"exhausted quota by code":  {send(429, failure("insufficient_quota", "insufficient_quota", "You exceeded your current quota."), "Retry-After", "9"), provider.QuotaExhausted, false, 0, "insufficient_quota", "You exceeded your current quota."},
		"exhausted quota by type":  {send(429, failure("", "insufficient_quota", "You exceeded your current quota.")), provider.QuotaExhausted, false, 0, "insufficient_quota", "You exceeded your current quota."},
		"quota, host says go on":   {send(429, failure("insufficient_quota", "", ""), "X-Should-Retry", "true"), provider.QuotaExhausted, false, 0, "insufficient_quota", ""},
		"nothing on the account":   {send(402, failure("", "unknown_error", "Insufficient Balance")), provider.QuotaExhausted, false, 0, "unknown_error", "Insufficient Balance"},
		"passing rate limit":       {send(429, failure("rate_limit_exceeded", "requests", "Rate limit reached"), "Retry-After", "1"), provider.RateLimited, true, time.Second, "rate_limit_exceeded", "Rate limit reached"},
		"overload for a limit":     {send(429, failure("", "engine_overloaded_error", "busy"), "Retry-After", "1"), provider.Overloaded, true, time.Second, "engine_overloaded_error", "busy"},
		"quota in other words":     {send(429, failure("", "exceeded_current_quota_error", "")), provider.QuotaExhausted, false, 0, "exceeded_current_quota_error", ""},
		"a message of many lines":  {send(500, `{"error":{"message":"no\r\n\tlevel=INFO \u001b[31mred"}}`), provider.Unavailable, true, 0, "", "no level=INFO [31mred"},
		"rate limit, no body":      {send(429, ""), provider.RateLimited, true, 0, "", ""},
		"rate limit in a list":     {send(429, `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`), provider.RateLimited, true, 0, "429", "slow"},
		"above a whole minute":     {send(429, failure("rate_limit_exceeded", "tokens", "Request too large for test-1 on tokens per min: Limit 10, Requested 20."), "Retry-After", "1"), provider.TooLong, false, 0, "rate_limit_exceeded", ""},
		"above it, with a 413":     {send(413, failure("rate_limit_exceeded", "tokens", "Request too large")), provider.TooLong, false, 0, "rate_limit_exceeded", ""},
		"context by code":          {send(400, failure("context_length_exceeded", "invalid_request_error", "This model's maximum context length is 10 tokens.")), provider.TooLong, false, 0, "context_length_exceeded", ""},
		"context by type":          {send(400, `{"error":{"code":400,"message":"the request exceeds it","type":"exceed_context_size_error","n_ctx":10}}`), provider.TooLong, false, 0, "400", "the request exceeds it"},
		"context by words":         {send(400, `{"object":"error","message":"This model's maximum context length is 10 tokens.","type":"BadRequestError","param":null,"code":400}`), provider.TooLong, false, 0, "400", ""},
		"context, a server error":  {send(500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`), provider.TooLong, false, 0, "500", ""},
		"context, under a 200":     {send(200, `{"error":"The model is loaded with context length of only 4096 tokens."}`), provider.TooLong, false, 0, "", ""},
		"context, wrapped":         {send(400, `{"detail":"{\"error\":{\"message\":\"request (5 tokens) exceeds the available context size (4 tokens)\"}}"}`), provider.TooLong, false, 0, "", ""},
		"context, said as a 500":   {send(500, `{"error":"the request exceeds the available context size"}`), provider.TooLong, false, 0, "", ""},
		"body too large":           {send(413, "<html>413</html>"), provider.TooLong, false, 0, "", "<html>413</html>"},
		"bad key":                  {send(401, failure("invalid_api_key", "invalid_request_error", "Incorrect API key provided: "+apiKey)), provider.Unauthenticated, false, 0, "invalid_api_key", "Incorrect API key provided: [key]"},
		"bad key, masked":          {send(401, failure("invalid_api_key", "", "Incorrect API key provided: sk-secre*********cdef.")), provider.Unauthenticated, false, 0, "invalid_api_key", "Incorrect API key provided: [key]."},
		"forbidden":                {send(403, failure("", "", "no")), provider.Forbidden, false, 0, "", "no"},
		"no such model":            {send(404, failure("model_not_found", "invalid_request_error", "no test-1")), provider.NotFound, false, 0, "model_not_found", "no test-1"},
		"bad request":              {send(400, failure("", "invalid_request_error", "no")), provider.InvalidRequest, false, 0, "invalid_request_error", "no"},
		"bad entity":               {send(422, `{"detail":[{"msg":"extra"}]}`), provider.InvalidRequest, false, 0, "", `[{"msg":"extra"}]`},
		"timeout at the host":      {send(408, ""), provider.TimedOut, true, 0, "", ""},
		"a lock not to be had":     {send(409, ""), provider.Conflict, true, 0, "", ""},
		"too early":                {send(425, ""), provider.Conflict, true, 0, "", ""},
		"failed":                   {send(500, failure("", "server_error", "oops")), provider.Unavailable, true, 0, "server_error", "oops"},
		"failed, and will again":   {send(500, failure("", "server_error", "oops"), "X-Should-Retry", "false"), provider.Unavailable, false, 0, "server_error", "oops"},
		"bad gateway's page":       {send(502, "<html>\n<body>\n502 "+strings.Repeat("x", 40<<10), "Content-Type", "text/html"), provider.Unavailable, true, 0, "", ""},
		"overloaded, no body":      {send(503, ""), provider.Overloaded, true, 0, "", ""},
		"overloaded, with a hint":  {send(503, "", "Retry-After-Ms", "1500", "Retry-After", "2"), provider.Overloaded, true, 1500 * time.Millisecond, "", ""},
		"gateway timeout":          {send(504, ""), provider.TimedOut, true, 0, "", ""},
		"overloaded, their number": {send(529, ""), provider.Overloaded, true, 0, "", ""},
		"an error under 200":       {send(200, failure("", "server_error", "oops")), provider.Unavailable, true, 0, "server_error", "oops"},
		"a status under 200":       {send(200, `{"error":{"code":429,"message":"slow"}}`, "Retry-After", "3"), provider.RateLimited, true, 3 * time.Second, "429", "slow"},
		"a code under 200":         {send(200, failure("rate_limit_exceeded", "", "slow")), provider.RateLimited, true, 0, "rate_limit_exceeded", "slow"},
		"the request's, under 200": {send(200, failure("", "invalid_request_error", "no")), provider.InvalidRequest, false, 0, "invalid_request_error", "no"},
		"text under 200":           {send(200, `{"error":"model runner crashed"}`), provider.Unavailable, true, 0, "", "model runner crashed"},
		"an error in the choice":   {send(200, `{"choices":[{"finish_reason":"error","message":{"content":""},"error":{"code":502,"message":"upstream"}}]}`), provider.Unavailable, true, 0, "502", "upstream"},
		"beside a choice":          {send(200, `{"error":{"message":"oops"},`+message(ada, "stop")[1:]), provider.Unavailable, true, 0, "", "oops"},
		"choices of another type":  {send(200, `{"error":{"message":"oops"},"choices":7}`), provider.Unavailable, true, 0, "", "oops"},
		"a number that is none":    {send(200, `{"error":{"code":42,"message":"oops"}}`), provider.Unavailable, true, 0, "42", "oops"},
		"a status in words":        {send(200, `{"error":{"status":"RESOURCE_EXHAUSTED"}}`), provider.RateLimited, true, 0, "RESOURCE_EXHAUSTED", ""},
		"overload under 200":       {send(200, failure("overloaded_error", "", "")), provider.Overloaded, true, 0, "overloaded_error", ""},
		"bad key, as a 400":        {send(400, failure("invalid_api_key", "", "")), provider.Unauthenticated, false, 0, "invalid_api_key", ""},
		"no such model, as a 400":  {send(400, failure("model_not_found", "", "")), provider.NotFound, false, 0, "model_not_found", ""},
		"failed, by a wrong type":  {send(500, failure("", "invalid_request_error", "")), provider.Unavailable, true, 0, "invalid_request_error", ""},
		"overload, in other words": {send(503, failure("", "", "no room in the context window pool")), provider.Overloaded, true, 0, "", ""},
		"overload, by a code":      {send(503, failure("rate_limit_exceeded", "", "")), provider.Overloaded, true, 0, "rate_limit_exceeded", ""},
		"another host's address":   {send(307, "", "Location", "http://192.0.2.1/v1/chat/completions"), "", false, 0, "", ""},
		"a redirect to nowhere":    {send(302, ""), "", false, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.answer)
			got, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
			assert.Zero(t, got)
			require.NotErrorIs(t, err, provider.ErrCompletion)
			e, ok := errors.AsType[*provider.HostError](err)
			require.True(t, ok, "%T: %v", err, err)
			assert.Equal(t, test.kind, e.Kind, "%v", err)
			assert.Equal(t, test.transient, e.Transient)
			assert.Equal(t, test.transient, provider.Retryable(err))
			assert.Equal(t, test.hint, e.Hint)
			hint, hinted := resilience.RetryAfter(err)
			assert.Equal(t, test.hint, hint)
			assert.Equal(t, test.hint > 0, hinted)
			assert.Equal(t, test.code, e.Code)
			assert.LessOrEqual(t, len(e.Message), 256)
			if test.message != "" {
				assert.Equal(t, test.message, e.Message)
			}
			vendor, ok := errors.AsType[*sdk.Error](err)
			require.True(t, ok, "the vendor's error is inside")
			assert.Equal(t, e.Status, vendor.StatusCode)
			assert.Equal(t, 1, h.requests(), "the adapter itself never tries again")
		})
	}
}

func TestAHintIsReadInAllItsForms(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds":                  {[]string{"Retry-After", "30"}, 30 * time.Second},
		"with a fraction":          {[]string{"Retry-After", " 0.5 "}, 500 * time.Millisecond},
		"milliseconds":             {[]string{"Retry-After-Ms", "250"}, 250 * time.Millisecond},
		"both":                     {[]string{"Retry-After", "1", "Retry-After-Ms", "250"}, 250 * time.Millisecond},
		"bad milliseconds":         {[]string{"Retry-After", "1", "Retry-After-Ms", "soon"}, time.Second},
		"a date":                   {[]string{"Date", sent.Format(http.TimeFormat), "Retry-After", sent.Add(77 * time.Second).Format(http.TimeFormat)}, 77 * time.Second},
		"a date that has passed":   {[]string{"Date", sent.Format(http.TimeFormat), "Retry-After", sent.Add(-time.Hour).Format(http.TimeFormat)}, 0},
		"days":                     {[]string{"Retry-After", "277403"}, 277403 * time.Second},
		"more than there is":       {[]string{"Retry-After", "99999999999999999999"}, 1<<63 - 1},
		"more than a float can be": {[]string{"Retry-After", strings.Repeat("9", 400)}, 1<<63 - 1},
		"an allowance used up":     {[]string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m30s"}, 90 * time.Second},
		"an allowance that is not": {[]string{"X-Ratelimit-Remaining-Requests", "7", "X-Ratelimit-Reset-Requests", "1m30s"}, 0},
		"zero":                     {[]string{"Retry-After", "0"}, 0},
		"negative":                 {[]string{"Retry-After", "-5"}, 0},
		"no number":                {[]string{"Retry-After", "NaN"}, 0},
		"infinity":                 {[]string{"Retry-After", "Inf"}, 0},
		"nonsense":                 {[]string{"Retry-After", "later"}, 0},
		"nothing":                  {nil, 0},
	} {
		h := start(t, send(429, "", test.headers...))
		_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
		hint, _ := resilience.RetryAfter(err)
		assert.Equal(t, test.want, hint, name)
		host, ok := errors.AsType[*provider.HostError](err)
		require.True(t, ok)
		assert.Equal(t, test.want, host.Hint, name)
	}
	// Without a date of its own the response is as old as its arrival.
	h := start(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(503)
	})
	_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
	hint, _ := resilience.RetryAfter(err)
	assert.InDelta(t, time.Minute.Seconds(), hint.Seconds(), 5)
}

func TestABrokenConnectionIsTransient(t *testing.T) {
	whole := message(ada, "stop")
	for name, answer := range map[string]func(int, http.ResponseWriter, *http.Request){
		"before any byte": func(_ int, w http.ResponseWriter, _ *http.Request) { hijack(w, false, "") },
		"by a reset":      func(_ int, w http.ResponseWriter, _ *http.Request) { hijack(w, true, "") },
		"in the header":   func(_ int, w http.ResponseWriter, _ *http.Request) { hijack(w, false, "HTTP/1.1 200 OK\r\nContent-") },
		"in the answer": func(_ int, w http.ResponseWriter, _ *http.Request) {
			hijack(w, false, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(whole))+"\r\n\r\n"+whole[:50])
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, answer)
			_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
			e, ok := errors.AsType[*provider.HostError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, provider.Disconnected, e.Kind)
			assert.Zero(t, e.Status)
			assert.True(t, provider.Retryable(err))
			assert.Error(t, e.Err)
			assert.Equal(t, 1, h.requests())
		})
	}
	t.Run("in an error's body", func(t *testing.T) {
		h := start(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			hijack(w, false, "HTTP/1.1 503 Busy\r\nContent-Length: 99\r\nRetry-After: 7\r\n\r\n{\"error\":")
		})
		_, err := provider.Extract[person](t.Context(), h.model(t, openai.Config{}), ask("Ada"))
		require.ErrorIs(t, err, provider.Overloaded, "its status and its hint had come")
		hint, _ := resilience.RetryAfter(err)
		assert.Equal(t, 7*time.Second, hint)
	})
	t.Run("nobody there", func(t *testing.T) {
		h := start(t, send(200, ""))
		llm := h.model(t, openai.Config{})
		h.server.Close()
		_, err := provider.Extract[person](t.Context(), llm, ask("Ada"))
		require.ErrorIs(t, err, provider.Disconnected)
		assert.True(t, provider.Retryable(err))
	})
}
