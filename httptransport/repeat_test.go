package httptransport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

func TestRequestsThatMayBeSentAgain(t *testing.T) {
	body := func() io.Reader { return strings.NewReader("x") } // NewRequest sets GetBody
	stream := func() io.Reader { return io.MultiReader(strings.NewReader("x")) }
	for name, test := range map[string]struct {
		method string
		body   func() io.Reader
		header http.Header
		want   int64
	}{
		"GET":                              {method: "GET", want: 3},
		"no method":                        {method: "", want: 3},
		"HEAD":                             {method: "HEAD", want: 3},
		"OPTIONS":                          {method: "OPTIONS", want: 3},
		"TRACE":                            {method: "TRACE", want: 3},
		"PUT":                              {method: "PUT", body: body, want: 3},
		"DELETE":                           {method: "DELETE", want: 3},
		"POST":                             {method: "POST", body: body, want: 1},
		"POST without a body":              {method: "POST", want: 1},
		"PATCH":                            {method: "PATCH", body: body, want: 1},
		"method of one's own":              {method: "get", want: 1},
		"POST with a key":                  {method: "POST", body: body, header: http.Header{"Idempotency-Key": {"1"}}, want: 3},
		"POST with an X-key":               {method: "POST", body: body, header: http.Header{"X-Idempotency-Key": {"1"}}, want: 3},
		"POST with a key that is not sent": {method: "POST", body: body, header: http.Header{"X-Idempotency-Key": nil}, want: 3},
		"PUT of a stream":                  {method: "PUT", body: stream, want: 1},
		"POST of a stream with a key":      {method: "POST", body: stream, header: http.Header{"Idempotency-Key": {"1"}}, want: 1},
		"PUT of http.NoBody":               {method: "PUT", body: func() io.Reader { return http.NoBody }, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			var requests int64
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				requests++
				if req.Body != nil {
					_ = req.Body.Close()
				}
				return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
			})
			var from io.Reader
			if test.body != nil {
				from = test.body()
			}
			req, err := http.NewRequest(test.method, "http://host.test/", from)
			require.NoError(t, err)
			for k, v := range test.header {
				req.Header[k] = v
			}
			if name == "no method" {
				req.Method = ""
			}
			// The predicate has no say in it.
			transport := httptransport.New(base, httptransport.Config{}, attempts(t, 3, always))
			r, err := transport.RoundTrip(req)
			require.NoError(t, err)
			assert.Equal(t, 503, r.StatusCode)
			assert.Equal(t, test.want, requests)
		})
	}
}

func TestCallerMaySayWhatIsRepeatable(t *testing.T) {
	for name, test := range map[string]struct {
		may  bool
		body io.Reader
		want int64
	}{
		"a search by POST":        {true, strings.NewReader("x"), 3},
		"but not its stream":      {true, io.MultiReader(strings.NewReader("x")), 1},
		"nothing, for instance":   {false, strings.NewReader("x"), 1},
		"nothing, body or not":    {false, nil, 1},
		"anything without bodies": {true, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := script(t, 503)
			transport := httptransport.New(nil, httptransport.Config{
				Repeatable: func(*http.Request) bool { return test.may },
			}, attempts(t, 3, httptransport.Retryable))
			req, err := http.NewRequest("POST", url, test.body)
			require.NoError(t, err)
			r, err := transport.RoundTrip(req)
			require.NoError(t, err)
			_ = read(t, r)
			assert.Equal(t, test.want, requests.Load())
		})
	}
}

func TestFailureOfARequestNotToBeRepeatedComesBackAtOnceAndAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("connection reset")
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			_ = req.Body.Close()
			return nil, broken
		})
		again := retrying(t, always, retry.Config{Backoff: retry.Constant(time.Hour)})
		for _, policies := range [][]resilience.Policy{nil, {again}, {resilience.Join(again, again)}, {again, again}} {
			start := time.Now()
			transport := httptransport.New(base, httptransport.Config{}, policies...)
			req, err := http.NewRequest("POST", "http://host.test/", strings.NewReader("x"))
			require.NoError(t, err)
			_, err = transport.RoundTrip(req)
			assert.Equal(t, broken, err)
			assert.Zero(t, time.Since(start), "waited for nothing")
		}
	})
}

