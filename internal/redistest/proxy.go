package redistest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy stands between a client and a server and loses or delays what it is
// told to.
type Proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	drop  func(n int) bool
	delay time.Duration
	n     int
	conns []net.Conn
}

// NewProxy starts a proxy in front of the server, until the end of the test.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: s.Addr()}
	var running sync.WaitGroup
	running.Go(func() { p.accept(&running) })
	t.Cleanup(func() {
		l.Close()
		p.Disconnect()
		running.Wait()
	})
	return p
}

// Addr returns the host and port to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Drop sets which replies are lost, together with the connection they were for: of
// those that arrive from now on, the n-th (counted from 0) if drop(n) is true. It is
// called by one goroutine at a time; nil loses nothing. A reply is what one read from
// the server yields: of commands that are sent together, all replies may be one. What a
// client says first on a new connection (HELLO, CLIENT) is answered, and not counted.
func (p *Proxy) Drop(drop func(n int) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop, p.n = drop, 0
}

// Delay has each reply, one after the other on a connection, arrive later by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Replies returns how many replies have arrived since Drop.
func (p *Proxy) Replies() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Disconnect cuts every connection.
func (p *Proxy) Disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *Proxy) accept(running *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		var greeting atomic.Bool
		running.Go(func() {
			defer server.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := client.Read(buf)
				if err != nil {
					return
				}
				greeting.Store(isGreeting(buf[:n]))
				if _, err := server.Write(buf[:n]); err != nil {
					return
				}
			}
		})
		running.Go(func() {
			defer client.Close()
			defer server.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := server.Read(buf)
				if err != nil || !greeting.Load() && p.lose() {
					return
				}
				if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
		})
	}
}

func (p *Proxy) lose() bool {
	p.mu.Lock()
	delay, lost := p.delay, p.drop != nil && p.drop(p.n)
	p.n++
	p.mu.Unlock()
	time.Sleep(delay)
	return lost
}

func isGreeting(request []byte) bool {
	_, command, _ := bytes.Cut(request, []byte("\r\n"))
	command = bytes.ToLower(command[:min(len(command), 16)])
	return bytes.HasPrefix(command, []byte("$5\r\nhello")) || bytes.HasPrefix(command, []byte("$6\r\nclient"))
}
