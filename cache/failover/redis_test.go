package failover_test

import (
	"context"
	"errors"
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
