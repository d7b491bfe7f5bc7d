package main

import (
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A host is a real HTTP server on a loopback port with a bad day: it is slow, fails in
// bursts, asks to be left alone, goes down, and comes back. It counts what reaches it.
type host struct {
	server   *http.Server
	url      string
	born     time.Time
	requests atomic.Int64 // all that arrived
	useless  atomic.Int64 // those that were not answered with a 200
	busiest  atomic.Int64 // most requests within one half second
	bucket   atomic.Int64 // the half second that is being counted ...
	inBucket atomic.Int64 // ... and its requests
	counts   live         // what became of the calls to it
	upAgain  atomic.Int64 // when a host that was knocked over is up again, in nanoseconds after birth
	knocked  atomic.Int64 // how often that was
}

// capacity is how many requests the host stands in half a second. One more knocks it
// over, and then it answers nobody for recovery.
const (
	capacity = 140
	recovery = 700 * time.Millisecond
)

// weather is what the host, and the callers, do from some time on.
type weather struct {
	from  time.Duration
	name  string
	pause time.Duration // how long a caller waits before its next call
	serve func(http.ResponseWriter, time.Duration)
}

const (
	calm  = 120 * time.Millisecond
	hurry = 20 * time.Millisecond
)

const dayLength = 12500 * time.Millisecond

var day = []weather{
	{0, "well", calm, answer},
	{1500 * time.Millisecond, "well, at rush hour", hurry, answer},
	{3 * time.Second, "fails in bursts", calm, func(w http.ResponseWriter, at time.Duration) {
		if at%(500*time.Millisecond) < 100*time.Millisecond {
			http.Error(w, "out of workers", http.StatusServiceUnavailable)
			return
		}
		answer(w, at)
	}},
	{5 * time.Second, "wants a second of rest", calm, func(w http.ResponseWriter, _ time.Duration) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	}},
	{6 * time.Second, "well", calm, answer},
	{7 * time.Second, "down", calm, hangUp},
	{10 * time.Second, "well", calm, answer},
}

func answer(w http.ResponseWriter, _ time.Duration) {
	time.Sleep(time.Duration(20+rand.IntN(20)) * time.Millisecond)
	_, _ = w.Write([]byte("an answer"))
}

// hangUp closes the connection without an answer, as a host that is down.
func hangUp(w http.ResponseWriter, _ time.Duration) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func startHost() (*host, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &host{url: "http://" + listener.Addr().String(), born: time.Now()}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	go func() { _ = h.server.Serve(listener) }()
	return h, nil
}

func (h *host) close() { _ = h.server.Close() }

func (h *host) now() weather {
	age, now := time.Since(h.born), day[0]
	for _, w := range day {
		if age >= w.from {
			now = w
		}
	}
	return now
}

// ServeHTTP implements http.Handler.
func (h *host) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.requests.Add(1)
	age := time.Since(h.born)
	if b := int64(age / (500 * time.Millisecond)); h.bucket.Swap(b) != b {
		h.inBucket.Store(0)
	}
	n := h.inBucket.Add(1)
	h.busiest.Store(max(n, h.busiest.Load()))
	serve := h.now().serve
	switch {
	case age < time.Duration(h.upAgain.Load()):
		serve = hangUp
	case n > capacity:
		h.upAgain.Store(int64(age + recovery))
		h.knocked.Add(1)
		serve = hangUp
	}
	seen := &statusSeen{ResponseWriter: w, status: http.StatusOK}
	serve(seen, age)
	if seen.status != http.StatusOK {
		h.useless.Add(1)
	}
}

// statusSeen remembers the status; a connection taken over counts as no answer.
type statusSeen struct {
	http.ResponseWriter
	status int
}

func (s *statusSeen) WriteHeader(status int) { s.status = status; s.ResponseWriter.WriteHeader(status) }

func (s *statusSeen) Unwrap() http.ResponseWriter { s.status = 0; return s.ResponseWriter }
