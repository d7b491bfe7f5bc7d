package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// An answer is what the server says to one request.
type answer struct {
	status       int
	retryAfterMs string
	body         string
}

// A server gives the answers it was told to give, in order.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	answers []answer
	count   int
}

func newServer() *server {
	s := new(server)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

func (s *server) serve(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.count++
	a := answer{status: http.StatusTeapot} // unless somebody asks too often
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	if a.retryAfterMs != "" {
		w.Header().Set("Retry-After-Ms", a.retryAfterMs)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// next sets the answers to come.
func (s *server) next(answers ...answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.count = answers, 0
}

// served returns how many requests there were since then.
func (s *server) served() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
