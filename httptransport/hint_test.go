package httptransport

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var arrival = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// headers parses lines such as "Retry-After: 1".
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		k, v, _ := strings.Cut(l, ": ")
		h.Add(k, v)
	}
	return h
}

func TestRetryAfterInEveryForm(t *testing.T) {
	in30 := arrival.Add(30 * time.Second)
	for value, want := range map[string]time.Duration{
		"30":                                30 * time.Second,
		" 30 ":                              30 * time.Second,
		"1":                                 time.Second,
		"0.5":                               500 * time.Millisecond,
		"1.":                                time.Second,
		"277403":                            277403 * time.Second,
		"9223372036":                        9223372036 * time.Second,
		"9223372037":                        math.MaxInt64,
		"99999999999999999999":              math.MaxInt64,
		strings.Repeat("9", 400):            math.MaxInt64,
		in30.Format(http.TimeFormat):        30 * time.Second,
		in30.Format(time.RFC850):            30 * time.Second,
		in30.Format(time.ANSIC):             30 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT":     math.MaxInt64,
		"":                                  0,
		"0":                                 0,
		"-1":                                0,
		"+1":                                0,
		"1e3":                               0,
		"0x10":                              0,
		"1_000":                             0,
		"NaN":                               0,
		"Inf":                               0,
		"infinity":                          0,
		"1.2.3":                             0,
		".":                                 0,
		"soon":                              0,
		"30 seconds":                        0,
		"30s":                               0,
		arrival.Format(http.TimeFormat):     0,
		"Sun, 01 Mar 2026 11:59:59 GMT":     0,
		"Mon, 01 Jan 0001 00:00:00 GMT":     0,
		"2026-03-01T12:00:30Z":              0,
		"Sun, 32 Mar 2026 12:00:30 GMT":     0,
		"Sun, 01 Mar 2026 12:00:30 +0100":   0,
		strings.Repeat("x", 1<<16):          0,
		"30, 60":                            0,
		"\x0030":                            0,
		"٣٠":                                0,
		strings.Repeat("0", 400) + "7":      7 * time.Second,
		"0." + strings.Repeat("0", 400):     0,
		strings.Repeat("9", 16) + ".999999": math.MaxInt64,
	} {
		t.Run(value[:min(len(value), 40)], func(t *testing.T) {
			assert.Equal(t, want, hint(503, headers("Retry-After: "+value), arrival))
		})
	}
}

func TestHintThatIsSaidFirstCounts(t *testing.T) {
	for name, test := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"none":                               {nil, 0},
		"milliseconds before seconds":        {[]string{"Retry-After: 2", "Retry-After-Ms: 1500"}, 1500 * time.Millisecond},
		"milliseconds with a fraction":       {[]string{"Retry-After-Ms: 0.5"}, 500 * time.Microsecond},
		"garbage in milliseconds":            {[]string{"Retry-After: 2", "Retry-After-Ms: -5"}, 2 * time.Second},
		"seconds before a reset":             {[]string{"Retry-After: 2", "X-Ratelimit-Reset: 50"}, 2 * time.Second},
		"garbage in seconds":                 {[]string{"Retry-After: soon", "X-Ratelimit-Reset: 50"}, 50 * time.Second},
		"not at all is an answer":            {[]string{"Retry-After: 0", "X-Ratelimit-Reset: 50"}, 0},
		"the first of two":                   {[]string{"Retry-After: 2", "Retry-After: 3"}, 2 * time.Second},
		"names of any case":                  {[]string{"retry-after-ms: 1500"}, 1500 * time.Millisecond},
		"another header, of a like name":     {[]string{"Retry-After-X: 2", "X-Ratelimit-Resets: 3"}, 0},
		"instant, by the server's clock":     {[]string{"Date: Sun, 01 Mar 2026 15:00:00 GMT", "Retry-After: Sun, 01 Mar 2026 15:00:07 GMT"}, 7 * time.Second},
		"instant, the server is behind":      {[]string{"Date: Sun, 01 Mar 2026 03:00:00 GMT", "Retry-After: Sun, 01 Mar 2026 03:00:07 GMT"}, 7 * time.Second},
		"instant, and a date of no use":      {[]string{"Date: today", "Retry-After: Sun, 01 Mar 2026 12:00:07 GMT"}, 7 * time.Second},
		"seconds have nothing to do with it": {[]string{"Date: Sun, 01 Mar 2026 15:00:00 GMT", "Retry-After: 7"}, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, hint(429, headers(test.headers...), arrival))
		})
	}
}

