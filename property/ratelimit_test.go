package property

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// plainCache hides every capability.
type plainCache struct{ cache.Cache }

// A naiveLimiter is every hit that ever was, and searches all instants one by one. Its
// unit of time is the grid that the test moves on.
type naiveLimiter struct {
	limit, window int
	hits          []admission // in order of arrival
}

type admission struct{ at, cost int }

// next is the first instant at which cost fits in, not before now and not before the
// last hit.
func (w *naiveLimiter) next(now, cost int) int {
	at := now
	for _, h := range w.hits {
		at = max(at, h.at)
	}
	for ; ; at++ {
		used := 0
		for _, h := range w.hits {
			if h.at > at-w.window {
				used += h.cost
			}
		}
		if used+cost <= w.limit {
			return at
		}
	}
}

func (w *naiveLimiter) used(now int) (sum int) {
	for _, h := range w.hits {
		if h.at > now-w.window {
			sum += h.cost
		}
	}
	return sum
}

// noSpanHolds is the promise itself: no half-open span of a window holds more than
// the limit.
func (w *naiveLimiter) noSpanHolds(t *rapid.T) {
	for _, first := range w.hits {
		sum := 0
		for _, h := range w.hits {
			if h.at >= first.at && h.at < first.at+w.window {
				sum += h.cost
			}
		}
		require.LessOrEqual(t, sum, w.limit, "in the span from %d: %v", first.at, w.hits)
	}
}

// grid is how far apart instants of these tests are.
const grid = time.Millisecond

// caches are what a limiter can have: a memory of its own, a cache that decides in
// one step, one that has only the plain methods.
var caches = rapid.SampledFrom([]func() cache.Cache{
	func() cache.Cache { return nil },
	func() cache.Cache { return memory.New() },
	func() cache.Cache { return plainCache{memory.New()} },
})

func TestALimiterThatRefusesAnswersAsANaiveModelDoes(t *testing.T) {
	check(t, func(t *rapid.T) {
		ctx := context.Background()
		model := &naiveLimiter{limit: rapid.IntRange(1, 6).Draw(t, "limit"), window: rapid.IntRange(1, 20).Draw(t, "window")}
		c := caches.Draw(t, "cache")()
		_, isPlain := c.(plainCache)
		l, err := ratelimit.New(model.limit, time.Duration(model.window)*grid, ratelimit.Config{Cache: c})
		require.NoError(t, err)
		defer l.Close()
		now := 0
		costs := rapid.Just(1)
		withCosts := rapid.Bool().Draw(t, "with costs")
		if withCosts {
			costs = rapid.IntRange(1, model.limit)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				remaining, err := l.Remaining(ctx, "k")
				require.NoError(t, err)
				require.Equal(t, model.limit-model.used(now), remaining)
			},
			"acquire": func(t *rapid.T) {
				cost := costs.Draw(t, "cost")
				err := l.AcquireN(ctx, "k", cost)
				at := model.next(now, cost)
				if at == now {
					require.NoError(t, err)
					model.hits = append(model.hits, admission{now, cost})
					return
				}
				wait, ok := resilience.RetryAfter(err)
				require.True(t, ok)
				require.ErrorIs(t, err, resilience.ErrRejected)
				require.GreaterOrEqual(t, wait, time.Duration(at-now)*grid)
				if !isPlain || !withCosts { // else it is not always known how many hits leave together
					require.Equal(t, time.Duration(at-now)*grid, wait)
				}
			},
			"pass": func(t *rapid.T) {
				d := rapid.IntRange(1, model.window).Draw(t, "for")
				time.Sleep(time.Duration(d) * grid)
				now += d
			},
			"reset": func(t *rapid.T) {
				require.NoError(t, l.Reset(ctx, "k"))
				model.hits = nil
			},
		})
		model.noSpanHolds(t)
	})
}

