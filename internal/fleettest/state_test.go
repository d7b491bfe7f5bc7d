package fleettest_test

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
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

var bg = context.Background()

func healthy(context.Context) error { return nil }
func failing(context.Context) error { return errDown }

// Each reply is lost the first time, and the driver asks again.
func TestNoHitAndNoFailureIsCountedTwiceWhenRepliesAreLost(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s)
	c, err := redis.Open("redis://"+p.Addr(), redis.Config{Timeout: patience})
	require.NoError(t, err)
	defer c.Close()
	p.Drop(func(n int) bool { return n%2 == 0 })

	l, err := ratelimit.New(5, time.Minute, ratelimit.Config{Cache: c})
	require.NoError(t, err)
	for i := range 8 {
		err := l.Acquire(bg, "tenant")
		if i < 5 {
			require.NoError(t, err, i)
			continue
		}
		var limited *ratelimit.ExceededError
		require.ErrorAs(t, err, &limited, i)
	}

	b, err := breaker.New(breaker.Config{Name: "host", Cache: c, FailureThreshold: 5, RecoveryTimeout: time.Minute})
	require.NoError(t, err)
	for range 4 {
		require.ErrorIs(t, b.Do(bg, failing), errDown)
	}
	state, err := b.State(bg)
	require.NoError(t, err)
	require.Equal(t, breaker.Closed, state, "four failures are four")
	require.ErrorIs(t, b.Do(bg, failing), errDown)
	state, err = b.State(bg)
	require.NoError(t, err)
	require.Equal(t, breaker.Open, state, "and the fifth is the fifth")

	p.Drop(func(int) bool { return true })
	short, err := redis.Open("redis://"+p.Addr(), redis.Config{})
	require.NoError(t, err)
	defer short.Close()
	l, err = ratelimit.New(5, time.Minute, ratelimit.Config{Cache: short})
	require.NoError(t, err)
	var away *cache.UnavailableError
	err = l.Acquire(bg, "other")
	require.ErrorAs(t, err, &away, "what cannot be known is said to be so")
	require.ErrorIs(t, err, resilience.ErrRejected)
}

func TestGarbageOpensNothingAndAdmitsNobodyBySurprise(t *testing.T) {
	for _, plant := range [][]string{
		{"SET", "", "garbage"},
		{"SET", "", "v99 from the future"},
		{"SET", "", ""},
		{"SET", "", "\xff\xfe\x00"},
		{"RPUSH", "", "garbage"},
		{"HSET", "", "garbage", "garbage"},
		{"SADD", "", "garbage"},
		{"ZADD", "", "1", "garbage"},
	} {
		t.Run(plant[0]+" "+plant[len(plant)-1], func(t *testing.T) {
			s := redistest.Start(t)
			c, err := redis.Open(s.URL(), redis.Config{Timeout: patience})
			require.NoError(t, err)
			defer c.Close()
			limiter := func() *ratelimit.Limiter {
				l, err := ratelimit.New(1, time.Minute, ratelimit.Config{Cache: c})
				require.NoError(t, err)
				return l
			}
			var told error
			circuit := func() *breaker.Breaker {
				b, err := breaker.New(breaker.Config{
					Cache: c, FailureThreshold: 2, RecoveryTimeout: time.Minute,
					OnStoreError: func(_ context.Context, err error) { told = err },
				})
				require.NoError(t, err)
				return b
			}
			require.NoError(t, limiter().Acquire(bg, "tenant"))
			for range 2 {
				_ = circuit().Do(bg, failing)
			}
			require.ErrorIs(t, circuit().Do(bg, healthy), resilience.ErrRejected, "it is open")
			require.NoError(t, told)

			for _, key := range s.Do("KEYS", "*").([]any) {
				command := append([]string(nil), plant...)
				command[1] = key.(string)
				s.Do("DEL", key.(string))
				s.Do(command...)
			}
			for range 3 {
				require.NoError(t, circuit().Do(bg, healthy), "a healthy call is made")
				require.ErrorIs(t, circuit().Do(bg, failing), errDown)
			}
			assert.Error(t, told, "and somebody hears of it")

			err = limiter().Acquire(bg, "tenant")
			var corrupt *cache.CorruptError
			require.ErrorAs(t, err, &corrupt)
			var limited *ratelimit.ExceededError
			require.False(t, errors.As(err, &limited))
			require.NoError(t, limiter().Reset(bg, "tenant"))
			require.NoError(t, limiter().Acquire(bg, "tenant"), "Reset puts it right")
		})
	}
}

// All that the two write goes away by itself.
func TestNothingIsWrittenForEver(t *testing.T) {
	s := redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{Timeout: patience})
	require.NoError(t, err)
	defer c.Close()
	l, err := ratelimit.New(2, time.Minute, ratelimit.Config{Cache: c, MaxWait: time.Millisecond})
	require.NoError(t, err)
	b, err := breaker.New(breaker.Config{Cache: c, FailureThreshold: 2, RecoveryTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	look := func() {
		t.Helper()
		for _, key := range s.Do("KEYS", "*").([]any) {
			require.NotEqualValues(t, -1, s.Do("PTTL", key.(string)), key)
		}
	}
	for range 4 {
		_ = l.Acquire(bg, "tenant")
		_ = l.AcquireN(bg, "other", 2)
		look()
	}
	for range 2 {
		for range 3 { // fail, open, be refused
			_ = b.Do(bg, failing)
			look()
		}
		time.Sleep(60 * time.Millisecond)
		_ = b.Do(bg, failing) // probe
		look()
		time.Sleep(60 * time.Millisecond)
		require.NoError(t, b.Do(bg, healthy)) // probe, close
		look()
		_ = b.Do(bg, failing)
		_ = b.Do(bg, healthy) // clear
		look()
	}
	require.NoError(t, b.Reset(bg))
	look()
	require.NoError(t, b.ForceOpen(bg, time.Minute))
	look()
}
