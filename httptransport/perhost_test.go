package httptransport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answering is a base that answers with the status its host is named after, and
// counts the requests per host.
func answering(requests *sync.Map) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		n, _ := requests.LoadOrStore(req.URL.Host, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		var status int
		if _, err := fmt.Sscanf(req.URL.Host, "%d.test", &status); err != nil {
			return nil, io.EOF
		}
		return &http.Response{StatusCode: status, Body: http.NoBody, Request: req}, nil
	})
}

func circuits(t *testing.T, cfg breaker.Config, per httptransport.PerHostConfig) resilience.Policy {
	t.Helper()
	p, err := httptransport.PerHost(func(host string) (resilience.Policy, error) {
		cfg.Name = host
		cfg.Classify = httptransport.Classify
		return breaker.New(cfg)
	}, per)
	require.NoError(t, err)
	return p
}

func TestHostThatIsDownIsLeftAloneAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests sync.Map
		transport := httptransport.New(answering(&requests), httptransport.Config{},
			circuits(t, breaker.Config{FailureThreshold: 3}, httptransport.PerHostConfig{}))
		refused := map[string]int{}
		for range 10 {
			for _, host := range []string{"503.test", "broken.test", "200.test", "404.test", "429.test"} {
				_, err := transport.RoundTrip(get(t, "http://"+host+"/"))
				if open, ok := errors.AsType[*breaker.OpenError](err); ok {
					assert.Equal(t, host, open.Name)
					refused[host]++
				}
			}
		}
		assert.Equal(t, map[string]int{"503.test": 7, "broken.test": 7}, refused)

		time.Sleep(30 * time.Second) // the recovery timeout
		r, err := transport.RoundTrip(get(t, "http://503.test/"))
		require.NoError(t, err, "a probe")
		assert.Equal(t, 503, r.StatusCode)
	})
}

func TestCircuitSeesTheOutcomeOfWhatIsInsideIt(t *testing.T) {
	for name, last := range map[string]int{"host is down": 503, "request is at fault": 400, "host is busy": 429} {
		t.Run(name, func(t *testing.T) {
			url, requests := script(t, last)
			transport := httptransport.New(nil, httptransport.Config{},
				circuits(t, breaker.Config{FailureThreshold: 2}, httptransport.PerHostConfig{}),
				attempts(t, 2, httptransport.Retryable))
			var refusals int
			for range 5 {
				r, err := transport.RoundTrip(get(t, url))
				if err != nil {
					assert.ErrorIs(t, err, resilience.ErrRejected)
					refusals++
					continue
				}
				_ = read(t, r)
			}
			if last == 503 {
				assert.Equal(t, 3, refusals)
				assert.EqualValues(t, 4, requests.Load())
			} else {
				assert.Zero(t, refusals)
			}
		})
	}
}

// With the circuit inside the retry, the attempt that opens it is the last, and the
// host's own answer is what the caller gets.
func TestRefusalOfALaterAttemptGivesTheLastResponse(t *testing.T) {
	url, requests := script(t, 503)
	var told []error
	transport := httptransport.New(nil, httptransport.Config{},
		policy(func(ctx context.Context, op func(context.Context) error) error {
			err := op(ctx)
			told = append(told, err)
			return err
		}),
		attempts(t, 5, httptransport.Retryable),
		circuits(t, breaker.Config{FailureThreshold: 2}, httptransport.PerHostConfig{}))
	r, err := transport.RoundTrip(get(t, url))
	require.NoError(t, err)
	assert.Equal(t, 503, r.StatusCode)
	assert.Equal(t, "answer 2", read(t, r))
	assert.EqualValues(t, 2, requests.Load())
	_, open := errors.AsType[*breaker.OpenError](told[0])
	assert.True(t, open, "the refusal is there for those inside: %v", told[0])

	// Refused before its first attempt, a request has no response.
	_, err = transport.RoundTrip(get(t, url))
	assert.ErrorIs(t, err, resilience.ErrRejected)
	assert.EqualValues(t, 2, requests.Load())
}

