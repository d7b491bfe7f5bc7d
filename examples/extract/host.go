package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// A host speaks the wire format of chat completions on the loopback interface, and does
// what the name in a document says.
type host struct {
	server *httptest.Server

	mu    sync.Mutex
	count int
	seen  map[string]int // by document
}

func newHost() *host {
	h := &host{seen: map[string]int{}}
	h.server = httptest.NewServer(h)
	return h
}

// close may be called on a nil host.
func (h *host) close() {
	if h != nil {
		h.server.Close()
	}
}

// served returns how many requests there were. It may be called on a nil host.
func (h *host) served() int {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// arrive counts a request, and returns how many there were for its document.
func (h *host) arrive(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	h.seen[name]++
	return h.seen[name]
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text := request.Messages[len(request.Messages)-1].Content
	_, name, _ := strings.Cut(text, "(")
	name, _, _ = strings.Cut(name, ")")
	first := h.arrive(name) == 1
	if behave, ok := strings.CutSuffix(name, " at first"); ok {
		if !first {
			complete(w, answer, "stop")
			return
		}
		name = behave
	}
	switch name {
	case "a fence around the answer":
		complete(w, "```json\n"+answer+"\n```", "stop")
	case "reasoning before the answer":
		complete(w, "<think>Tea is 2.50.</think>\n"+answer, "stop")
	case "busy":
		fail(w, http.StatusServiceUnavailable, "", "overloaded", 20)
	case "too many requests":
		fail(w, http.StatusTooManyRequests, "rate_limit_exceeded", "slow down", 30)
	case "a connection that breaks":
		panic(http.ErrAbortHandler)
	case "no answer":
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
	case "nothing but reasoning":
		complete(w, "<think>Is it a receipt?</think>", "stop")
	case "an answer that is cut":
		complete(w, answer[:20], "length")
	case "a model that declines":
		write(w, `{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"I would rather not."}}]}`)
	case "a filter":
		fail(w, http.StatusBadRequest, "content_filter", "filtered", 0)
	case "prose":
		complete(w, "It cost 5.50.", "stop")
	case "another shape":
		complete(w, `{"store":"Corner Shop"}`, "stop")
	case "a proxy's page":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>Please sign in</html>")
	case "a long text":
		fail(w, http.StatusBadRequest, "context_length_exceeded", "too long", 0)
	case "an account without money":
		fail(w, http.StatusTooManyRequests, "insufficient_quota", "quota exceeded", 0)
	case "a host that is down", "a host that is down, still", "a host that is down, as is known":
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html>502</html>")
	default:
		complete(w, answer, "stop")
	}
}

const answer = `{"shop":"Corner Shop","total":5.5,"items":[{"name":"tea","price":2.5},{"name":"scone","price":3}]}`

func complete(w http.ResponseWriter, content, finish string) {
	body, _ := json.Marshal(map[string]any{
		"model": "moody-1",
		"choices": []any{map[string]any{
			"finish_reason": finish,
			"message":       map[string]any{"role": "assistant", "content": content},
		}},
		"usage": map[string]any{
			"prompt_tokens": 50, "completion_tokens": 500,
			"completion_tokens_details": map[string]any{"reasoning_tokens": 493},
		},
	})
	write(w, string(body))
}

func write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

func fail(w http.ResponseWriter, status int, code, message string, retryAfterMs int) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfterMs > 0 {
		w.Header().Set("Retry-After-Ms", fmt.Sprint(retryAfterMs))
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, code, message)
}
