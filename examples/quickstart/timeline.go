package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/retry"
)

const tick = 500 * time.Millisecond

// A timeline prints what happens, for a person to read: a row every half second, and a
// line whenever the circuit changes.
type timeline struct {
	out     io.Writer
	born    time.Time
	retries atomic.Int64

	mu sync.Mutex // guards out
}

func (t *timeline) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

func (t *timeline) begin() {
	t.printf("%d goroutines call a host through breaker, limiter and retry, for %v. More than\n"+
		"%d requests in half a second knock it over. A row is the half second up to its time:\n"+
		"what the host was like, the requests it saw (one # is 5), the calls it answered, the\n"+
		"retries, and the calls that the limiter refused, that the circuit refused, and that failed\n"+
		"at the host.\n\n"+
		"%7s  %-22s %-24s %8s %7s %8s %8s %7s\n",
		callers, dayLength, capacity, "", "the host", "requests", "answered", "retried", "limiter", "circuit", "failed")
}

// play prints rows until the day is over.
func (t *timeline) play(over <-chan struct{}, h *host) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var before tally
	var requests, retries int64
	weather := h.now().name
	for last := false; !last; {
		select {
		case <-over:
			last = true
		case <-ticker.C:
		}
		now, r, n := h.counts.read(), h.requests.Load(), t.retries.Load()
		bar := strings.Repeat("#", int(r-requests+4)/5)
		t.printf("%6.1fs  %-22s %-24s %8d %7d %8d %8d %7d\n", time.Since(t.born).Seconds(), weather, bar,
			now.answered-before.answered, n-retries, now.limited-before.limited,
			now.brokenOff-before.brokenOff, now.failed-before.failed)
		before, requests, retries, weather = now, r, n, h.now().name
	}
}

// retried is the retry's observer.
func (t *timeline) retried(context.Context, retry.Event) { t.retries.Add(1) }

// circuitChanged is the breaker's observer.
func (t *timeline) circuitChanged(_ context.Context, c breaker.Transition) {
	what := map[breaker.State]string{
		breaker.Open:     "opens: the host is left alone",
		breaker.HalfOpen: "is half open: one call may try",
		breaker.Closed:   "closes: the host is back",
	}[c.To]
	t.printf("%6.1fs  ---- the circuit %s\n", time.Since(t.born).Seconds(), what)
}

// end compares the two days.
func (t *timeline) end(guarded *host, with tally, bare *host, without tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprint(t.out, "\nMeanwhile as many callers went through the same day with a host of their own and, instead\n"+
		"of the chain, a loop that tries three times without a pause.\n\n")
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(what string, with, without any) { fmt.Fprintf(w, "%s\t%v\t%v\t\n", what, with, without) }
	row("", "with the chain", "with the loop")
	row("requests the host saw", guarded.requests.Load(), bare.requests.Load())
	row("of them in vain", guarded.useless.Load(), bare.useless.Load())
	row("most in half a second", guarded.busiest.Load(), bare.busiest.Load())
	row("times it was knocked over", guarded.knocked.Load(), bare.knocked.Load())
	row("calls answered", with.answered, without.answered)
	row("calls failed at the host", with.failed, without.failed)
	row("refused by the limiter", with.limited, without.limited)
	row("refused by the circuit", with.brokenOff, without.brokenOff)
	_ = w.Flush()
}
