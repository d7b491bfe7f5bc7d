package httptransport_test

import (
	"fmt"
	"net/http"

	"github.com/resilience-toolkit/resilience/httptransport"
)

// An adapter around somebody's SDK has the response, and an error of its own to make.
func ExampleRetryAfter() {
	busy := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}}
	fmt.Println(httptransport.RetryAfter(busy))
	busy.Header.Set("Retry-After", "30")
	fmt.Println(httptransport.RetryAfter(busy))
	busy.Header.Set("Retry-After-Ms", "1500") // more exact
	fmt.Println(httptransport.RetryAfter(busy))
	// Output:
	// 0s
	// 30s
	// 1.5s
}
