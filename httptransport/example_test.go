package httptransport_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/resilience-toolkit/resilience/timeout"
)

// must ends an example whose parts cannot be made.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A server that is busy, then down, and then well.
func busyServer() *httptest.Server {
	var requests int
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch requests++; requests {
		case 1:
			w.Header().Set("Retry-After-Ms", "5")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprintf(w, "answer to request %d", requests)
		}
	}))
}

func Example() {
	server := busyServer()
	defer server.Close()

	circuits := must(httptransport.PerHost(func(host string) (resilience.Policy, error) {
		return breaker.New(breaker.Config{Name: host, Classify: httptransport.Classify})
	}, httptransport.PerHostConfig{}))
	allowance := must(ratelimit.New(100, time.Minute, ratelimit.Config{}))
	defer allowance.Close()
	again := must(retry.New(httptransport.Retryable, retry.Config{
		MaxAttempts: 3,
		Backoff:     retry.Constant(time.Millisecond),
	}))
	each := must(timeout.New(10 * time.Second))

	client := &http.Client{
		Transport: httptransport.New(nil, httptransport.Config{},
			circuits, allowance.By(httptransport.Host), again, each),
	}

	r, err := client.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	fmt.Println(r.StatusCode, string(body), err)
	// Output: 200 answer to request 3 <nil>
}

// When the attempts run out, the caller gets the last response as from any
// http.Client.
func ExampleNew() {
	server := busyServer()
	defer server.Close()

	twice := must(retry.New(httptransport.Retryable, retry.Config{MaxAttempts: 2}))
	client := &http.Client{Transport: httptransport.New(nil, httptransport.Config{}, twice)}

	r, err := client.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	fmt.Println(r.Status)
	// Output: 503 Service Unavailable
}

// A POST is sent once, unless somebody says that it may be sent again. Here it is
// the caller; a header Idempotency-Key would say so too.
func ExampleConfig() {
	server := busyServer()
	defer server.Close()

	again := must(retry.New(httptransport.Retryable, retry.Config{}))
	client := &http.Client{
		Transport: httptransport.New(nil, httptransport.Config{
			Repeatable: func(req *http.Request) bool {
				return strings.HasPrefix(req.URL.Path, "/search") || httptransport.Repeatable(req)
			},
		}, again),
	}

	for _, path := range []string{"/orders", "/search"} {
		r, err := client.Post(server.URL+path, "text/plain", strings.NewReader("shoes"))
		if err != nil {
			log.Fatal(err)
		}
		r.Body.Close()
		fmt.Println(path, r.Status)
	}
	// Output:
	// /orders 429 Too Many Requests
	// /search 200 OK
}

func ExampleByRequest() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()

	allowance := must(ratelimit.New(10, time.Minute, ratelimit.Config{}))
	defer allowance.Close()
	client := &http.Client{
		Transport: httptransport.New(nil, httptransport.Config{},
			httptransport.ByRequest(func(req *http.Request) resilience.Policy {
				if req.Method == http.MethodPost {
					return allowance.For(httptransport.HostOf(req)).Cost(10)
				}
				return allowance.For(httptransport.HostOf(req))
			})),
	}

	for _, method := range []string{"GET", "POST"} {
		req := must(http.NewRequestWithContext(context.Background(), method, server.URL, nil))
		r, err := client.Do(req)
		if err != nil {
			_, limited := resilience.RetryAfter(err)
			fmt.Println(method, "refused:", limited)
			continue
		}
		r.Body.Close()
		fmt.Println(method, r.Status)
	}
	// Output:
	// GET 200 OK
	// POST refused: true
}

func ExampleStatusOf() {
	// Conflicts are tried again too, and being busy counts against the host.
	retryable := func(err error) bool {
		return httptransport.StatusOf(err) == http.StatusConflict || httptransport.Retryable(err)
	}
	classify := func(ctx context.Context, err error) breaker.Outcome {
		if httptransport.StatusOf(err) == http.StatusTooManyRequests {
			return breaker.Failure
		}
		return httptransport.Classify(ctx, err)
	}

	busy := &httptransport.StatusError{StatusCode: http.StatusTooManyRequests}
	conflict := &httptransport.StatusError{StatusCode: http.StatusConflict}
	fmt.Println(retryable(busy), classify(context.Background(), busy))
	fmt.Println(retryable(conflict), classify(context.Background(), conflict))
	// Output:
	// true failure
	// true success
}
