package failover_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/failover"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func TestFailingOverAllocatesNothingOfItsOwn(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	shared := newPrimary()
	store, err := failover.New(shared, memory.New(), failover.Config{CoolDown: time.Hour})
	require.NoError(t, err)
	ctx := context.Background()
	full := cache.Request{Limit: 1, Window: time.Hour, Weight: 1}
	hits := store.(cache.Acquirer)
	keys, entries := []string{"a", "b"}, make([]cache.Entry, 2)
	for _, where := range []string{"on the primary", "locally"} {
		_, err := hits.Acquire(ctx, "full", full)
		require.NoError(t, err)
		for name, op := range map[string]func(){
			"Acquire": func() { _, _ = hits.Acquire(ctx, "full", full) },
			"GetMany": func() { _ = cache.GetMany(ctx, store, keys, entries) },
			"Get":     func() { _, _, _ = store.Get(ctx, "a") },
		} {
			assert.Zero(t, testing.AllocsPerRun(100, op), "%s %s", name, where)
		}
		shared.fail(refuse)
	}
}
