package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A show prints what the workers report: a bar for each second, in which a digit is two
// calls that this worker was admitted, and a line for whatever happens.
type show struct {
	start time.Time

	mu      sync.Mutex // for what follows
	out     io.Writer
	reports [workers]report // since the last bar
}

func newShow(out io.Writer) *show { return &show{start: time.Now(), out: out} }

func (s *show) title(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%d worker processes may call one host %d times a second between them, over %s.\n"+
		"In a bar, a digit is two calls that the worker of this number was admitted.\n\n"+
		"%5s  %4s %6s %6s   %s\n", workers, limit, url, "", "all", "over", "open", "who was admitted; over the limit; refused by the open circuit")
}

func (s *show) event(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%4.1fs  ==== %s\n", time.Since(s.start).Seconds(), what)
}

// hear takes in a worker's report.
func (s *show) hear(n int, r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Event != "" {
		fmt.Fprintf(s.out, "%4.1fs  ---- worker %d %s\n", time.Since(s.start).Seconds(), n+1, r.Event)
	}
	sum := &s.reports[n]
	sum.Admitted += r.Admitted
	sum.Limited += r.Limited
	sum.Refused += r.Refused
}

// play prints a bar every second.
func (s *show) play(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.bar()
		}
	}
}

func (s *show) bar() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all report
	var bar strings.Builder
	for n, r := range s.reports {
		all.Admitted += r.Admitted
		all.Limited += r.Limited
		all.Refused += r.Refused
		bar.WriteString(strings.Repeat(string(rune('1'+n)), int(r.Admitted+1)/2))
	}
	s.reports = [workers]report{}
	fmt.Fprintf(s.out, "%4.1fs  %4d %6d %6d   %s\n", time.Since(s.start).Seconds(), all.Admitted, all.Limited, all.Refused, bar.String())
}
