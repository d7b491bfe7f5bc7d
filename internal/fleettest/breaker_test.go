package fleettest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// circuit is the test's own breaker on the circuit of the workers.
func circuit(t *testing.T, s *redistest.Server, c breakerConfig) *breaker.Breaker {
	t.Helper()
	shared, err := redis.Open(s.URL(), redis.Config{Timeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { shared.Close() })
	b, err := breaker.New(breaker.Config{
		Name: "host", Cache: shared, FailureThreshold: c.Threshold, RecoveryTimeout: c.Recovery, ProbeLease: c.Lease,
	})
	require.NoError(t, err)
	return b
}

// trip opens the circuit and waits until it may be probed.
func trip(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	err := b.Do(context.Background(), func(context.Context) error { return errDown })
	require.ErrorIs(t, err, errDown)
	state, err := b.State(context.Background())
	require.NoError(t, err)
	require.Equal(t, breaker.Open, state)
	require.Eventually(t, func() bool {
		state, err := b.State(context.Background())
		return err == nil && state == breaker.HalfOpen
	}, 5*time.Second, time.Millisecond)
}

func TestOneProbeInAllProcesses(t *testing.T) {
	s := redistest.Start(t)
	config := breakerConfig{Threshold: 1, Recovery: 200 * time.Millisecond, Lease: 10 * time.Second}
	all := start(t, 4, job{Do: "probe", URL: s.URL(), Breaker: config, Goroutines: 8, For: time.Second})
	b := circuit(t, s, config)
	trip(t, b)
	release(all)
	sum := collect(t, all)
	assert.Equal(t, 1, sum.Admitted)
	assert.Equal(t, 31, sum.Refused)
	assert.Zero(t, sum.Outages)
	state, err := b.State(context.Background())
	require.NoError(t, err)
	assert.Equal(t, breaker.Closed, state)
}

func TestADeadProbersPlaceIsFreeAfterItsLeaseAndNotBefore(t *testing.T) {
	s := redistest.Start(t)
	config := breakerConfig{Threshold: 1, Recovery: 100 * time.Millisecond, Lease: 900 * time.Millisecond}
	b := circuit(t, s, config)
	prober := start(t, 1, job{Do: "hang", URL: s.URL(), Breaker: config})
	trip(t, b)
	release(prober)
	prober[0].expect("probing")
	time.Sleep(config.Lease) // it renews its lease
	err := b.Do(context.Background(), func(context.Context) error { return nil })
	require.Error(t, err, "the probe is under way")
	prober[0].kill()
	killed := time.Now()
	lease := lease(s)
	require.Greater(t, lease, time.Duration(0))
	require.LessOrEqual(t, lease, config.Lease)

	for {
		err := b.Do(context.Background(), func(context.Context) error { return nil })
		after := time.Since(killed)
		if err == nil {
			assert.GreaterOrEqual(t, after, lease-2*time.Millisecond, "not before the lease has ended")
			assert.Less(t, after, lease+time.Second)
			break
		}
		require.Less(t, after, lease+time.Second, "%v", err)
		time.Sleep(time.Millisecond)
	}
	state, err := b.State(context.Background())
	require.NoError(t, err)
	require.Equal(t, breaker.Closed, state)
}

// lease returns the shortest time to live of any value: that of the probe's place, since
// the state lives for a day.
func lease(s *redistest.Server) time.Duration {
	shortest := time.Hour
	for _, key := range s.Do("KEYS", "*:v:*").([]any) {
		if ttl := s.Do("PTTL", key.(string)).(int64); ttl > 0 {
			shortest = min(shortest, time.Duration(ttl)*time.Millisecond)
		}
	}
	return shortest
}

func TestConcurrentFailuresOfAllProcessesAreEachCountedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		failures int // of each breaker, by the way of 5 processes with 2 breakers each
		missing  int
	}{
		"as many as the threshold": {failures: 5, missing: 0},
		"one less, then one":       {failures: 5, missing: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			config := breakerConfig{Threshold: 50 + c.missing, Recovery: time.Minute, Lease: time.Minute}
			all := start(t, 5, job{Do: "fail", URL: s.URL(), Breakers: 2, Goroutines: c.failures, Breaker: config})
			release(all)
			for _, w := range all {
				w.expect("in")
			}
			release(all)
			for _, w := range all {
				w.expect("failed")
			}
			b := circuit(t, s, config)
			for range c.missing {
				state, err := b.State(context.Background())
				require.NoError(t, err)
				require.Equal(t, breaker.Closed, state)
				_ = b.Do(context.Background(), func(context.Context) error { return errDown })
			}
			release(all)
			sum := collect(t, all)
			require.Len(t, sum.States, 10)
			for _, state := range sum.States {
				assert.Equal(t, "open", state)
			}
		})
	}
}