// Everybody waits for as long as it takes, and some give up. The model serves a queue
// per cost: whoever leaves takes the last slot of its queue along, and those behind move
// up by one.
func TestWaitersAreServedAsANaiveQueueDoes(t *testing.T) {
	check(t, func(t *rapid.T) {
		model := &naiveLimiter{limit: rapid.IntRange(1, 5).Draw(t, "limit"), window: rapid.IntRange(1, 20).Draw(t, "window")}
		costs := rapid.Just(1)
		if rapid.Bool().Draw(t, "with costs") {
			costs = rapid.IntRange(1, model.limit)
		}
		l, err := ratelimit.New(model.limit, time.Duration(model.window)*grid, ratelimit.Config{
			Cache:   memoryOrNil.Draw(t, "cache")(),
			MaxWait: math.MaxInt64,
		})
		require.NoError(t, err)
		defer l.Close()

		var all sync.WaitGroup
		defer all.Wait()
		start := time.Now()
		type caller struct {
			cost   int
			stop   context.CancelFunc
			done   bool
			at     time.Duration
			err    error
			expect int // when the model serves it
		}
		var mu sync.Mutex
		var waiting []*caller // in order of arrival
		now := 0

		settle := func(t *rapid.T) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			waiting = slices.DeleteFunc(waiting, func(c *caller) bool {
				require.Equal(t, c.expect <= now, c.done, "a caller expected at %d, now %d", c.expect, now)
				if c.done {
					require.NoError(t, c.err)
					require.Equal(t, time.Duration(c.expect)*grid, c.at)
				}
				return c.done
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"": settle,
			"arrive": func(t *rapid.T) {
				ctx, stop := context.WithCancel(context.Background())
				c := &caller{cost: costs.Draw(t, "cost"), stop: stop}
				c.expect = model.next(now, c.cost)
				model.hits = append(model.hits, admission{c.expect, c.cost})
				waiting = append(waiting, c)
				all.Go(func() {
					err := l.AcquireN(ctx, "k", c.cost)
					mu.Lock()
					defer mu.Unlock()
					c.done, c.at, c.err = true, time.Since(start), err
				})
				synctest.Wait()
			},
			"cancel": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
				gone := waiting[i]
				gone.stop()
				synctest.Wait()
				mu.Lock()
				require.True(t, gone.done)
				require.ErrorIs(t, gone.err, context.Canceled)
				mu.Unlock()
				at := gone.expect
				for _, c := range waiting[i+1:] {
					if c.cost == gone.cost {
						at, c.expect = c.expect, at
					}
				}
				waiting = slices.Delete(waiting, i, i+1)
				last := slices.Index(model.hits, admission{at, gone.cost})
				model.hits = slices.Delete(model.hits, last, last+1)
			},
			"pass": func(t *rapid.T) {
				d := rapid.IntRange(1, model.window).Draw(t, "for")
				time.Sleep(time.Duration(d) * grid)
				now += d
			},
		})
		model.noSpanHolds(t)
		for _, c := range waiting {
			c.stop()
		}
	})
}

var memoryOrNil = rapid.SampledFrom([]func() cache.Cache{
	func() cache.Cache { return nil },
	func() cache.Cache { return memory.New() },
})

// Over plain methods a slot that was given back before its instant is kept for the next
// callers, and two limiters know less of each other; what stays is the promise.
func TestOverPlainMethodsNoSpanHoldsTooMuchWhoeverWaitsAndGivesUp(t *testing.T) {
	check(t, func(t *rapid.T) {
		model := &naiveLimiter{limit: rapid.IntRange(1, 5).Draw(t, "limit"), window: rapid.IntRange(1, 20).Draw(t, "window")}
		shared := plainCache{memory.New()}
		limiters := make([]*ratelimit.Limiter, rapid.IntRange(1, 3).Draw(t, "limiters"))
		for i := range limiters {
			l, err := ratelimit.New(model.limit, time.Duration(model.window)*grid, ratelimit.Config{
				Cache:   shared,
				MaxWait: time.Duration(rapid.SampledFrom([]int{0, 3, 1000}).Draw(t, "max wait")) * grid,
			})
			require.NoError(t, err)
			defer l.Close()
			limiters[i] = l
		}
		var all sync.WaitGroup
		defer all.Wait()
		start := time.Now()
		var mu sync.Mutex
		var stops []context.CancelFunc
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				ctx, stop := context.WithCancel(context.Background())
				stops = append(stops, stop)
				cost := rapid.IntRange(1, model.limit).Draw(t, "cost")
				l := rapid.SampledFrom(limiters).Draw(t, "limiter")
				all.Go(func() {
					if l.AcquireN(ctx, "k", cost) == nil {
						mu.Lock()
						defer mu.Unlock()
						model.hits = append(model.hits, admission{int(time.Since(start) / grid), cost})
					}
				})
				synctest.Wait()
			},
			"cancel": func(t *rapid.T) {
				if len(stops) == 0 {
					t.Skip("nobody has come")
				}
				rapid.SampledFrom(stops).Draw(t, "who")()
				synctest.Wait()
			},
			"pass": func(t *rapid.T) {
				time.Sleep(time.Duration(rapid.IntRange(1, model.window).Draw(t, "for")) * grid)
				synctest.Wait()
			},
		})
		for _, stop := range stops {
			stop()
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		model.noSpanHolds(t)
	})
}
