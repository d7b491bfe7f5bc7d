package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

func TestAPermitIsSettledOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 3})
		p, err := b.Allow(t.Context())
		require.NoError(t, err)
		for range 5 {
			p.Settle(t.Context(), breaker.Failure)
			p.Done(t.Context(), errDown)
		}
		p.Done(t.Context(), nil)
		requireFailures(t, 1, 3, b)

		time.Sleep(30 * time.Second)
		p, err = b.Allow(t.Context())
		require.NoError(t, err)
		p.Settle(t.Context(), breaker.Neutral)
		p.Settle(t.Context(), breaker.Success)
		requireState(t, breaker.HalfOpen, b)
	})
}

func TestDoneClassifies(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 1})
		settle := func(ctx context.Context, err error) {
			p, aerr := b.Allow(t.Context())
			require.NoError(t, aerr)
			p.Done(ctx, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		settle(gone, errDown)
		requireState(t, breaker.Closed, b)
		settle(t.Context(), nil)
		requireState(t, breaker.Closed, b)
		settle(t.Context(), errDown)
		requireState(t, breaker.Open, b)
	})
}

// A report is made also if the caller has gone, and so is a deadline's verdict.
func TestAReportOutlivesItsCaller(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, FailureThreshold: 1})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		p, err := b.Allow(t.Context())
		require.NoError(t, err)
		p.Settle(gone, breaker.Failure)
		requireState(t, breaker.Open, b)
		time.Sleep(30 * time.Second)
		p, err = b.Allow(t.Context())
		require.NoError(t, err)
		p.Settle(gone, breaker.Success)
		requireState(t, breaker.Closed, b)
	})
}

func TestAPermitKeepsItsPlaceByRenewing(t *testing.T) {
	everywhere(t, func(t *testing.T, kv cache.KeyValue) {
		b := newBreaker(t, breaker.Config{Cache: kv, ProbeLease: 5 * time.Second})
		p, err := b.Allow(t.Context())
		require.NoError(t, err)
		require.NoError(t, p.Renew(t.Context()), "it is no probe")
		p.Settle(t.Context(), breaker.Success)
		trip(t, b)
		time.Sleep(30 * time.Second)

		p, err = b.Allow(t.Context())
		require.NoError(t, err)
		for range 10 {
			time.Sleep(4 * time.Second)
			requireRefused(t, b)
			require.NoError(t, p.Renew(t.Context()))
		}
		time.Sleep(4 * time.Second)
		p.Settle(t.Context(), breaker.Success)
		requireState(t, breaker.Closed, b)
		require.ErrorIs(t, p.Renew(t.Context()), breaker.ErrLeaseLost)
	})
}

func TestRenewingSaysWhatWentWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newTap(memory.New())
		b := newBreaker(t, breaker.Config{Cache: kv})
		trip(t, b)
		time.Sleep(30 * time.Second)
		p, err := b.Allow(t.Context())
		require.NoError(t, err)

		kv.failing(errUnavailable)
		var unavailable *cache.UnavailableError
		require.ErrorAs(t, p.Renew(t.Context()), &unavailable)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Renew(gone), context.Canceled)
		kv.failing(nil)
		require.NoError(t, p.Renew(t.Context()))
		require.NoError(t, b.Close())
		assert.ErrorIs(t, p.Renew(t.Context()), cache.ErrClosed)
	})
}
