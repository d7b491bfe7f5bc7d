package main

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/resilience-toolkit/resilience/bench"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// A run is a testing.TB outside of a test: what starts servers wants one.
type run struct {
	testing.TB // never called: what is not below is not used

	redis    *bench.Server
	cleanups []func()
	ending   sync.Mutex
}

// server starts the Redis of the run when it is first asked for.
func (r *run) server() *bench.Server {
	if r.redis == nil {
		r.redis = redistest.Start(r)
	}
	return r.redis
}

// end does what is left to do, in reverse order.
func (r *run) end() {
	r.ending.Lock()
	defer r.ending.Unlock()
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
