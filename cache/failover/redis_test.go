package failover_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/failover"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// The promise in one line each, against a server that is killed and comes back empty.
func TestARealStoreGoesAwayAndReturns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := redistest.Start(t)
	shared, err := redis.Open(server.URL(), redis.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = shared.Close() })
	left, returned := make(chan error, 1), make(chan time.Duration, 1)
	store := mustNew(t, shared, memory.New(), failover.Config{
		CoolDown: 200 * time.Millisecond,
		OnLeave:  func(_ context.Context, reason error) { left <- reason },
		OnReturn: func(_ context.Context, away time.Duration) { returned <- away },
	})
	limiter, err := ratelimit.New(3, time.Hour, ratelimit.Config{Cache: store})
	require.NoError(t, err)
	circuit, err := breaker.New(breaker.Config{Cache: store})
	require.NoError(t, err)
	admitted := func() (n int) {
		for range 10 {
			switch err := limiter.Acquire(ctx, "k"); {
			case err == nil:
				n++
			default:
				assert.NotErrorIs(t, err, cache.ErrClosed)
				_, exceeded := errors.AsType[*ratelimit.ExceededError](err)
				assert.True(t, exceeded, "%v", err)
			}
		}
		return n
	}

	assert.Equal(t, 3, admitted())

	server.Kill()
	start := time.Now()
	assert.Equal(t, 3, admitted(), "a window of this process alone")
	assert.Less(t, time.Since(start), 2*time.Second)
	_, unavailable := errors.AsType[*cache.UnavailableError](<-left)
	assert.True(t, unavailable)
	down, runs := errors.New("down"), 0
	for range 20 {
		err := circuit.Do(ctx, func(context.Context) error { runs++; return down })
		assert.True(t, errors.Is(err, down) || errors.Is(err, resilience.ErrRejected), "%v", err)
	}
	assert.Equal(t, 5, runs, "a circuit of this process alone")

	server.Restart()
	require.Eventually(t, func() bool {
		_, _ = limiter.Remaining(ctx, "k")
		return len(returned) == 1
	}, 10*time.Second, 20*time.Millisecond)
	assert.Equal(t, 3, admitted(), "the server came back empty")
	used, err := shared.Used(ctx, "nothing", time.Hour)
	require.NoError(t, err)
	assert.Zero(t, used)
	state, err := circuit.State(ctx)
	require.NoError(t, err)
	assert.Equal(t, breaker.Closed, state)
}

// A primary that answers what reads and refuses what writes is left and returned to, but no
// more often than the cool-down says, and nobody who calls is told of it.
func TestAPrimaryThatOnlyReadsIsLeftOnceInACoolDown(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, refuse := range map[string]func(*redistest.Server){
		"a replica":     func(s *redistest.Server) { s.Do("REPLICAOF", "127.0.0.1", "1") },
		"out of memory": func(s *redistest.Server) { s.Do("CONFIG", "SET", "maxmemory", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			shared, err := redis.Open(server.URL(), redis.Config{Timeout: 3 * time.Second})
			require.NoError(t, err)
			defer shared.Close()
			const coolDown, limit, window = 100 * time.Millisecond, 10, 200 * time.Millisecond
			var left atomic.Int64
			store := mustNew(t, shared, memory.New(), failover.Config{
				CoolDown: coolDown,
				OnLeave:  func(context.Context, error) { left.Add(1) },
			})
			limiter, err := ratelimit.New(limit, window, ratelimit.Config{Cache: store})
			require.NoError(t, err)
			circuit, err := breaker.New(breaker.Config{Cache: store, RecoveryTimeout: 300 * time.Millisecond})
			require.NoError(t, err)
			require.NoError(t, limiter.Acquire(ctx, "k"))
			refuse(server)

			start, down := time.Now(), errors.New("down")
			var admitted, runs atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for time.Since(start) < time.Second {
						err := limiter.Acquire(ctx, "k")
						if err == nil {
							admitted.Add(1)
						} else if _, ok := errors.AsType[*ratelimit.ExceededError](err); !ok {
							t.Errorf("%v", err)
						}
						err = circuit.Do(ctx, func(context.Context) error { runs.Add(1); return down })
						assert.True(t, errors.Is(err, down) || errors.Is(err, resilience.ErrRejected), "%v", err)
						time.Sleep(time.Millisecond)
					}
				})
			}
			all.Wait()
			took := time.Since(start)
			assert.Positive(t, left.Load())
			assert.LessOrEqual(t, left.Load(), 1+int64(took/coolDown))
			assert.LessOrEqual(t, admitted.Load(), limit*(1+int64(took/window)))
			assert.Less(t, runs.Load(), int64(100), "of about a thousand")
		})
	}
}
