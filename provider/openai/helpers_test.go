package openai_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
)

type netConn = net.Conn

// quiet swallows what the test server says about connections that a test breaks.
var quiet = log.New(io.Discard, "", 0)

type ctx = context.Context

// hijack sends raw bytes and ends the connection, by a reset if asked to.
func hijack(w http.ResponseWriter, reset bool, raw string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, raw)
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func newTLS(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet
	s.StartTLS()
	return s
}
