package boltcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/resilience-toolkit/resilience/examples/customcache/boltcache"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "boltcache")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	for range 3 {
		c, err := boltcache.Open(filepath.Join(dir, "state.db"))
		if err != nil {
			panic(err)
		}
		n, err := c.Increment(ctx, "starts", time.Hour)
		if err != nil {
			panic(err)
		}
		fmt.Println("start", n)
		if err := c.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// start 1
	// start 2
	// start 3
}
