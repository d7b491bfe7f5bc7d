package httptransport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/httptransport"
)

// What a transport adds to a request: the base answers at once.
func BenchmarkRoundTrip(b *testing.B) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	req := get(b, "http://host.test/")
	req.Header.Set("Accept", "application/json")
	for name, policies := range map[string][]resilience.Policy{
		"no policy":       nil,
		"retry":           {attempts(b, 3, httptransport.Retryable)},
		"retry and limit": {attempts(b, 3, httptransport.Retryable), limit(b, time.Minute)},
	} {
		b.Run(name, func(b *testing.B) {
			transport := httptransport.New(base, httptransport.Config{}, policies...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transport.RoundTrip(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("base alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = base.RoundTrip(req)
		}
	})
}

// And over a real connection.
func BenchmarkLoopback(b *testing.B) {
	n := loopback(b, func(http.ResponseWriter, *http.Request) {})
	for name, transport := range map[string]http.RoundTripper{
		"base alone":      n.Base,
		"retry and limit": httptransport.New(n.Base, httptransport.Config{}, attempts(b, 3, httptransport.Retryable), limit(b, time.Minute)),
	} {
		b.Run(name, func(b *testing.B) {
			req := get(b, n.URL)
			b.ReportAllocs()
			for b.Loop() {
				r, err := transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_ = r.Body.Close()
			}
		})
	}
}