func TestClassify(t *testing.T) {
	status := func(code int) error {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Body: http.NoBody}, nil
		})
		var seen error
		_, _ = httptransport.New(base, httptransport.Config{Failed: func(*http.Response) bool { return true }},
			policy(func(ctx context.Context, op func(context.Context) error) error {
				seen = op(ctx)
				return seen
			})).RoundTrip(get(t, "http://host.test/"))
		require.Error(t, seen)
		return seen
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want breaker.Outcome
	}{
		"success":                {t.Context(), nil, breaker.Success},
		"500":                    {t.Context(), status(500), breaker.Failure},
		"503":                    {t.Context(), status(503), breaker.Failure},
		"529":                    {t.Context(), status(529), breaker.Failure},
		"wrapped 503":            {t.Context(), fmt.Errorf("x: %w", status(503)), breaker.Failure},
		"503 of a retry":         {t.Context(), &retry.ExhaustedError{Last: status(503)}, breaker.Failure},
		"408":                    {t.Context(), status(408), breaker.Neutral},
		"429":                    {t.Context(), status(429), breaker.Neutral},
		"409":                    {t.Context(), status(409), breaker.Success},
		"connection":             {t.Context(), &net.OpError{Op: "dial", Err: io.EOF}, breaker.Failure},
		"limit":                  {t.Context(), context.DeadlineExceeded, breaker.Failure},
		"refusal":                {t.Context(), &ratelimit.ExceededError{}, breaker.Neutral},
		"cancelled":              {cancelled, io.EOF, breaker.Neutral},
		"cancelled, after a 503": {cancelled, status(503), breaker.Neutral},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, httptransport.Classify(test.ctx, test.err))
		})
	}
}

func TestRetryable(t *testing.T) {
	assert.False(t, httptransport.Retryable(nil))
	assert.False(t, httptransport.Retryable(io.EOF), "of a policy, perhaps: the base has not said it")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"refusal":                {&breaker.OpenError{}, false},
		"cancelled":              {fmt.Errorf("x: %w", context.Canceled), false},
		"limit of an attempt":    {context.DeadlineExceeded, true},
		"connection refused":     {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		"end of the connection":  {io.EOF, true},
		"unexpected end":         {io.ErrUnexpectedEOF, true},
		"something of HTTP/2":    {errors.New("http2: client connection lost"), true},
		"name server is away":    {&net.DNSError{IsTemporary: true}, true},
		"no such name":           {&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, false},
		"certificate":            {&tls.CertificateVerificationError{Err: io.EOF}, false},
		"not TLS":                {tls.RecordHeaderError{}, false},
		"not TLS, says net/http": {http.ErrSchemeMismatch, false},
		"address":                {&net.OpError{Op: "dial", Err: &net.AddrError{Err: "missing port"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := &httptransport.ConnectionError{Err: test.err}
			assert.Equal(t, test.want, httptransport.Retryable(err))
			assert.Equal(t, test.want, httptransport.Retryable(fmt.Errorf("x: %w", err)))
			assert.EqualError(t, err, test.err.Error())
		})
	}
}

func TestCertificateThatIsNotTrustedIsTriedOnce(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	var tries int
	base := &http.Transport{}
	counted := roundTripper(func(req *http.Request) (*http.Response, error) { tries++; return base.RoundTrip(req) })
	transport := httptransport.New(counted, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))
	_, err := transport.RoundTrip(get(t, server.URL))
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	assert.True(t, untrusted, "got %v", err)
	assert.Equal(t, 1, tries)
}

func TestHostOf(t *testing.T) {
	for url, want := range map[string]string{
		"http://example.com/a":        "example.com",
		"http://Example.COM:80/":      "example.com",
		"https://example.com:443/":    "example.com",
		"HTTPS://example.com:443/":    "example.com",
		"https://example.com:80/":     "example.com:80",
		"http://example.com:443/":     "example.com:443",
		"http://example.com:8080/":    "example.com:8080",
		"http://example.com:/":        "example.com",
		"http://[2001:DB8::1]/":       "[2001:db8::1]",
		"http://[2001:db8::1]:80/":    "[2001:db8::1]",
		"http://[2001:db8::1]:81/":    "[2001:db8::1]:81",
		"http://user:pw@example.com/": "example.com",
		"http://127.0.0.1:80":         "127.0.0.1",
	} {
		req := get(t, url)
		req.Host = "says.anything"
		assert.Equal(t, want, httptransport.HostOf(req), url)
	}
}

func TestAllowancePerHost(t *testing.T) {
	allowance, err := ratelimit.New(2, time.Minute, ratelimit.Config{})
	require.NoError(t, err)
	defer func() { _ = allowance.Close() }()
	var requests sync.Map
	transport := httptransport.New(answering(&requests), httptransport.Config{}, allowance.By(httptransport.Host))
	for range 3 {
		for _, host := range []string{"200.test", "204.test"} {
			_, _ = transport.RoundTrip(get(t, "http://"+host+"/"))
		}
	}
	_, err = transport.RoundTrip(get(t, "http://200.test:80/"))
	exceeded, ok := errors.AsType[*ratelimit.ExceededError](err)
	require.True(t, ok, "got %v", err)
	assert.Equal(t, "200.test", exceeded.Key)
	for _, host := range []string{"200.test", "204.test"} {
		n, _ := requests.Load(host)
		assert.EqualValues(t, 2, n.(*atomic.Int64).Load())
	}
}

