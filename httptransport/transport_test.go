package httptransport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script answers each request with the next status, and the last one for ever, and
// counts the requests.
func script(t testing.TB, statuses ...int) (url string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(requests.Add(1))
		w.WriteHeader(statuses[min(n, len(statuses))-1])
		fmt.Fprintf(w, "answer %d", n)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestWithoutPoliciesTheBaseAnswers(t *testing.T) {
	url, requests := script(t, 503)
	client := &http.Client{Transport: httptransport.New(nil, httptransport.Config{})}
	r, err := client.Get(url)
	require.NoError(t, err)
	assert.Equal(t, 503, r.StatusCode)
	assert.Equal(t, "answer 1", read(t, r))
	assert.EqualValues(t, 1, requests.Load())
}

func TestFailingStatusIsRetried(t *testing.T) {
	url, requests := script(t, 503, 429, 200)
	client := &http.Client{Transport: httptransport.New(nil, httptransport.Config{}, attempts(t, 4, httptransport.Retryable))}
	r, err := client.Get(url)
	require.NoError(t, err)
	assert.Equal(t, 200, r.StatusCode)
	assert.Equal(t, "answer 3", read(t, r))
	assert.EqualValues(t, 3, requests.Load())
}

func TestLastResponseComesBackOpenAndUnread(t *testing.T) {
	var bodies []*tape
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		b := &tape{Reader: strings.NewReader(fmt.Sprintf("answer %d", len(bodies)+1))}
		bodies = append(bodies, b)
		return &http.Response{StatusCode: 503, Body: b, ContentLength: -1, Request: req}, nil
	})
	transport := httptransport.New(base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))
	req := get(t, "http://host.test/")
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, 503, r.StatusCode)
	assert.Same(t, req, r.Request)
	require.Len(t, bodies, 3)
	assert.EqualValues(t, 1, bodies[0].closes.Load())
	assert.EqualValues(t, 1, bodies[1].closes.Load())
	assert.Zero(t, bodies[2].closes.Load(), "closed")
	assert.Zero(t, bodies[2].reads.Load(), "read")
	assert.Equal(t, "answer 3", read(t, r))
	assert.EqualValues(t, 1, bodies[2].closes.Load())
}

// What is resent, and what is not, by the default predicate.
func TestStatusesThatAreResent(t *testing.T) {
	for status, want := range map[int]int64{
		400: 1, 401: 1, 403: 1, 404: 1, 409: 1, 413: 1, 422: 1, 425: 1, 501: 1, 505: 1,
		408: 3, 429: 3, 500: 3, 502: 3, 503: 3, 504: 3, 529: 3,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			url, requests := script(t, status)
			transport := httptransport.New(nil, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))
			r, err := transport.RoundTrip(get(t, url))
			require.NoError(t, err)
			assert.Equal(t, status, r.StatusCode)
			assert.Equal(t, fmt.Sprintf("answer %d", want), read(t, r))
			assert.Equal(t, want, requests.Load())
		})
	}
}

func TestBrokenConnectionsAreResent(t *testing.T) {
	for name, breakIt := range map[string]func(*net.TCPConn){
		"reset":          func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
		"end":            func(c *net.TCPConn) { _ = c.Close() },
		"end in headers": func(c *net.TCPConn) { _, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-")); _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					breakIt(conn.(*net.TCPConn))
				}
			}))
			defer server.Close()
			transport := httptransport.New(&http.Transport{}, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))
			_, err := transport.RoundTrip(get(t, server.URL))
			exhausted, ok := errors.AsType[*retry.ExhaustedError](err)
			require.True(t, ok, "got %v", err)
			assert.Equal(t, 3, exhausted.Attempts)
			assert.EqualValues(t, 3, requests.Load())
		})
	}
}

func TestWhatFailsIsTheCallersToSay(t *testing.T) {
	url, requests := script(t, 202, 202, 200)
	transport := httptransport.New(nil, httptransport.Config{
		Failed: func(r *http.Response) bool { return r.StatusCode == 202 || httptransport.Failed(r) },
	}, attempts(t, 3, func(err error) bool { return httptransport.StatusOf(err) == 202 }))
	r, err := transport.RoundTrip(get(t, url))
	require.NoError(t, err)
	assert.Equal(t, 200, r.StatusCode)
	assert.EqualValues(t, 3, requests.Load())
	_ = read(t, r)
}

func TestPoliciesSeeTheStatusAsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Request-Id", "abc")
		w.WriteHeader(503)
	}))
	defer server.Close()
	var seen error
	transport := httptransport.New(nil, httptransport.Config{}, policy(func(ctx context.Context, op func(context.Context) error) error {
		seen = op(ctx)
		return seen
	}))
	r, err := transport.RoundTrip(get(t, server.URL))
	require.NoError(t, err)
	_ = read(t, r)

	status, ok := errors.AsType[*httptransport.StatusError](seen)
	require.True(t, ok, "got %v", seen)
	assert.Equal(t, 503, status.StatusCode)
	assert.Equal(t, "503 Service Unavailable", status.Status)
	assert.Equal(t, "abc", status.Header.Get("X-Request-Id"))
	after, ok := resilience.RetryAfter(fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", seen)))
	assert.True(t, ok)
	assert.Equal(t, 7*time.Second, after)
	assert.EqualError(t, seen, "httptransport: the response's status is 503 Service Unavailable")
}

func TestPolicyMayPutAnErrorInThePlaceOfAResponse(t *testing.T) {
	var body tape
	body.Reader = strings.NewReader("sorry")
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Body: &body, ContentLength: 5}, nil
	})
	mine := errors.New("no more of this")
	transport := httptransport.New(base, httptransport.Config{}, policy(func(ctx context.Context, op func(context.Context) error) error {
		_ = op(ctx)
		return mine
	}))
	_, err := transport.RoundTrip(get(t, "http://host.test/"))
	assert.Equal(t, mine, err)
	assert.EqualValues(t, 1, body.closes.Load())
}

func TestPolicyMaySettleForAFailedResponse(t *testing.T) {
	url, _ := script(t, 503)
	transport := httptransport.New(nil, httptransport.Config{}, policy(func(ctx context.Context, op func(context.Context) error) error {
		_ = op(ctx)
		return nil
	}))
	r, err := transport.RoundTrip(get(t, url))
	require.NoError(t, err)
	assert.Equal(t, 503, r.StatusCode)
	assert.Equal(t, "answer 1", read(t, r))
}

func TestPolicyFindsTheRequest(t *testing.T) {
	assert.Nil(t, httptransport.RequestFrom(t.Context()))
	assert.Empty(t, httptransport.Host(t.Context()))

	url, _ := script(t, 200)
	req := get(t, url)
	var found *http.Request
	var host string
	transport := httptransport.New(nil, httptransport.Config{}, policy(func(ctx context.Context, op func(context.Context) error) error {
		found, host = httptransport.RequestFrom(ctx), httptransport.Host(ctx)
		return op(ctx)
	}))
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	_ = read(t, r)
	assert.Same(t, req, found)
	assert.Equal(t, req.URL.Host, host)
}

func TestNilPolicyPanicsWhereTheTransportIsMade(t *testing.T) {
	assert.Panics(t, func() { httptransport.New(nil, httptransport.Config{}, (*retry.Policy)(nil)) })
}

func TestHintIsWaitedFor(t *testing.T) {
	for name, hint := range map[string]func(http.Header){
		"seconds": func(h http.Header) { h.Set("Retry-After", "30") },
		"date": func(h http.Header) {
			h.Set("Retry-After", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))
		},
		"milliseconds": func(h http.Header) { h.Set("Retry-After-Ms", "30000") },
		"reset":        func(h http.Header) { h.Set("X-Ratelimit-Reset-Tokens", "30s") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var requests int
				n := inMemory(t, func(w http.ResponseWriter, _ *http.Request) {
					if requests++; requests == 1 {
						hint(w.Header())
						w.WriteHeader(429)
					}
				})
				start := time.Now()
				transport := httptransport.New(n.Base, httptransport.Config{}, retrying(t, httptransport.Retryable, retry.Config{
					MaxAttempts: 3,
					Backoff:     retry.Exponential{Base: 100 * time.Millisecond, Max: 2 * time.Second},
				}))
				r, err := transport.RoundTrip(get(t, "http://host.test/"))
				require.NoError(t, err)
				assert.Equal(t, 200, r.StatusCode)
				assert.Equal(t, 30*time.Second, time.Since(start), "the hint is a floor, and no backoff's maximum clips it")
				_ = read(t, r)
			})
		})
	}
}

