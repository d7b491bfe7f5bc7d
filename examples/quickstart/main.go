// Quickstart carries real calls through a failing host, twice at the same time: once
// through a chain of breaker, limiter and retry, once through what people write
// without one, a loop of three attempts. Each has an HTTP server of its own on a
// loopback port, and both servers have the same bad day. It needs nothing and ends by
// itself within 15 seconds:
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run plays the day and prints it.
func run(ctx context.Context, out io.Writer) error {
	guarded, err := startHost()
	if err != nil {
		return err
	}
	defer guarded.close()
	bare, err := startHost()
	if err != nil {
		return err
	}
	defer bare.close()

	seen := &timeline{out: out, born: guarded.born}
	chain, err := newChain(seen)
	if err != nil {
		return err
	}
	defer chain.close()

	// The callers leave at the end of the day. A deadline would say that the host had
	// been too slow, and open the circuit once more.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(dayLength, cancel).Stop()
	seen.begin()
	without := make(chan tally, 1)
	go func() { without <- crowd(ctx, bare, threeAttempts) }()
	over, played := make(chan struct{}), make(chan struct{})
	go func() { defer close(played); seen.play(over, guarded) }()
	with := crowd(ctx, guarded, chain.guard)
	close(over)
	<-played
	seen.end(guarded, with, bare, <-without)
	return nil
}
