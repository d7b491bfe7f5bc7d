package redis_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

func TestAnySubjectHasItsLimitOnAClusterAndTheySpread(t *testing.T) {
	t.Parallel()
	m := redistest.Cluster(t)
	c := open(t, "redis+cluster://"+strings.Join(m.Addrs(), ","))
	rng := rand.New(rand.NewPCG(3, 4))
	subjects := map[string]bool{"": true, "{": true, "}": true, "{}": true, "}{": true, "{a}": true, " ": true, "日本": true}
	const letters = "{} ab日\x00\xff%:"
	for len(subjects) < 1000 {
		b := make([]byte, 1+rng.IntN(12))
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		subjects[string(b)] = true
	}
	var all sync.WaitGroup
	limit := make(chan struct{}, 32)
	for subject := range subjects {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			granted := 0
			for range 6 {
				g, err := c.Acquire(bg, subject, unit(5, 10*time.Minute, 0))
				if !assert.NoError(t, err, "%q", subject) {
					return
				}
				if g.OK {
					granted++
				}
			}
			assert.Equal(t, 5, granted, "%q", subject)
		})
	}
	all.Wait()
	for _, s := range m.Servers {
		assert.Greater(t, s.Do("DBSIZE").(int64), int64(200))
	}
}

func TestOneNodeThatIsGoneTakesOnlyItsOwnKeysAlong(t *testing.T) {
	t.Parallel()
	m := redistest.Cluster(t)
	for _, s := range m.Servers {
		s.Do("CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	c, err := redis.Open("redis+cluster://"+strings.Join(m.Addrs(), ","), redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, c.Set(bg, key, "v", time.Minute))
	}
	m.Servers[0].Kill()
	away := 0
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		_, err := c.Acquire(bg, key, unit(1, time.Minute, 0))
		var outage *cache.UnavailableError
		if err != nil {
			require.ErrorAs(t, err, &outage)
			away++
		}
	}
	assert.Less(t, away, 6)
	assert.Positive(t, away, "or the test says nothing")
}

// While a slot with keys in it moves, what needs two of them may have to come again; nothing
// is lost, and nothing counted twice.
func TestEverythingIsCountedOnceWhileSlotsMove(t *testing.T) {
	t.Parallel()
	m := redistest.Cluster(t)
	c := open(t, "redis+cluster://"+strings.Join(m.Addrs(), ","))
	var all sync.WaitGroup
	var enough atomic.Bool
	var counted, granted, unknown atomic.Int64
	for i := range 6 {
		all.Go(func() {
			for !enough.Load() {
				var away *cache.UnavailableError
				if _, err := c.Increment(bg, "k", time.Hour); err == nil {
					counted.Add(1)
				} else if assert.ErrorAs(t, err, &away) {
					unknown.Add(1)
				}
				weight := int64(1 + i%2)
				r := cache.Request{Limit: 1 << 40, Window: time.Hour, Weight: weight}
				if _, err := c.Acquire(bg, "k", r); err == nil {
					granted.Add(weight)
				} else if assert.ErrorAs(t, err, &away) {
					unknown.Add(weight)
				}
			}
		})
	}
	slot := m.Slot("test:{k}:h")
	for range 9 {
		owner := m.Owner(slot)
		m.Move(slot, owner, (owner+1)%3)
		time.Sleep(50 * time.Millisecond)
	}
	enough.Store(true)
	all.Wait()
	n, err := c.Increment(bg, "k", time.Hour)
	require.NoError(t, err)
	used, err := c.Used(bg, "k", time.Hour)
	require.NoError(t, err)
	t.Logf("%d counted of %d, %d granted of %d, %d unknown", counted.Load(), n-1, granted.Load(), used, unknown.Load())
	assert.GreaterOrEqual(t, n-1, counted.Load())
	assert.GreaterOrEqual(t, used, granted.Load())
	assert.LessOrEqual(t, n-1+used, counted.Load()+granted.Load()+unknown.Load())
	assert.Positive(t, counted.Load())
}
