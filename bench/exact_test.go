package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	failsafelimiter "github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/stretchr/testify/assert"
	uber "go.uber.org/ratelimit"
)

// What the limiters are worth that are compared: the most they admit in any span of one
// window, when a flood meets them at rest. Ours is asserted, the others are logged.
func TestTheMostThatAnyWindowHolds(t *testing.T) {
	a := allowance{50, 200 * time.Millisecond}
	ctx := context.Background()
	store := must(memorystore.New(&memorystore.Config{Tokens: uint64(a.limit), Interval: a.window}))
	defer func() { _ = store.Close(ctx) }()
	bursty := failsafelimiter.NewBursty[int](uint(a.limit), a.window)
	paced := uber.New(a.limit, uber.Per(a.window))
	for _, l := range []struct {
		name string
		take taker
	}{
		{"ours", ourTaker(t, a)},
		{"x/time/rate", rateTaker(a)},
		{"failsafe-go bursty", func(string) bool { return bursty.TryAcquirePermit() }},
		{"go-limiter", func(key string) bool { _, _, _, ok, err := store.Take(ctx, key); return ok && err == nil }},
		{"throttled", throttledTaker(a)},
		{"ulule", ululeTaker(a)},
		{"uber", func(string) bool { paced.Take(); return true }},
	} {
		most := 0
		for _, rest := range []time.Duration{0, a.window * 3 / 4} {
			// A first hit begins a window for those who have buckets; the flood then meets its end.
			l.take("k")
			time.Sleep(2*a.window + rest)
			l.take("k")
			time.Sleep(a.window * 9 / 10)
			var before, after []time.Time // of each admission
			for end := time.Now().Add(2 * a.window); time.Now().Before(end); {
				asked := time.Now()
				if l.take("k") {
					before, after = append(before, asked), append(after, time.Now())
				}
			}
			for i, first := range before {
				// Those that were in one window for certain, whatever held up this goroutine, and
				// by instants in whole microseconds, which is how exact ours is.
				n, _ := slices.BinarySearchFunc(after[i:], first.Add(a.window-time.Microsecond), time.Time.Compare)
				most = max(most, n)
			}
		}
		t.Logf("%-18s limit %d, at most %d in a window", l.name, a.limit, most)
		if l.name == "ours" {
			assert.LessOrEqual(t, most, a.limit)
		}
	}
}
