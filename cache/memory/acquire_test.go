package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func TestAcquireGivesTheSlotsOfAWindowInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New()
		defer c.Close()
		ctx := context.Background()
		ask := cache.Request{Limit: 2, Window: time.Second, Weight: 1}

		for range 2 {
			g, err := c.Acquire(ctx, "k", ask)
			require.NoError(t, err)
			require.True(t, g.OK)
			require.Zero(t, g.Wait)
		}
		time.Sleep(300 * time.Millisecond)
		g, err := c.Acquire(ctx, "k", ask)
		require.NoError(t, err)
		require.False(t, g.OK)
		assert.Equal(t, 700*time.Millisecond, g.Wait)

		ask.MaxWait = 10 * time.Second
		for _, want := range []time.Duration{700, 700, 1700} {
			g, err = c.Acquire(ctx, "k", ask)
			require.NoError(t, err)
			require.True(t, g.OK)
			assert.Equal(t, want*time.Millisecond, g.Wait)
		}
		used, err := c.Used(ctx, "k", time.Second)
		require.NoError(t, err)
		assert.EqualValues(t, 5, used)
		require.NoError(t, c.GiveBack(ctx, "k", g.Slot))
		require.NoError(t, c.GiveBack(ctx, "k", g.Slot))
		used, _ = c.Used(ctx, "k", time.Second)
		assert.EqualValues(t, 4, used)
	})
}
