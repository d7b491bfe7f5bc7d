package ratelimit_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// instants collects when, by the clock of the cache, hits were recorded.
type instants struct {
	mu sync.Mutex
	at []int64
}

func (i *instants) add(at int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.at = append(i.at, at)
}

func (i *instants) remove(at int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := slices.Index(i.at, at); n >= 0 {
		i.at = slices.Delete(i.at, n, n+1)
	}
}

// noSpanHolds asserts that no half-open span of a window holds more than limit.
func (i *instants) noSpanHolds(t *testing.T, limit int, window time.Duration) {
	t.Helper()
	slices.Sort(i.at)
	for first := range i.at[:max(0, len(i.at)-limit)] {
		span := i.at[first+limit] - i.at[first]
		if !assert.GreaterOrEqual(t, span, window.Microseconds(), "hits %d to %d of %d", first, first+limit, len(i.at)) {
			return
		}
	}
}

// recording is a cache that tells the instants of its slots.
type recording struct {
	*memory.Cache
	seen *instants
}

func (r recording) Acquire(ctx context.Context, key string, q cache.Request) (cache.Grant, error) {
	g, err := r.Cache.Acquire(ctx, key, q)
	if g.OK {
		r.seen.add(g.Slot.At)
	}
	return g, err
}

func (r recording) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	r.seen.remove(s.At)
	return r.Cache.GiveBack(ctx, key, s)
}

// plainRecording is one without capabilities.
type plainRecording struct {
	cache.Cache
	seen *instants
}

func (r plainRecording) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	r.seen.add(at.UnixMicro())
	return r.Cache.RecordHit(ctx, key, at, ttl)
}

// Virtual time stands still while code runs, and so hides what two readings of a
// clock can do to each other. This one takes three real seconds.
func TestNoSpanEverHoldsOneTooManyInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three seconds; run without -short")
	}
	const limit, window, windows = 50, time.Second, 3
	kinds := map[string]func(*instants) cache.Cache{
		"atomic": func(seen *instants) cache.Cache { return recording{memory.New(), seen} },
		"plain":  func(seen *instants) cache.Cache { return plainRecording{plain{memory.New()}, seen} },
	}
	starts := map[string]func() time.Duration{
		"at once": func() time.Duration { return 0 },
		"just before the edge of a second": func() time.Duration {
			now := time.Now()
			return now.Truncate(time.Second).Add(1990 * time.Millisecond).Sub(now)
		},
	}
	for name, make := range kinds {
		for when, until := range starts {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				seen := &instants{}
				l, err := ratelimit.New(limit, window, ratelimit.Config{Cache: make(seen)})
				require.NoError(t, err)
				defer l.Close()

				<-time.After(until())
				over := time.Now().Add(windows*window + window/10)
				var all sync.WaitGroup
				for range 64 {
					all.Go(func() {
						for time.Now().Before(over) {
							_ = l.Acquire(context.Background(), "k")
						}
					})
				}
				all.Wait()
				seen.noSpanHolds(t, limit, window)
				assert.GreaterOrEqual(t, len(seen.at), windows*limit, "and each window is used to the full")
			})
		}
	}
}

func TestNoSpanEverHoldsOneTooManyWhileWaitersComeAndGoInRealTime(t *testing.T) {
	const limit, window = 20, 10 * time.Millisecond
	kinds := map[string]func(*instants) cache.Cache{
		"atomic": func(seen *instants) cache.Cache { return recording{memory.New(), seen} },
		"plain":  func(seen *instants) cache.Cache { return plainRecording{plain{memory.New()}, seen} },
	}
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &instants{}
			l, err := ratelimit.New(limit, window, ratelimit.Config{Cache: make(seen), MaxWait: 5 * window})
			require.NoError(t, err)
			defer l.Close()
			over := time.Now().Add(30 * window)
			var served atomic.Int64
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					for time.Now().Before(over) {
						ctx, cancel := context.WithCancel(context.Background())
						time.AfterFunc(time.Duration(rand.Int64N(int64(4*window))), cancel)
						if l.Acquire(ctx, "k") == nil {
							served.Add(1)
						}
						cancel()
					}
				})
			}
			all.Wait()
			seen.noSpanHolds(t, limit, window)
			assert.Positive(t, served.Load())
			assert.LessOrEqual(t, served.Load(), int64(len(seen.at)), "nobody is served without a slot")
		})
	}
}