// foreign is a retry that is not of package retry.
var foreign = policy(func(ctx context.Context, op func(context.Context) error) error {
	if op(ctx) == nil {
		return nil
	}
	return op(ctx)
})

func TestForeignRetryIsRefusedASecondAttempt(t *testing.T) {
	url, requests := script(t, 503)
	var refusal error
	transport := httptransport.New(nil, httptransport.Config{},
		policy(func(ctx context.Context, op func(context.Context) error) error {
			refusal = op(ctx)
			return refusal
		}), foreign)
	req, err := http.NewRequest("POST", url, strings.NewReader("x"))
	require.NoError(t, err)
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, 503, r.StatusCode)
	assert.Equal(t, "answer 1", read(t, r))
	assert.EqualValues(t, 1, requests.Load())
	assert.ErrorIs(t, refusal, resilience.ErrRejected)
	assert.Equal(t, 503, httptransport.StatusOf(refusal))
}

// A policy that runs its operation again after a success, to compare perhaps.
func TestSuccessNotToBeRepeatedIsNotRepeated(t *testing.T) {
	url, requests := script(t, 200)
	var second error
	transport := httptransport.New(nil, httptransport.Config{}, policy(func(ctx context.Context, op func(context.Context) error) error {
		err := op(ctx)
		second = op(ctx)
		return err
	}))
	req, err := http.NewRequest("POST", url, strings.NewReader("x"))
	require.NoError(t, err)
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, "answer 1", read(t, r))
	assert.EqualValues(t, 1, requests.Load())
	assert.ErrorIs(t, second, resilience.ErrRejected)
	assert.EqualError(t, second, "httptransport: the request may not be sent again")
}

func TestEveryAttemptSendsTheSameRequest(t *testing.T) {
	type received struct {
		body   string
		length int64
		header http.Header
	}
	var mu sync.Mutex
	got := map[string][]received{} // by request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		mu.Lock()
		id := r.Header.Get("Idempotency-Key")
		got[id] = append(got[id], received{string(b), r.ContentLength, r.Header})
		n := len(got[id])
		mu.Unlock()
		switch n {
		case 1:
			w.WriteHeader(429)
		case 2:
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				_ = conn.Close()
			}
		}
	}))
	defer server.Close()

	// A base that does what it must not: it changes what it was given.
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		req.Header.Add("Authorization", "secret")
		return http.DefaultTransport.RoundTrip(req)
	})
	client := &http.Client{Transport: httptransport.New(base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte('a' + i%26)}, 10<<10)
			req, err := http.NewRequest("POST", server.URL, bytes.NewReader(body))
			if !assert.NoError(t, err) {
				return
			}
			req.Header.Set("Idempotency-Key", fmt.Sprint(i))
			original := req.Body
			r, err := client.Do(req)
			if !assert.NoError(t, err) {
				return
			}
			_ = r.Body.Close()
			assert.Equal(t, 200, r.StatusCode)
			assert.Equal(t, http.Header{"Idempotency-Key": {fmt.Sprint(i)}}, req.Header)
			assert.Equal(t, original, req.Body)
			assert.EqualValues(t, len(body), req.ContentLength)

			mu.Lock()
			defer mu.Unlock()
			if assert.Len(t, got[fmt.Sprint(i)], 3) {
				for _, each := range got[fmt.Sprint(i)] {
					assert.Equal(t, string(body), each.body)
					assert.EqualValues(t, len(body), each.length)
					assert.Equal(t, []string{"secret"}, each.header.Values("Authorization"))
				}
			}
		})
	}
	wg.Wait()
}

func TestRequestCanBeUsedAgain(t *testing.T) {
	url, requests := script(t, 503, 200, 503, 200)
	transport := httptransport.New(nil, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))
	req := get(t, url)
	for range 2 {
		r, err := transport.RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, 200, r.StatusCode)
		_ = read(t, r)
	}
	assert.EqualValues(t, 4, requests.Load())
}

