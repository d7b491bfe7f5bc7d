package redis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
)

// One line makes a shared cache; what is stored in it, all processes with the same URL and
// prefix share. Nothing listens at this address, which is not an answer but an outage.
func ExampleOpen() {
	shared, err := redis.Open("redis://127.0.0.1:1/0", redis.Config{
		Prefix:  "billing:",
		Timeout: 100 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()

	_, err = shared.Acquire(context.Background(), "tenant 7", cache.Request{
		Limit: 100, Window: time.Minute, Weight: 1,
	})
	if away, ok := errors.AsType[*cache.UnavailableError](err); ok {
		fmt.Println("no answer to", away.Op)
	}
	// Output:
	// no answer to acquire
}

// A client that is there already, with its pool, its credentials and its hooks, is
// borrowed: closing the cache leaves it open.
func ExampleNew() {
	client := driver.NewClient(&driver.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()

	shared, err := redis.New(client, redis.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	shared.Close()
	_, _, err = shared.Get(context.Background(), "k")
	fmt.Println(err)
	// Output:
	// cache: used after it was closed
}

// What is wrong with a configuration is said where the cache is made.
func ExampleConfig() {
	_, err := redis.Open("redis://127.0.0.1:6379", redis.Config{Prefix: "{billing}:"})
	fmt.Println(err)
	_, err = redis.Open("127.0.0.1:6379", redis.Config{})
	fmt.Println(err)
	// Output:
	// redis: Prefix is "{billing}:", want one without braces
	// redis: the URL cannot be parsed
}
