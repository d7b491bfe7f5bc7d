package httptransport_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/timeout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chain is what a user has: a whole limit, a retry, and a limit per attempt.
func chain(t testing.TB) []resilience.Policy {
	return []resilience.Policy{limit(t, time.Minute), attempts(t, 3, httptransport.Retryable), limit(t, 30*time.Second)}
}

func TestHTTP2(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "HTTP/2.0", r.Proto)
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		switch n := requests.Add(1); {
		case n%3 == 1:
			w.WriteHeader(503)
			_, _ = w.Write(make([]byte, 1<<20)) // more than is drained: the stream is reset
		case n%3 == 2:
			panic(http.ErrAbortHandler) // a reset stream
		default:
			w.Header().Set("Trailer", "Checksum")
			_, _ = w.Write(b)
			w.Header().Set("Checksum", "abc")
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: httptransport.New(server.Client().Transport, httptransport.Config{}, chain(t)...)}
	for range 20 {
		req, err := http.NewRequest("PUT", server.URL, strings.NewReader("hello"))
		require.NoError(t, err)
		r, err := client.Do(req)
		require.NoError(t, err)
		assert.Equal(t, 2, r.ProtoMajor)
		assert.Equal(t, "hello", read(t, r))
		assert.Equal(t, "abc", r.Trailer.Get("Checksum"))
	}
	assert.EqualValues(t, 60, requests.Load())
}

func TestHTTP2BothWaysAtOnce(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, "echo", lines.Text())
			w.(http.Flusher).Flush()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: httptransport.New(server.Client().Transport, httptransport.Config{}, chain(t)...)}
	out, in := io.Pipe()
	req, err := http.NewRequest("POST", server.URL, out)
	require.NoError(t, err)
	r, err := client.Do(req)
	require.NoError(t, err)
	lines := bufio.NewScanner(r.Body)
	for _, word := range []string{"one", "two", "three"} {
		fmt.Fprintln(in, word)
		require.True(t, lines.Scan())
		assert.Equal(t, "echo "+word, lines.Text())
	}
	require.NoError(t, in.Close())
	assert.False(t, lines.Scan())
	assert.NoError(t, lines.Err())
	require.NoError(t, r.Body.Close())
}

func TestLimitsOverHTTP2(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			w.WriteHeader(200)
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for name, base := range map[string]http.RoundTripper{
		"net/http": server.Client().Transport,
		"a base with a context of its own": roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(req.Context())
			context.AfterFunc(req.Context(), cancel)
			return server.Client().Transport.RoundTrip(req.WithContext(ctx))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			client := &http.Client{Transport: httptransport.New(base, httptransport.Config{LimitBody: true},
				attempts(t, 2, httptransport.Retryable), limit(t, 100*time.Millisecond))}
			r, err := client.Get(server.URL) // the first attempt is too slow
			require.NoError(t, err)
			assert.EqualValues(t, 2, requests.Load())
			b, err := io.ReadAll(r.Body) // and so is the body
			assert.Equal(t, "x", string(b))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, context.Canceled)
			require.NoError(t, r.Body.Close())

			requests.Store(-9)
			_, err = client.Get(server.URL)
			assert.EqualValues(t, -7, requests.Load())
			_, exceeded := errors.AsType[*timeout.ExceededError](err)
			assert.True(t, exceeded, "got %v", err)
			assert.NotErrorIs(t, err, context.Canceled)
		})
	}
}

func TestExpectContinue(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(503) // without having asked for the body
			return
		}
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		_, _ = w.Write(b)
	})
	n.Base.ExpectContinueTimeout = time.Minute
	transport := httptransport.New(n.Base, httptransport.Config{}, chain(t)...)
	body := strings.Repeat("x", 1<<20)
	req, err := http.NewRequest("PUT", n.URL, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Expect", "100-continue")
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, 200, r.StatusCode)
	assert.Equal(t, body, read(t, r))
}

func TestTrailers(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Checksum")
		if requests.Add(1) == 1 {
			w.WriteHeader(503)
		}
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Checksum", r.Trailer.Get("Sum"))
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, chain(t)...)
	req, err := http.NewRequest("PUT", n.URL, strings.NewReader("hello"))
	require.NoError(t, err)
	req.ContentLength = -1 // trailers need chunks
	req.Trailer = http.Header{"Sum": {"abc"}}
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Contains(t, r.Trailer, "Checksum")
	assert.Equal(t, "hello", read(t, r))
	assert.Equal(t, "abc", r.Trailer.Get("Checksum"))
}

func TestTraceSeesEachAttempt(t *testing.T) {
	url, _ := script(t, 503, 200)
	var connections, wrote, first int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { connections++ },
		WroteRequest:         func(httptrace.WroteRequestInfo) { wrote++ },
		GotFirstResponseByte: func() { first++ },
	})
	r, err := httptransport.New(nil, httptransport.Config{}, chain(t)...).RoundTrip(get(t, url).WithContext(ctx))
	require.NoError(t, err)
	_ = read(t, r)
	assert.Equal(t, []int{2, 2, 2}, []int{connections, wrote, first})
}

