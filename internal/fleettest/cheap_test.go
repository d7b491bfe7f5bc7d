package fleettest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// counted returns a breaker and a function that counts the replies of the server during f.
func counted(t *testing.T, staleness time.Duration) (*breaker.Breaker, *redistest.Proxy, func(f func()) int) {
	t.Helper()
	p := redistest.NewProxy(t, redistest.Start(t))
	c, err := redis.Open("redis://"+p.Addr(), redis.Config{Timeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	b, err := breaker.New(breaker.Config{Name: "host", Cache: c, Staleness: staleness})
	require.NoError(t, err)
	require.NoError(t, b.Do(bg, healthy)) // the server knows the scripts
	return b, p, func(f func()) int {
		p.Drop(nil)
		f()
		return p.Replies()
	}
}

func TestAHealthyCallIsOneRoundTripToAdmitAndNoneToReport(t *testing.T) {
	b, _, during := counted(t, 0)
	require.Equal(t, 100, during(func() {
		for range 100 {
			require.NoError(t, b.Do(bg, healthy))
		}
	}))
}

func TestCallsThatComeWhileOneLooksShareItsRoundTrip(t *testing.T) {
	b, p, during := counted(t, 0)
	p.Delay(300 * time.Millisecond)
	require.LessOrEqual(t, during(func() {
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				if i%10 == 0 { // who leaves takes nobody along
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				err := b.Do(ctx, healthy)
				if i%10 == 0 {
					assert.ErrorIs(t, err, context.Canceled)
				} else {
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
	}), 3)
}

func TestAStalenessOfATenthOfASecondLeavesNextToNoRoundTrips(t *testing.T) {
	b, _, during := counted(t, 100*time.Millisecond)
	const calls = 1000
	replies := during(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range calls {
			<-tick.C
			require.NoError(t, b.Do(bg, healthy))
		}
	})
	assert.Less(t, float64(replies)/calls, 0.05, "%d", replies)
	assert.Positive(t, replies)
}