func TestAllowanceByRequest(t *testing.T) {
	allowance, err := ratelimit.New(10, time.Minute, ratelimit.Config{})
	require.NoError(t, err)
	defer func() { _ = allowance.Close() }()
	var requests sync.Map
	transport := httptransport.New(answering(&requests), httptransport.Config{},
		httptransport.ByRequest(func(req *http.Request) resilience.Policy {
			if req.URL.Path == "/health" {
				return nil
			}
			return allowance.For(req.Header.Get("X-Tenant")).Cost(int(max(1, req.ContentLength)))
		}))
	send := func(path, tenant string, length int64) error {
		req := get(t, "http://200.test"+path)
		req.Header.Set("X-Tenant", tenant)
		req.ContentLength = length
		_, err := transport.RoundTrip(req)
		return err
	}
	assert.NoError(t, send("/", "a", 7))
	assert.ErrorIs(t, send("/", "a", 4), resilience.ErrRejected)
	assert.NoError(t, send("/", "a", 3))
	assert.NoError(t, send("/", "b", 10))
	assert.NoError(t, send("/health", "a", 0))
}

func TestPolicyPerHostIsMadeOnceAndOnFirstUse(t *testing.T) {
	var made sync.Map
	p, err := httptransport.PerHost(func(host string) (resilience.Policy, error) {
		n, _ := made.LoadOrStore(host, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		runtime.Gosched()
		return resilience.Join(), nil
	}, httptransport.PerHostConfig{Key: func(req *http.Request) string { return req.URL.Path }})
	require.NoError(t, err)
	var requests sync.Map
	transport := httptransport.New(answering(&requests), httptransport.Config{}, p)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			_, err := transport.RoundTrip(get(t, fmt.Sprintf("http://200.test/%d", i%5)))
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	hosts := 0
	made.Range(func(host, n any) bool {
		hosts++
		assert.EqualValues(t, 1, n.(*atomic.Int64).Load(), host)
		return true
	})
	assert.Equal(t, 5, hosts)
}

func TestPoliciesPerHostAreBoundedInNumber(t *testing.T) {
	var made []string
	p, err := httptransport.PerHost(func(host string) (resilience.Policy, error) {
		made = append(made, host)
		return resilience.Join(), nil
	}, httptransport.PerHostConfig{Max: 2})
	require.NoError(t, err)
	var requests sync.Map
	transport := httptransport.New(answering(&requests), httptransport.Config{}, p)
	for _, host := range []string{"201", "202", "201", "203", "201", "202", "203"} {
		_, err := transport.RoundTrip(get(t, "http://"+host+".test/"))
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"201.test", "202.test", "203.test", "202.test", "203.test"}, made, "the least recently used goes")
}

func TestForgottenCircuitOnASharedCacheIsAsItWas(t *testing.T) {
	shared := memory.New()
	defer func() { _ = shared.Close() }()
	var requests sync.Map
	transport := httptransport.New(answering(&requests), httptransport.Config{},
		circuits(t, breaker.Config{FailureThreshold: 1, Cache: shared}, httptransport.PerHostConfig{Max: 1}))
	for _, host := range []string{"503.test", "200.test"} {
		_, err := transport.RoundTrip(get(t, "http://"+host+"/"))
		require.NoError(t, err)
	}
	_, err := transport.RoundTrip(get(t, "http://503.test/"))
	assert.ErrorIs(t, err, resilience.ErrRejected, "still open")
}

func TestPolicyThatCannotBeMadeRefuses(t *testing.T) {
	broken := errors.New("no such circuit")
	results := []func() (resilience.Policy, error){
		func() (resilience.Policy, error) { return nil, broken },
		func() (resilience.Policy, error) { return nil, nil },
		func() (resilience.Policy, error) { panic("newPolicy") },
		func() (resilience.Policy, error) { return resilience.Join(), nil },
	}
	p, err := httptransport.PerHost(func(string) (resilience.Policy, error) {
		next := results[0]
		results = results[1:]
		return next()
	}, httptransport.PerHostConfig{})
	require.NoError(t, err)
	var requests sync.Map
	transport := httptransport.New(answering(&requests), httptransport.Config{}, attempts(t, 5, always), p)
	send := func() error {
		_, err := transport.RoundTrip(get(t, "http://200.test/"))
		return err
	}
	err = send()
	assert.ErrorIs(t, err, broken)
	assert.ErrorIs(t, err, resilience.ErrRejected)
	assert.ErrorContains(t, err, `no policy for "200.test"`)
	assert.ErrorIs(t, send(), resilience.ErrRejected)
	assert.PanicsWithValue(t, "newPolicy", func() { _ = send() })
	assert.NoError(t, send())
}

