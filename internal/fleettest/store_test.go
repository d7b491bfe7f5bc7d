package fleettest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// Calls of one instant are as many hits as they are calls.
func TestABurstIsCountedCallByCall(t *testing.T) {
	s := redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{Timeout: patience})
	require.NoError(t, err)
	defer c.Close()
	const limit, window = 10, 2 * time.Second
	l, err := ratelimit.New(limit, window, ratelimit.Config{Cache: c})
	require.NoError(t, err)
	for _, goroutines := range []int{1, 50} {
		var all sync.WaitGroup
		var mu sync.Mutex
		admitted, calls := 0, 1000/goroutines
		begin := time.Now()
		for range goroutines {
			all.Go(func() {
				for range calls {
					err := l.Acquire(bg, "tenant")
					mu.Lock()
					if err == nil {
						admitted++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		require.Less(t, time.Since(begin), window, "too slow a machine for this test")
		require.Equal(t, limit, admitted, "%d goroutines", goroutines)
		time.Sleep(window)
	}
}

func TestLimiterWithoutAStoreRefusesOrAdmitsByNameAndInTime(t *testing.T) {
	const deadline = 200 * time.Millisecond
	for name, stop := range map[string]func(*redistest.Server){
		"killed": (*redistest.Server).Kill, "hanging": (*redistest.Server).Pause,
	} {
		for _, policy := range []ratelimit.Unavailable{ratelimit.Refuse, ratelimit.Admit} {
			t.Run(name+" "+policy.String(), func(t *testing.T) {
				s := redistest.Start(t)
				c, err := redis.Open(s.URL(), redis.Config{Timeout: 150 * time.Millisecond})
				require.NoError(t, err)
				defer c.Close()
				var mu sync.Mutex
				told := 0
				l, err := ratelimit.New(10, time.Second, ratelimit.Config{
					Cache: c, WhenUnavailable: policy,
					OnUnavailable: func(context.Context, ratelimit.Outage) { mu.Lock(); told++; mu.Unlock() },
				})
				require.NoError(t, err)
				require.NoError(t, l.Acquire(bg, "tenant"))
				stop(s)
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(bg, deadline)
						defer cancel()
						begin := time.Now()
						err := l.Acquire(ctx, "tenant")
						assert.Less(t, time.Since(begin), deadline+300*time.Millisecond)
						if policy == ratelimit.Admit {
							assert.NoError(t, err)
							return
						}
						var away *cache.UnavailableError
						assert.True(t, errors.As(err, &away) || errors.Is(err, context.DeadlineExceeded), "%v", err)
						var limited *ratelimit.ExceededError
						assert.False(t, errors.As(err, &limited), "an outage is not a limit")
					})
				}
				all.Wait()
				assert.Equal(t, 100, told)
			})
		}
	}
}

func TestADemotedMasterIsAnOutageUntilItIsPromoted(t *testing.T) {
	master, s := redistest.Start(t), redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	l, err := ratelimit.New(10, time.Second, ratelimit.Config{Cache: c})
	require.NoError(t, err)
	var told error
	b, err := breaker.New(breaker.Config{
		Cache: c, FailureThreshold: 1, RecoveryTimeout: time.Minute,
		OnStoreError: func(_ context.Context, err error) { told = err },
	})
	require.NoError(t, err)
	host, port, _ := strings.Cut(master.Addr(), ":")
	s.Do("REPLICAOF", host, port)
	var away *cache.UnavailableError
	require.ErrorAs(t, l.Acquire(bg, "tenant"), &away)
	require.ErrorIs(t, b.Do(bg, failing), errDown)
	require.ErrorAs(t, told, &away)
	require.NoError(t, b.Do(bg, healthy))
	s.Do("REPLICAOF", "NO", "ONE")
	require.Eventually(t, func() bool { return l.Acquire(bg, "tenant") == nil }, 5*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, b.Do(bg, failing), errDown)
	state, err := b.State(bg)
	require.NoError(t, err)
	require.Equal(t, breaker.Open, state)
}

func TestAStoreThatForgotAnOpenCircuitHasAFreshOne(t *testing.T) {
	s := redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{Timeout: patience})
	require.NoError(t, err)
	defer c.Close()
	var breakers []*breaker.Breaker
	for range 2 {
		b, err := breaker.New(breaker.Config{Cache: c, FailureThreshold: 2, RecoveryTimeout: time.Minute})
		require.NoError(t, err)
		breakers = append(breakers, b)
	}
	for range 3 {
		for range 2 {
			require.ErrorIs(t, breakers[0].Do(bg, failing), errDown)
		}
		for _, b := range breakers {
			require.Error(t, b.Do(bg, healthy), "open")
		}
		s.Do("FLUSHALL")
		for _, b := range breakers {
			require.NoError(t, b.Do(bg, healthy), "as good as new")
		}
	}
}