func TestHintBeyondTheLongestHonouredEndsTheCallAtOnce(t *testing.T) {
	const backoff = 500 * time.Millisecond
	for hint, want := range map[string]struct {
		requests int
		elapsed  time.Duration
	}{
		"0":                       {2, backoff}, // no hint
		"1":                       {2, time.Second},
		"59":                      {2, 59 * time.Second},
		"60":                      {2, 60 * time.Second},
		"61":                      {1, 0},
		"3600":                    {1, 0},
		"277403":                  {1, 0},
		"99999999999999999999999": {1, 0},
	} {
		t.Run(hint, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var requests int
				n := inMemory(t, func(w http.ResponseWriter, _ *http.Request) {
					requests++
					w.Header().Set("Retry-After", hint)
					w.WriteHeader(503)
				})
				start := time.Now()
				transport := httptransport.New(n.Base, httptransport.Config{}, retrying(t, httptransport.Retryable, retry.Config{
					MaxAttempts: 2, Backoff: retry.Constant(backoff), MaxHint: time.Minute,
				}))
				r, err := transport.RoundTrip(get(t, "http://host.test/"))
				require.NoError(t, err)
				assert.Equal(t, hint, r.Header.Get("Retry-After"), "the caller gets the hint")
				assert.Equal(t, want.requests, requests)
				assert.Equal(t, want.elapsed, time.Since(start))
				_ = read(t, r)
			})
		})
	}
}

func TestCancellationEndsTheWaitBetweenAttempts(t *testing.T) {
	for name, hint := range map[string]string{"backoff": "", "hint": "90"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var requests int
				n := inMemory(t, func(w http.ResponseWriter, _ *http.Request) {
					requests++
					w.Header().Set("Retry-After", hint)
					w.WriteHeader(503)
				})
				client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{}, retrying(t, httptransport.Retryable, retry.Config{
					Backoff: retry.Constant(30 * time.Second), MaxHint: time.Hour,
				}))}
				shutdown := errors.New("shutting down")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(100*time.Millisecond, func() { cancel(shutdown) })
				start := time.Now()
				_, err := client.Do(get(t, "http://host.test/").WithContext(ctx))
				assert.Equal(t, 100*time.Millisecond, time.Since(start))
				assert.Equal(t, 1, requests)
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, err, shutdown)
				assert.Equal(t, 503, httptransport.StatusOf(err), "the last failure is still there")
			})
		})
	}
}

// A wait that the caller has no time for is not begun, and then the response in hand
// tells the caller more than an error would.
func TestDeadlineTooNearForTheWaitGivesTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := inMemory(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(503)
		})
		transport := httptransport.New(n.Base, httptransport.Config{}, retrying(t, httptransport.Retryable, retry.Config{}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		r, err := transport.RoundTrip(get(t, "http://host.test/").WithContext(ctx))
		require.NoError(t, err)
		assert.Equal(t, 503, r.StatusCode)
		assert.Zero(t, time.Since(start))
		_ = read(t, r)
	})
}

// Whoever makes four attempts sends four requests, whatever is below.
func TestRequestsAreAsManyAsAttempts(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		url, requests := script(t, 429)
		client := &http.Client{Transport: httptransport.New(nil, httptransport.Config{}, attempts(t, n, httptransport.Retryable))}
		r, err := client.Get(url)
		require.NoError(t, err)
		_ = read(t, r)
		assert.EqualValues(t, n, requests.Load())
	}
}