func TestResetOfAnAllowanceThatIsUsedUp(t *testing.T) {
	const instant = 1772366400 // arrival
	assert.EqualValues(t, instant, arrival.Unix())
	for name, test := range map[string]struct {
		status  int
		headers []string
		want    time.Duration
	}{
		"seconds":                 {429, []string{"X-RateLimit-Reset: 30"}, 30 * time.Second},
		"fraction of a second":    {429, []string{"X-RateLimit-Reset: 0.25"}, 250 * time.Millisecond},
		"duration":                {429, []string{"X-RateLimit-Reset-Tokens: 6m0s"}, 6 * time.Minute},
		"short duration":          {429, []string{"X-RateLimit-Reset-Requests: 120ms"}, 120 * time.Millisecond},
		"instant in seconds":      {429, []string{"X-RateLimit-Reset: 1772366430"}, 30 * time.Second},
		"and a fraction":          {429, []string{"X-RateLimit-Reset: 1772366430.5"}, 30500 * time.Millisecond},
		"instant in milliseconds": {429, []string{"X-RateLimit-Reset: 1772366430000"}, 30 * time.Second},
		"instant that is past":    {429, []string{"X-RateLimit-Reset: 1772366399"}, 0},
		"instant and date":        {429, []string{"Date: Sun, 01 Mar 2026 12:00:10 GMT", "X-RateLimit-Reset: 1772366430"}, 20 * time.Second},
		"absurd instant":          {429, []string{"X-RateLimit-Reset: 99999999999999999999"}, math.MaxInt64 - time.Duration(arrival.UnixNano())},
		"negative":                {429, []string{"X-RateLimit-Reset: -30"}, 0},
		"negative duration":       {429, []string{"X-RateLimit-Reset: -30s"}, 0},
		"garbage":                 {429, []string{"X-RateLimit-Reset: tomorrow"}, 0},
		"empty":                   {429, []string{"X-RateLimit-Reset: "}, 0},
		"duration that overflows": {429, []string{"X-RateLimit-Reset: 9999999999999h"}, 0},

		"the longest that matters":    {429, []string{"X-RateLimit-Reset-Requests: 1s", "X-RateLimit-Reset-Tokens: 6m0s"}, 6 * time.Minute},
		"of what is used up":          {429, []string{"X-RateLimit-Reset-Requests: 1s", "X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Tokens: 6m0s", "X-RateLimit-Remaining-Tokens: 149984"}, time.Second},
		"nothing is used up":          {429, []string{"X-RateLimit-Reset: 30", "X-RateLimit-Remaining: 7"}, 0},
		"used up":                     {429, []string{"X-RateLimit-Reset: 30", "X-RateLimit-Remaining: 0"}, 30 * time.Second},
		"used up, of another status":  {403, []string{"X-RateLimit-Reset: 30", "X-RateLimit-Remaining: 0"}, 30 * time.Second},
		"an outage says nothing":      {503, []string{"X-RateLimit-Reset: 30"}, 0},
		"even with room left":         {503, []string{"X-RateLimit-Reset: 30", "X-RateLimit-Remaining: 7"}, 0},
		"remaining cannot be read":    {429, []string{"X-RateLimit-Reset: 30", "X-RateLimit-Remaining: few"}, 30 * time.Second},
		"remaining of something else": {429, []string{"X-RateLimit-Reset: 30", "X-RateLimit-Remaining-Tokens: 7"}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, hint(test.status, headers(test.headers...), arrival))
		})
	}
}

func FuzzHint(f *testing.F) {
	for _, seed := range []string{"30", "0.5", "-1", "1e9", "Sun, 01 Mar 2026 12:00:30 GMT", "6m0s", "1772366430", "99999999999999999999", "NaN", ""} {
		f.Add(429, seed, seed, seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, status int, after, millis, reset, remaining, date string) {
		h := http.Header{
			"Retry-After":                  {after},
			"Retry-After-Ms":               {millis},
			"X-Ratelimit-Reset":            {reset},
			"X-Ratelimit-Reset-Tokens":     {reset, after},
			"X-Ratelimit-Remaining":        {remaining},
			"X-Ratelimit-Remaining-Tokens": nil,
			"Date":                         {date},
		}
		got := hint(status, h, arrival)
		if got < 0 {
			t.Fatalf("negative: %v", got)
		}
		if again := hint(status, h, arrival); again != got {
			t.Fatalf("%v, then %v", got, again)
		}
		// Whole seconds and milliseconds are exact, for the weeks that a float64 counts in
		// nanoseconds.
		if n, err := strconv.ParseUint(millis, 10, 32); err == nil && got != time.Duration(n)*time.Millisecond {
			t.Fatalf("%q ms is %v", millis, got)
		}
		h.Del("Retry-After-Ms")
		if n, err := strconv.ParseUint(after, 10, 23); err == nil && hint(status, h, arrival) != time.Duration(n)*time.Second {
			t.Fatalf("%q s is %v", after, hint(status, h, arrival))
		}
		for _, name := range []string{"Retry-After", "X-Ratelimit-Reset", "X-Ratelimit-Reset-Tokens"} {
			h[name] = nil
		}
		if got := hint(status, h, arrival); got != 0 {
			t.Fatalf("%v without a header that says so", got)
		}
	})
}
