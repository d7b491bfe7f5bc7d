package fleettest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// Keys vanish one by one or all together, while calls fail, probe and succeed. Whatever is
// left of a circuit, it is closed by a healthy host and opened by a sick one.
func TestNoCircuitIsStuckWhateverOfItIsLost(t *testing.T) {
	s := redistest.Start(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const recovery, lease = 50 * time.Millisecond, 80 * time.Millisecond
	var circuits []*breaker.Breaker
	for range 3 {
		c, err := redis.Open(s.URL(), redis.Config{Timeout: patience})
		require.NoError(t, err)
		defer c.Close()
		b, err := breaker.New(breaker.Config{
			Cache: c, FailureThreshold: 3, RecoveryTimeout: recovery, ProbeLease: lease, Probes: 2,
		})
		require.NoError(t, err)
		circuits = append(circuits, b)
	}
	for round := range 12 {
		var sick, enough atomic.Bool
		sick.Store(true)
		var all sync.WaitGroup
		for _, b := range circuits {
			for i := range 3 {
				all.Go(func() {
					for !enough.Load() {
						ctx, cancel := context.WithCancel(bg)
						if i == 0 { // somebody gives up now and then
							time.AfterFunc(time.Millisecond, cancel)
						}
						_ = b.Do(ctx, func(context.Context) error {
							time.Sleep(time.Millisecond)
							if sick.Load() {
								return errDown
							}
							return nil
						})
						cancel()
						time.Sleep(500 * time.Microsecond)
					}
				})
			}
		}
		for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
			switch list := s.Do("KEYS", "*").([]any); {
			case rng.IntN(10) == 0:
				s.Do("FLUSHALL")
			case len(list) > 0:
				s.Do("DEL", list[rng.IntN(len(list))].(string))
			}
			sick.Store(rng.IntN(4) > 0)
			time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond)
		}
		enough.Store(true)
		all.Wait()

		for _, b := range circuits {
			require.Eventually(t, func() bool {
				err := b.Do(bg, healthy)
				if err != nil {
					require.ErrorIs(t, err, resilience.ErrRejected)
				}
				return err == nil
			}, 2*(recovery+lease)+3*time.Second, time.Millisecond, "round %d", round)
		}
		for _, b := range circuits {
			state, err := b.State(bg)
			require.NoError(t, err)
			require.Equal(t, breaker.Closed, state, "round %d", round)
		}
		for range 3 {
			require.ErrorIs(t, circuits[0].Do(bg, failing), errDown)
		}
		opened := time.Now()
		for _, b := range circuits {
			err := b.Do(bg, healthy)
			var open *breaker.OpenError
			if time.Since(opened) < recovery-10*time.Millisecond {
				require.True(t, errors.As(err, &open), "round %d: %v", round, err)
			}
		}
		for _, key := range s.Do("KEYS", "*").([]any) {
			ttl := s.Do("PTTL", key.(string)).(int64)
			require.NotEqualValues(t, -1, ttl, strings.ToValidUTF8(key.(string), "?"))
		}
	}
}