func TestUpgradeHandsOverTheConnection(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(503)
			return
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, both, err := w.(http.Hijacker).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		_, _ = io.Copy(conn, both)
		_ = conn.Close()
	})
	transport := httptransport.New(n.Base, httptransport.Config{LimitBody: true}, attempts(t, 3, httptransport.Retryable), limit(t, 100*time.Millisecond))
	req := get(t, n.URL)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, http.StatusSwitchingProtocols, r.StatusCode)
	conn, ok := r.Body.(io.ReadWriteCloser)
	require.True(t, ok, "%T cannot be written to", r.Body)

	time.Sleep(200 * time.Millisecond) // no limit of an attempt's is for this
	lines := bufio.NewScanner(conn)
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(conn, word)
		require.True(t, lines.Scan())
		assert.Equal(t, word, lines.Text())
	}
	half, ok := conn.(interface{ CloseWrite() error })
	require.True(t, ok)
	assert.ErrorIs(t, half.CloseWrite(), http.ErrNotSupported, "the base's answer: its connection here has none")
	require.NoError(t, conn.Close())
	assert.Zero(t, n.open.Load())
}

// Not even for a base that would heed it.
func TestLimitDoesNotCoverAnUpgradedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		base := &contexts{base: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: here}, nil
		})}
		r, err := httptransport.New(base, httptransport.Config{LimitBody: true}, limit(t, time.Second)).
			RoundTrip(get(t, "http://host.test/"))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		assert.NoError(t, base.all[0].Err())
		require.NoError(t, r.Body.Close())
		assert.Error(t, base.all[0].Err())
	})
}

func TestStreamIsReadAsItComes(t *testing.T) {
	step := make(chan struct{})
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500) // a failed one too: it is the last
		for i := range 3 {
			fmt.Fprintln(w, "event", i)
			w.(http.Flusher).Flush()
			<-step
		}
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 1, httptransport.Retryable), limit(t, time.Minute))
	r, err := transport.RoundTrip(get(t, n.URL))
	require.NoError(t, err)
	lines := bufio.NewScanner(r.Body)
	for i := range 3 {
		require.True(t, lines.Scan())
		assert.Equal(t, fmt.Sprint("event ", i), lines.Text())
		step <- struct{}{}
	}
	assert.False(t, lines.Scan())
	require.NoError(t, r.Body.Close())
}

func TestCancellationAfterTheHeadersReachesTheServer(t *testing.T) {
	for name, policies := range map[string][]resilience.Policy{
		"with limits": chain(t), "without": {attempts(t, 3, httptransport.Retryable)},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(200)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			r, err := httptransport.New(n.Base, httptransport.Config{}, policies...).RoundTrip(get(t, n.URL).WithContext(ctx))
			require.NoError(t, err)
			cancel()
			_, err = io.ReadAll(r.Body)
			assert.ErrorIs(t, err, context.Canceled)
			require.NoError(t, r.Body.Close())
			<-gone
		})
	}
}

func TestHeadAndEmptyResponses(t *testing.T) {
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		if r.Method == "DELETE" {
			w.Header().Del("Content-Length")
			w.WriteHeader(204)
		}
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, chain(t)...)
	for method, status := range map[string]int{"HEAD": 200, "DELETE": 204} {
		req, err := http.NewRequest(method, n.URL, nil)
		require.NoError(t, err)
		r, err := transport.RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, status, r.StatusCode)
		assert.Equal(t, http.NoBody, r.Body)
		assert.Empty(t, read(t, r))
	}
	assert.EqualValues(t, 1, n.opened.Load())
}

func TestClientsTimeoutCoversTheBody(t *testing.T) {
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{}, chain(t)...), Timeout: 200 * time.Millisecond}
	r, err := client.Get(n.URL)
	require.NoError(t, err)
	b, err := io.ReadAll(r.Body)
	assert.Equal(t, "x", string(b))
	timedOut, ok := errors.AsType[net.Error](err)
	assert.True(t, ok && timedOut.Timeout(), "got %v", err)
	require.NoError(t, r.Body.Close())
	eventually(t, "connection closed", func() bool { return n.open.Load() == 0 })
}

func TestInformationalResponsesAreTraced(t *testing.T) {
	n := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(200)
	})
	var hints []int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { hints = append(hints, code); return nil },
	})
	r, err := httptransport.New(n.Base, httptransport.Config{}, chain(t)...).RoundTrip(get(t, n.URL).WithContext(ctx))
	require.NoError(t, err)
	assert.Equal(t, 200, r.StatusCode)
	assert.Equal(t, []int{103}, hints)
	_ = read(t, r)
}

func TestCompressedResponseIsReadAndItsConnectionUsedAgain(t *testing.T) {
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		_, _ = zip.Write([]byte(strings.Repeat("hello ", 1000)))
		_ = zip.Close()
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, chain(t)...)
	for range 3 {
		r, err := transport.RoundTrip(get(t, n.URL))
		require.NoError(t, err)
		assert.True(t, r.Uncompressed)
		assert.Len(t, read(t, r), 6000)
	}
	assert.EqualValues(t, 1, n.opened.Load())
}

func TestAnswerBeforeTheEndOfAnUpload(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(503) // and nothing is read
			return
		}
		length, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
		fmt.Fprint(w, length)
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, chain(t)...)
	req, err := http.NewRequest("PUT", n.URL, strings.NewReader(strings.Repeat("x", 10<<20)))
	require.NoError(t, err)
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprint(10<<20), read(t, r))
}

func TestCancellationDuringAnUpload(t *testing.T) {
	n := loopback(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	body := &requestBody{Reader: out}
	req, err := http.NewRequestWithContext(ctx, "PUT", n.URL, body)
	require.NoError(t, err)
	go func() {
		_, _ = in.Write([]byte("the beginning"))
		cancel()
		_ = in.Close() // net/http waits for a read of the body that is under way
	}()
	_, err = httptransport.New(n.Base, httptransport.Config{}, chain(t)...).RoundTrip(req)
	assert.ErrorIs(t, err, context.Canceled)
	eventually(t, "body closed", func() bool { return body.closes.Load() > 0 })
	eventually(t, "connection closed", func() bool { return n.open.Load() == 0 })
}
