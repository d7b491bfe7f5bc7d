package redis_test

import (
	"context"
	"runtime"
	"testing"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

func circuit(t *testing.T, c *redis.Cache) *breaker.Breaker {
	b, err := breaker.New(breaker.Config{Name: t.Name(), Cache: c, OnStoreError: func(_ context.Context, err error) { t.Error(err) }})
	require.NoError(t, err)
	require.NoError(t, b.Do(bg, func(context.Context) error { return nil }))
	return b
}

// Only a context that can be cancelled has to be watched from another goroutine.
func TestALookAtACircuitStaysInTheGoroutineOfACallerWhoCannotLeave(t *testing.T) {
	t.Parallel()
	client := driver.NewClient(&driver.Options{Addr: redistest.Start(t).Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	asked := 0
	client.AddHook(hook(func(ctx context.Context, cmd driver.Cmder, next driver.ProcessHook) error {
		stack := make([]byte, 1<<16)
		assert.Contains(t, string(stack[:runtime.Stack(stack, false)]), t.Name())
		asked++
		return next(ctx, cmd)
	}))
	c, err := redis.New(client, redis.Config{})
	require.NoError(t, err)
	b := circuit(t, c)
	asked = 0
	require.NoError(t, b.Do(bg, func(context.Context) error { return nil }))
	require.Equal(t, 1, asked)
}

func TestALookAtAHealthyCircuitAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	c, err := redis.Open(redistest.Start(t).URL(), redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	b := circuit(t, c)
	leaving, cancel := context.WithCancel(bg)
	defer cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		most float64
	}{"a caller who cannot leave": {bg, 17}, "one who can": {leaving, 23}} {
		n := testing.AllocsPerRun(200, func() {
			if err := b.Do(test.ctx, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %v allocations", name, n)
		assert.LessOrEqual(t, n, test.most, name)
	}
}
