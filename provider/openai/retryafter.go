package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter returns how long the host asks to be left alone, and zero if it does not
// say or says nonsense. The variant in milliseconds, which this vendor has, is the more
// exact one and comes first. Retry-After is in seconds or a date (RFC 9110, section
// 10.2.3); a date is reckoned from the response's own Date, where there is one, so that
// two clocks need not agree.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := multiple(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if at, err := http.ParseTime(value); err == nil {
		if sent, err := http.ParseTime(h.Get("Date")); err == nil {
			now = sent
		}
		return max(0, at.Sub(now))
	}
	return multiple(value, time.Second)
}

// multiple returns a decimal number of units, and zero for one that is negative or none.
func multiple(value string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if math.IsInf(n, 1) && !strings.ContainsAny(value, "iI") {
		return math.MaxInt64 // too large a number is still one
	}
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n <= 0 {
		return 0
	}
	if d := n * float64(unit); d < math.MaxInt64 {
		return time.Duration(d)
	}
	return math.MaxInt64
}
