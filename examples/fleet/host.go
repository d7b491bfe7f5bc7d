package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A host answers on a loopback port, until it goes down.
type host struct {
	url    string
	server *http.Server
	down   atomic.Bool
	inVain atomic.Int64 // requests that reached it while it was down
}

func startHost() (*host, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &host{url: "http://" + listener.Addr().String()}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	go func() { _ = h.server.Serve(listener) }()
	return h, nil
}

func (h *host) close()        { _ = h.server.Close() }
func (h *host) goDown() error { h.down.Store(true); return nil }
func (h *host) comeUp() error { h.down.Store(false); return nil }

// ServeHTTP implements http.Handler.
func (h *host) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if h.down.Load() {
		h.inVain.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}
