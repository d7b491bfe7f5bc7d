package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/failover"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func TestOverACacheThatGoesOnLocallyACircuitProtectsDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := &sharedTap{newTap(memory.New()), memory.New()}
		store, err := failover.New(primary, memory.New(), failover.Config{CoolDown: time.Second})
		require.NoError(t, err)
		b := newBreaker(t, breaker.Config{Cache: store, OnStoreError: func(_ context.Context, err error) { t.Error(err) }})
		other := newBreaker(t, breaker.Config{Cache: primary})
		require.NoError(t, b.Do(t.Context(), succeed))

		primary.failing(errUnavailable)
		made := 0
		for range 100 {
			_ = b.Do(t.Context(), func(context.Context) error { made++; return errDown })
		}
		assert.Equal(t, 5, made)

		primary.failing(nil)
		time.Sleep(time.Second)
		require.NoError(t, b.Do(t.Context(), succeed), "the fleet's circuit is closed")
		trip(t, other)
		requireRefused(t, b)
	})
}

// sharedTap is a tap that is a whole cache.
type sharedTap struct {
	*tap
	windows *memory.Cache
}

func (c *sharedTap) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	return c.windows.RecordHit(ctx, key, at, ttl)
}

func (c *sharedTap) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	return c.windows.CountHits(ctx, key, since)
}

func (c *sharedTap) OldestHit(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
	return c.windows.OldestHit(ctx, key, since)
}
