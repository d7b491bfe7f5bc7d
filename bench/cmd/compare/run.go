package main

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/bench"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// A run is one run of the command. It is a testing.TB outside of a test, since what starts
// a server wants one.
type run struct {
	testing.TB // nil: only what is below is used

	local, shared bench.Options // without and with Redis
	calls         time.Duration // how long to count calls

	redis    *bench.Server
	cleanups []func()
}

// server starts the Redis of the run when it is first asked for.
func (r *run) server() *bench.Server {
	if r.redis == nil {
		r.redis = redistest.Start(r)
	}
	return r.redis
}

// A scope is a run whose cleanups are done when f returns.
func (r *run) scope(f func()) {
	r.server() // belongs to the whole run
	outer := r.cleanups
	r.cleanups = nil
	f()
	r.end()
	r.cleanups = outer
}

// end does what was left for the end, in reverse order.
func (r *run) end() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		f := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		f()
	}
}

func (r *run) Helper()          {}
func (r *run) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *run) Skip(args ...any) { r.Fatal(args...) }

func (r *run) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"compare:"}, args...)...)
	r.end()
	os.Exit(1)
}

func (r *run) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *run) check(err error) {
	if err != nil {
		r.Fatal(err)
	}
}

// A result is what a contest came to.
type result struct {
	bench.Contest
	times []bench.Result
}

func (r *run) contests(pattern *regexp.Regexp) (list []result) {
	for _, c := range bench.Contests() {
		if !pattern.MatchString(c.Name) && !pattern.MatchString(title(c.Name)) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", c.Name)
		o := r.local
		if c.Redis {
			o = r.shared
		}
		r.scope(func() { list = append(list, result{c, bench.Measure(r, c, r.server(), o)}) })
	}
	return list
}
