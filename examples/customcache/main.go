// Customcache is a cache of one's own at work: allowances and circuits in a file, so
// that they outlive the process. Package boltcache is the cache; this program plays
// three processes that follow each other on one file:
//
//	go run .
//
// With a file that is kept, each run is one process more; start it a few times in a
// minute:
//
//	go run . -file state.db
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/examples/customcache/boltcache"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

func main() {
	file := flag.String("file", "", "keep the state in this `file` and play one process")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *file); err != nil {
		fmt.Fprintln(os.Stderr, "customcache:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, file string) error {
	if file != "" {
		return process(ctx, out, file)
	}
	dir, err := os.MkdirTemp("", "customcache")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for n := range 3 {
		fmt.Fprintf(out, "process %d opens the file\n", n+1)
		if err := process(ctx, out, filepath.Join(dir, "state.db")); err != nil {
			return err
		}
	}
	return nil
}

// process is what a process does: it opens the file, makes two calls that may be made
// three times a minute, and one to a host that is down.
func process(ctx context.Context, out io.Writer, file string) error {
	store, err := boltcache.Open(file)
	if err != nil {
		return err
	}
	defer store.Close()

	allowance, err := ratelimit.New(3, time.Minute, ratelimit.Config{Cache: store})
	if err != nil {
		return err
	}
	defer allowance.Close() // which leaves the store open, as it is not the limiter's
	healthy := resilience.Wrap(func(context.Context) (string, error) { return "an answer", nil }, allowance.For("tenant-7"))

	circuit, err := breaker.New(breaker.Config{Cache: store, FailureThreshold: 2, RecoveryTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer circuit.Close()
	down := resilience.Wrap(func(context.Context) (string, error) { return "", errors.New("the host is down") }, circuit)

	for _, c := range []struct {
		to  string
		ask resilience.Call[string]
	}{{"healthy host", healthy}, {"healthy host", healthy}, {"dead host", down}} {
		answer, err := c.ask(ctx)
		wait, _ := resilience.RetryAfter(err)
		switch {
		case err == nil:
			fmt.Fprintf(out, "  %-12s  called: %s\n", c.to, answer)
		case errors.Is(err, resilience.ErrRejected):
			fmt.Fprintf(out, "  %-12s  not called: ask again in %v\n", c.to, wait.Round(time.Second))
		default:
			fmt.Fprintf(out, "  %-12s  called: %v\n", c.to, err)
		}
	}
	return nil
}
