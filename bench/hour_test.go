package bench

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// The memory is that of the traffic of the last windows, not of all there ever was. The
// log says what a call cost at either time, by a clock that is not the bubble's.
func TestAnHourOfTrafficLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		defer store.Close()
		l, err := ratelimit.New(20, time.Second, ratelimit.Config{Cache: store})
		require.NoError(t, err)
		defer l.Close()
		ctx := context.Background()

		// A hundred keys at a time, and after a minute others.
		const keys, step = 100, 200 * time.Millisecond
		names := Names(60 * keys)
		traffic := func(length time.Duration) (perCall float64) {
			calls := 0
			var took time.Duration
			for begun, now := time.Now(), time.Duration(0); now < length; now = time.Since(begun) {
				first := int(time.Since(begun)/time.Minute) * keys
				start := realTime()
				for _, name := range names[first : first+keys] {
					require.NoError(t, l.Acquire(ctx, name))
				}
				took += realTime() - start
				calls += keys
				time.Sleep(step)
			}
			return float64(took.Nanoseconds()) / float64(calls)
		}
		first := traffic(time.Second)
		early, heap := store.Len(), inUse()
		all := traffic(time.Hour - time.Second)
		last := traffic(time.Second)
		t.Logf("ns per call: %.0f in the first second, %.0f in the hour, %.0f in its last second", first, all, last)
		t.Logf("keys held: %d after a second, %d after an hour; bytes in use: %d and %d", early, store.Len(), heap, inUse())
		assert.LessOrEqual(t, store.Len(), 3*early)
		assert.Less(t, inUse()-heap, int64(4<<20))
	})
}

// realTime is time that passes in a bubble of synctest, too.
func realTime() time.Duration {
	var now syscall.Timeval
	check(syscall.Gettimeofday(&now))
	return time.Duration(now.Nano())
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
