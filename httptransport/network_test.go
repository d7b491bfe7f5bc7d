package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/require"
)

// A network connects a base transport to a server and knows its connections.
type network struct {
	Base   *http.Transport
	opened atomic.Int64
	open   atomic.Int64
}

func (n *network) count(conn net.Conn) net.Conn {
	n.opened.Add(1)
	n.open.Add(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { n.open.Add(-1) })}
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// inMemory serves over pipes, for a bubble of virtual time.
func inMemory(t *testing.T, handler http.HandlerFunc) *network {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	n := new(network)
	n.Base = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := l.dial(ctx)
			if err != nil {
				return nil, err
			}
			return n.count(conn), nil
		},
	}
	t.Cleanup(func() {
		n.Base.CloseIdleConnections()
		_ = server.Close()
	})
	return n
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A roundTripper is a base made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A policy is one made of a function.
type policy func(ctx context.Context, op func(context.Context) error) error

func (f policy) Do(ctx context.Context, op func(context.Context) error) error { return f(ctx, op) }

// attempts returns a retry without waits that accepts what the predicate does.
func attempts(t testing.TB, n int, retryable func(error) bool) *retry.Policy {
	return retrying(t, retryable, retry.Config{MaxAttempts: n, Backoff: retry.Constant(0)})
}

func retrying(t testing.TB, retryable func(error) bool, cfg retry.Config) *retry.Policy {
	t.Helper()
	p, err := retry.New(retryable, cfg)
	require.NoError(t, err)
	return p
}

func always(error) bool { return true }

func get(t testing.TB, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return req
}

// read returns all of a response's body, and closes it.
func read(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	return string(b)
}

// A tape is a response's body that tells what becomes of it.
type tape struct {
	io.Reader
	reads  atomic.Int64 // bytes
	closes atomic.Int64
}

func (b *tape) Read(p []byte) (int, error) {
	if b.closes.Load() > 0 {
		return 0, errors.New("read after close")
	}
	n, err := b.Reader.Read(p)
	b.reads.Add(int64(n))
	return n, err
}

func (b *tape) Close() error {
	b.closes.Add(1)
	return nil
}

// eventually waits, in real time, for what other goroutines are about to do.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !is(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), what)
	}
}
