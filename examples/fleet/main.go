// Fleet starts four worker processes that call one host through one Redis, and shows
// that they spend one allowance and have one circuit between them: what each was
// admitted, the trip that all of them see, the single probe, and how they go on while
// Redis is killed and comes back. It ends by itself within 30 seconds:
//
//	go run ./examples/fleet
//
// It starts a private Redis on a free port if it finds redis-server. Otherwise it uses the
// one that REDIS_URL names, and leaves out killing it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

const (
	workers = 4
	limit   = 40 // of all workers together, per second
)

// The day: what happens to the host and to Redis, and when.
const (
	hostDown  = 5 * time.Second
	hostUp    = 11 * time.Second
	redisDown = 15 * time.Second
	redisUp   = 19 * time.Second
	dayEnd    = 24 * time.Second
)

func main() {
	if isWorker() {
		if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "fleet: worker:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run plays the day and prints it.
func run(ctx context.Context, out io.Writer) error {
	store, err := findStore()
	if err != nil {
		return err
	}
	defer store.close()
	h, err := startHost()
	if err != nil {
		return err
	}
	defer h.close()

	ctx, cancel := context.WithTimeout(ctx, dayEnd)
	defer cancel()
	s := newShow(out)
	s.title(store.url)
	fleet, err := startFleet(ctx, store.url, h.url, s)
	if err != nil {
		return err
	}
	defer fleet.wait()

	at := func(when time.Duration, what string, f func() error) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(s.start.Add(when))):
		}
		s.event(what)
		return f()
	}
	if err := at(hostDown, "the host goes down", h.goDown); err != nil {
		return err
	}
	if err := at(hostUp, "the host is up again", h.comeUp); err != nil {
		return err
	}
	s.event(fmt.Sprintf("while it was down, %d requests reached it", h.inVain.Load()))
	if store.kill != nil {
		if err := at(redisDown, "Redis is killed: each worker goes on by itself", store.kill); err != nil {
			return err
		}
		if err := at(redisUp, "Redis is started again, empty", store.start); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