func TestRedirectsKeepTheBody(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.URL.Path+" "+string(b))
		switch len(bodies) {
		case 1, 3:
			w.WriteHeader(503)
		case 2:
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: httptransport.New(nil, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))}
	req, err := http.NewRequest("PUT", server.URL+"/here", strings.NewReader("x"))
	require.NoError(t, err)
	r, err := client.Do(req)
	require.NoError(t, err)
	_ = read(t, r)
	assert.Equal(t, []string{"/here x", "/here x", "/there x", "/there x"}, bodies)
	assert.Equal(t, "/there", r.Request.URL.Path)
}

func TestBodyThatCannotBeHadAgainLeavesTheResponse(t *testing.T) {
	url, requests := script(t, 503)
	req, err := http.NewRequest("PUT", url, strings.NewReader("x"))
	require.NoError(t, err)
	lost := errors.New("file is gone")
	req.GetBody = func() (io.ReadCloser, error) { return nil, lost }
	var reason error
	transport := httptransport.New(nil, httptransport.Config{},
		policy(func(ctx context.Context, op func(context.Context) error) error {
			reason = op(ctx)
			return reason
		}), attempts(t, 5, always))
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, "answer 1", read(t, r))
	assert.EqualValues(t, 1, requests.Load())
	assert.ErrorIs(t, reason, lost)
}

// A closer that counts.
type requestBody struct {
	io.Reader
	closes atomic.Int64
}

func (b *requestBody) Close() error {
	b.closes.Add(1)
	return nil
}

func TestRequestsBodyIsClosedOnEveryPath(t *testing.T) {
	refuse := policy(func(context.Context, func(context.Context) error) error { return resilience.ErrRejected })
	explode := policy(func(context.Context, func(context.Context) error) error { panic("policy") })
	gone := policy(func(ctx context.Context, op func(context.Context) error) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return op(ctx) // nothing is sent
	})
	later := policy(func(ctx context.Context, op func(context.Context) error) error {
		_ = op(ctx)
		panic("policy")
	})
	url, requests := script(t, 503)
	for name, policies := range map[string][]resilience.Policy{
		"no policy":              nil,
		"retried":                {attempts(t, 3, always)},
		"refused":                {refuse},
		"panic before the first": {explode},
		"context done":           {gone},
		"panic after it":         {later},
	} {
		t.Run(name, func(t *testing.T) {
			before := requests.Load()
			var bodies []*requestBody
			open := func() (io.ReadCloser, error) {
				b := &requestBody{Reader: strings.NewReader("x")}
				bodies = append(bodies, b)
				return b, nil
			}
			first, _ := open()
			req, err := http.NewRequest("PUT", url, first)
			require.NoError(t, err)
			req.ContentLength = 1
			req.GetBody = open
			func() {
				defer func() { _ = recover() }()
				r, err := httptransport.New(nil, httptransport.Config{}, policies...).RoundTrip(req)
				if err == nil {
					_ = read(t, r)
				}
			}()
			for _, b := range bodies {
				eventually(t, "closed", func() bool { return b.closes.Load() > 0 })
			}
			if name == "refused" || name == "panic before the first" || name == "context done" {
				assert.EqualValues(t, 1, bodies[0].closes.Load())
				assert.Equal(t, before, requests.Load())
			}
			if name == "retried" {
				assert.Len(t, bodies, 3)
			}
		})
	}
}

// A summingBody sets the request's trailer at its end, as net/http allows.
type summingBody struct {
	io.Reader
	trailer http.Header
}

func (b summingBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.trailer.Set("Sum", "5")
	}
	return n, err
}

func (b summingBody) Close() error { return nil }

func TestTrailerThatTheBodyFillsInIsSent(t *testing.T) {
	var sums []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		sums = append(sums, r.Trailer.Get("Sum"))
		if len(sums) == 1 {
			w.WriteHeader(503)
		}
	}))
	defer server.Close()
	transport := httptransport.New(nil, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))
	req, err := http.NewRequest("PUT", server.URL, nil)
	require.NoError(t, err)
	req.Trailer = http.Header{"Sum": nil}
	req.ContentLength = -1
	req.GetBody = func() (io.ReadCloser, error) {
		return summingBody{strings.NewReader("hello"), req.Trailer}, nil
	}
	req.Body, _ = req.GetBody()
	r, err := transport.RoundTrip(req)
	require.NoError(t, err)
	_ = read(t, r)
	assert.Equal(t, []string{"5", "5"}, sums)
}