// Of two retries in one chain the inner one's word is final. Of two transports, one
// inside the other, each knows only responses, and so attempts multiply.
func TestAttemptsWithinAttempts(t *testing.T) {
	again := attempts(t, 3, httptransport.Retryable)
	for want, transport := range map[int64]http.RoundTripper{
		3: httptransport.New(nil, httptransport.Config{}, again, again),
		9: httptransport.New(httptransport.New(nil, httptransport.Config{}, again), httptransport.Config{}, again),
	} {
		url, requests := script(t, 503)
		r, err := transport.RoundTrip(get(t, url))
		require.NoError(t, err)
		_ = read(t, r)
		assert.Equal(t, want, requests.Load())
	}
}

func TestClientTimeoutCoversAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests int
		n := inMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			requests++
			<-r.Context().Done()
		})
		client := &http.Client{
			Transport: httptransport.New(n.Base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable)),
			Timeout:   time.Second,
		}
		start := time.Now()
		_, err := client.Do(get(t, "http://host.test/"))
		assert.Equal(t, time.Second, time.Since(start))
		synctest.Wait()
		assert.Equal(t, 1, requests)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		failed, ok := errors.AsType[*url.Error](err)
		require.True(t, ok)
		assert.True(t, failed.Timeout())
		assert.Zero(t, n.open.Load())
	})
}

func TestCloseIdleConnectionsReachesTheBase(t *testing.T) {
	url, _ := script(t, 200)
	n := &network{}
	n.Base = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return n.count(conn), nil
	}}
	client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{})}
	r, err := client.Get(url)
	require.NoError(t, err)
	_ = read(t, r)
	assert.EqualValues(t, 1, n.open.Load())
	client.CloseIdleConnections()
	eventually(t, "connection closed", func() bool { return n.open.Load() == 0 })

	bare := httptransport.New(roundTripper(nil), httptransport.Config{})
	assert.NotPanics(t, bare.CloseIdleConnections)
}

func TestTransportServesManyAtOnce(t *testing.T) {
	url, _ := script(t, 503, 200)
	client := &http.Client{Transport: httptransport.New(nil, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			r, err := client.Get(url)
			if assert.NoError(t, err) {
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		})
	}
	wg.Wait()
}

func TestCallerWhoHasGoneGetsNoStatusAsAnError(t *testing.T) {
	shutdown := errors.New("shutting down")
	for name, policies := range map[string][]resilience.Policy{
		"no policy": nil,
		"a limit":   {limit(t, time.Minute)},
		"a retry":   {attempts(t, 3, httptransport.Retryable)},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				body := &tape{Reader: strings.NewReader("sorry")}
				base := roundTripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 503, Body: body}, nil
				})
				leave := func(*http.Response) bool { // once the headers are there
					cancel(shutdown)
					return true
				}
				req := get(t, "http://host.test/").WithContext(ctx)
				req.Method = method
				r, err := httptransport.New(base, httptransport.Config{Failed: leave}, policies...).RoundTrip(req)
				assert.Nil(t, r)
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, err, shutdown)
				assert.Equal(t, 503, httptransport.StatusOf(err), "the last failure is lost")
				assert.EqualValues(t, 1, body.closes.Load())
			})
		}
	}
}

func TestCallerWhoHasGoneFindsThatInTheErrorWhateverTheBaseSays(t *testing.T) {
	shutdown := errors.New("shutting down")
	for _, says := range []error{io.ErrUnexpectedEOF, context.Canceled, fmt.Errorf("dial: %w", shutdown)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			cancel(shutdown)
			return nil, says
		})
		_, err := httptransport.New(base, httptransport.Config{}).RoundTrip(get(t, "http://host.test/").WithContext(ctx))
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, shutdown)
		assert.ErrorIs(t, err, says)
	}
}

func TestBaseMayGiveAResponseWithoutABody(t *testing.T) {
	sent := 0
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: []int{503, 200}[sent-1]}, nil
	})
	policies := append(chain(t), limit(t, time.Second))
	client := &http.Client{Transport: httptransport.New(base, httptransport.Config{LimitBody: true}, policies...)}
	r, err := client.Get("http://host.test/")
	require.NoError(t, err)
	assert.Empty(t, read(t, r))
	assert.Equal(t, 2, sent)
}
