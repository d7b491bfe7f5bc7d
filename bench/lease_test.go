package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// A leasing worker takes slots in blocks: one hit with the block's weight at the store,
// which it then spends by itself for as long as the block lives. See docs/scale.md, whose
// arithmetic these tests check, and whose table TestLeasesByTheNumbers logs.
type leasing struct {
	limit   int64
	window  time.Duration
	block   int64
	life    time.Duration // how long a block may be spent
	widened bool          // whether the store's window is as much wider as a block lives
}

type leased struct {
	spent []time.Time // when each call was made
	asked int         // how often the store was asked
}

// most returns the most calls in any half-open span of the window.
func (l leased) most(window time.Duration) (most int) {
	for first, last := 0, 0; last < len(l.spent); last++ {
		for !l.spent[last].Before(l.spent[first].Add(window)) {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// run has workers call for the given time with a mean pause between two calls of each.
func (l leasing) run(t *testing.T, workers int, pause, length time.Duration) leased {
	t.Helper()
	store := memory.New()
	defer store.Close()
	request := cache.Request{Limit: l.limit, Window: l.window, Weight: l.block}
	if l.widened {
		request.Window += l.life
	}
	var mu sync.Mutex
	var all leased
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	for n := range workers {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		wg.Go(func() {
			var left int64
			var until time.Time
			for {
				time.Sleep(time.Duration(random.ExpFloat64() * float64(pause)))
				now := time.Now()
				if !now.Before(end) {
					return
				}
				if left == 0 || !now.Before(until) {
					grant, err := store.Acquire(context.Background(), "all", request)
					mu.Lock()
					all.asked++
					mu.Unlock()
					if err != nil || !grant.OK {
						continue
					}
					left, until = l.block, now.Add(l.life)
				}
				left--
				mu.Lock()
				all.spent = append(all.spent, now)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all.spent, time.Time.Compare)
	return all
}

const (
	leaseWorkers = 1000
	leaseLimit   = 10_000
	leaseLength  = 10 * time.Second
)

// Blocks that live for a while and are counted for a window only are spent too often:
// the one who leases last before a window's edge spends after it.
func TestBlocksCountedForAWindowOnlyExceedTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leasing{limit: leaseLimit, window: time.Second, block: 10, life: 500 * time.Millisecond}
		assert.Greater(t, l.run(t, leaseWorkers, 20*time.Millisecond, leaseLength).most(time.Second), leaseLimit)
	})
}

// Counted for as much longer as they live, they never are.
func TestBlocksCountedForTheirLifeTooNeverExceedTheLimit(t *testing.T) {
	for _, life := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		for _, pause := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				l := leasing{limit: leaseLimit, window: time.Second, block: 10, life: life, widened: true}
				got := l.run(t, leaseWorkers, pause, leaseLength)
				require.NotEmpty(t, got.spent)
				assert.LessOrEqual(t, got.most(time.Second), leaseLimit, "life %v, pause %v", life, pause)
			})
		}
	}
}

func TestLeasesByTheNumbers(t *testing.T) {
	for _, load := range []struct {
		name  string
		pause time.Duration
	}{{"half the limit asked for", 200 * time.Millisecond}, {"twice the limit asked for", 50 * time.Millisecond}} {
		for _, l := range []leasing{
			{block: 1, life: time.Microsecond},
			{block: 5, life: 100 * time.Millisecond},
			{block: 5, life: 500 * time.Millisecond},
			{block: 10, life: 100 * time.Millisecond},
			{block: 10, life: 500 * time.Millisecond},
			{block: 10, life: time.Second},
		} {
			synctest.Test(t, func(t *testing.T) {
				l.limit, l.window, l.widened = leaseLimit, time.Second, true
				got := l.run(t, leaseWorkers, load.pause, leaseLength)
				assert.LessOrEqual(t, got.most(time.Second), leaseLimit)
				t.Logf("%-26s block %2d, life %6v: %6.0f calls/s, at most %5d in a window, %.2f questions per call",
					load.name, l.block, l.life, float64(len(got.spent))/leaseLength.Seconds(), got.most(time.Second),
					float64(got.asked)/float64(len(got.spent)))
			})
		}
	}
}
