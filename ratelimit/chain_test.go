package ratelimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// open is a circuit that lets nothing through.
type open struct{ asked int }

func (o *open) Do(ctx context.Context, _ func(context.Context) error) error {
	if ctx.Err() != nil {
		return resilience.ContextError(ctx)
	}
	o.asked++
	return resilience.ErrRejected
}

func TestWhatAnOuterPolicyRefusesTakesNoSlotAndWaitsForNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute})
		call := func(context.Context) (int, error) { t.Error("was called"); return 0, nil }
		outside := resilience.Wrap(call, &open{}, l.For("k"))
		start := time.Now()
		for range 10 {
			_, err := outside(t.Context())
			require.ErrorIs(t, err, resilience.ErrRejected)
		}
		assert.Equal(t, start, time.Now())
		assert.Zero(t, w.acquires.Load())
	})
}

func TestACancelledCallReachesNeitherTheCacheNorTheNextPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Cache: memory.New()}
		l := limiter(t, 1, 10*time.Second, ratelimit.Config{Cache: w, MaxWait: time.Minute})
		circuit := &open{}
		call := func(context.Context) (int, error) { t.Error("was called"); return 0, nil }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, ask := range []resilience.Call[int]{
			resilience.Wrap(call, circuit, l.For("k")),
			resilience.Wrap(call, l.For("k"), circuit),
		} {
			_, err := ask(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, resilience.ErrRejected)
		}
		assert.Zero(t, w.acquires.Load())
		assert.Zero(t, circuit.asked)
	})
}
