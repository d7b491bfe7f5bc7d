package httptransport

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns how long a response that arrives now asks to be left alone, and
// 0 if it does not ask. The package comment says where that is looked for. It is for
// code that makes errors of its own of responses, such as an adapter around a vendor's
// SDK.
func RetryAfter(r *http.Response) time.Duration {
	return hint(r.StatusCode, r.Header, time.Now())
}

// hint returns how long a response that arrives now asks to be left alone, and 0 if
// it does not say so in a way that can be understood. It never returns less than 0.
func hint(status int, h http.Header, now time.Time) time.Duration {
	// Instants of the server are measured by its own clock, where it tells it.
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if d, ok := decimal(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	if d, ok := retryAfter(h.Get("Retry-After"), now); ok {
		return d
	}
	return reset(status, h, now)
}

// retryAfter reads a Retry-After: seconds, or one of the three forms of a date that
// RFC 9110, section 5.6.7, has recipients accept.
func retryAfter(s string, now time.Time) (time.Duration, bool) {
	if d, ok := decimal(s, time.Second); ok {
		return d, true
	}
	if date, err := http.ParseTime(strings.TrimSpace(s)); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

// reset returns the longest wait that the X-RateLimit-Reset headers ask for, the
// plain one and those of single allowances (-Requests, -Tokens). They are sent with
// every response, so only that of an allowance which is used up counts: one with
// nothing remaining or, where that is not said, any with a 429.
func reset(status int, h http.Header, now time.Time) time.Duration {
	const prefix, remainingPrefix = "X-Ratelimit-Reset", "X-Ratelimit-Remaining"
	var longest time.Duration
	for name, values := range h {
		suffix, ok := strings.CutPrefix(name, prefix)
		if !ok || len(values) == 0 || suffix != "" && suffix[0] != '-' {
			continue
		}
		remaining, known := decimal(h.Get(remainingPrefix+suffix), 1)
		if known && remaining > 0 || !known && status != http.StatusTooManyRequests {
			continue
		}
		longest = max(longest, resetValue(values[0], now))
	}
	return longest
}

// resetValue reads one of the forms in use: "6m0s", "1.5" seconds, and seconds or
// milliseconds since 1970. A number from 10^8 on, which is three years or 1973, is
// an instant, and from 10^11 on it is in milliseconds.
func resetValue(s string, now time.Time) time.Duration {
	const instant, millis = 1e8, 1e11
	n, ok := number(s)
	switch {
	case !ok:
		d, err := time.ParseDuration(strings.TrimSpace(s))
		if err != nil {
			return 0
		}
		return max(0, d)
	case n >= millis:
		return max(0, time.Unix(0, int64(duration(n, time.Millisecond))).Sub(now))
	case n >= instant:
		return max(0, time.Unix(0, int64(duration(n, time.Second))).Sub(now))
	default:
		return duration(n, time.Second)
	}
}

// decimal reads a number of units, such as "30" or "0.5".
func decimal(s string, unit time.Duration) (time.Duration, bool) {
	n, ok := number(s)
	return duration(n, unit), ok
}

// number reads digits with at most one decimal point among them; no sign, no
// exponent, no name of a number. What is beyond a float64 is infinite.
func number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// duration returns n units, or the longest duration if that is less.
func duration(n float64, unit time.Duration) time.Duration {
	d := n * float64(unit)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}