func TestPoliciesThatGoByTheRequestRefuseWithoutOne(t *testing.T) {
	perHost, err := httptransport.PerHost(func(string) (resilience.Policy, error) { return resilience.Join(), nil }, httptransport.PerHostConfig{})
	require.NoError(t, err)
	for _, p := range []resilience.Policy{
		perHost,
		httptransport.ByRequest(func(*http.Request) resilience.Policy { return nil }),
	} {
		err := p.Do(t.Context(), func(context.Context) error { t.Error("ran"); return nil })
		assert.ErrorIs(t, err, resilience.ErrRejected)
	}
}

func TestBadArgumentsOfPolicies(t *testing.T) {
	_, err := httptransport.PerHost(nil, httptransport.PerHostConfig{})
	assert.ErrorContains(t, err, "httptransport: newPolicy is nil")
	_, err = httptransport.PerHost(func(string) (resilience.Policy, error) { return nil, nil }, httptransport.PerHostConfig{Max: -1})
	assert.ErrorContains(t, err, "httptransport: Max is -1, want zero or more")
	assert.Panics(t, func() { httptransport.ByRequest(nil) })
}

func TestRequestsWaitForTheirPolicyNoLongerThanTheirContextsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		p, err := httptransport.PerHost(func(string) (resilience.Policy, error) {
			time.Sleep(time.Minute)
			made.Add(1)
			return limit(t, time.Minute), nil
		}, httptransport.PerHostConfig{})
		require.NoError(t, err)
		base := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil })
		transport := httptransport.New(base, httptransport.Config{}, p)

		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := transport.RoundTrip(get(t, "http://host.test/"))
				assert.NoError(t, err)
				assert.Equal(t, time.Minute, time.Since(start))
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = transport.RoundTrip(get(t, "http://host.test/").WithContext(ctx))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
		wg.Wait()
		assert.EqualValues(t, 1, made.Load())
	})
}

// A tenant's bad token must not take the host away from the others.
func TestMalformedRequestIsTriedOnceAndSaysNothingAboutTheHost(t *testing.T) {
	url, requests := script(t, 200)
	tries := 0
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		tries++
		return http.DefaultTransport.RoundTrip(req)
	})
	transport := httptransport.New(base, httptransport.Config{},
		circuits(t, breaker.Config{FailureThreshold: 1}, httptransport.PerHostConfig{
			Key: func(*http.Request) string { return "one" },
		}), attempts(t, 3, always))
	for name, spoil := range map[string]func(*http.Request){
		"value":   func(req *http.Request) { req.Header.Set("Authorization", "Bearer x\n") },
		"delete":  func(req *http.Request) { req.Header.Set("X", "\x7f") },
		"name":    func(req *http.Request) { req.Header["X Y"] = []string{"z"} },
		"no name": func(req *http.Request) { req.Header[""] = []string{"z"} },
		"trailer": func(req *http.Request) { req.Trailer = http.Header{"Sum": {"\x00"}} },
		"host":    func(req *http.Request) { req.URL.Host = "" },
		"header":  func(req *http.Request) { req.Header = nil },
	} {
		t.Run(name, func(t *testing.T) {
			tries = 0
			req := get(t, url)
			spoil(req)
			_, want := http.DefaultTransport.RoundTrip(req.Clone(t.Context()))
			_, err := transport.RoundTrip(req)
			assert.Equal(t, want, err, "the base's word")
			assert.Equal(t, 1, tries)

			req = get(t, url)
			req.Header["!#$%&'*+-.^_`|~09AZaz"] = []string{"a\tb \xff é", ""}
			r, err := transport.RoundTrip(req)
			require.NoError(t, err, "the circuit has opened")
			_ = read(t, r)
		})
	}
	assert.EqualValues(t, 7, requests.Load())
}

func TestPolicyPerHostOutlivesTheBubbleItWasMadeIn(t *testing.T) {
	p, err := httptransport.PerHost(func(string) (resilience.Policy, error) { return limit(t, time.Minute), nil },
		httptransport.PerHostConfig{})
	require.NoError(t, err)
	base := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil })
	transport := httptransport.New(base, httptransport.Config{}, p)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			_, err := transport.RoundTrip(get(t, "http://host.test/"))
			assert.NoError(t, err)
		})
	}
}
