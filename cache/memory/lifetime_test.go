package memory_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// methods calls every method of the ports with right arguments.
func methods(c *memory.Cache) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get":       func(ctx context.Context) error { _, _, err := c.Get(ctx, "k"); return err },
		"Set":       func(ctx context.Context) error { return c.Set(ctx, "k", "v", 0) },
		"Increment": func(ctx context.Context) error { _, err := c.Increment(ctx, "k2", 0); return err },
		"Delete":    func(ctx context.Context) error { return c.Delete(ctx, "k") },
		"RecordHit": func(ctx context.Context) error { return c.RecordHit(ctx, "k", noon, time.Hour) },
		"CountHits": func(ctx context.Context) error { _, err := c.CountHits(ctx, "k", noon); return err },
		"OldestHit": func(ctx context.Context) error { _, _, err := c.OldestHit(ctx, "k", noon); return err },
		"Acquire": func(ctx context.Context) error {
			_, err := c.Acquire(ctx, "k", per(1, time.Second))
			return err
		},
		"GiveBack": func(ctx context.Context) error { return c.GiveBack(ctx, "k", cache.Slot{}) },
		"Used":     func(ctx context.Context) error { _, err := c.Used(ctx, "k", time.Second); return err },
		"CompareAndSwap": func(ctx context.Context) error {
			_, err := c.CompareAndSwap(ctx, "k", cache.Absent(), cache.Absent(), 0)
			return err
		},
		"GetMany": func(ctx context.Context) error {
			return c.GetMany(ctx, []string{"k"}, make([]cache.Entry, 1))
		},
		"GetMany of none": func(ctx context.Context) error { return c.GetMany(ctx, nil, nil) },
	}
}

func TestAContextThatIsDoneChangesNothing(t *testing.T) {
	cause := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	c := fresh(t)
	for name, call := range methods(c) {
		assert.Equal(t, cause, call(ctx), name)
	}
	assert.Zero(t, c.Len())
}

func TestAfterCloseEveryMethodSaysSo(t *testing.T) {
	c := memory.New()
	for name, call := range methods(c) {
		require.NoError(t, call(t.Context()), name)
	}
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	for name, call := range methods(c) {
		assert.ErrorIs(t, call(t.Context()), cache.ErrClosed, name)
	}
	assert.Zero(t, c.Len())
}

func TestClosingUnderLoadIsSafe(t *testing.T) {
	c := memory.New()
	var wg sync.WaitGroup
	for name, call := range methods(c) {
		wg.Go(func() {
			for {
				if err := call(t.Context()); err != nil {
					assert.ErrorIs(t, err, cache.ErrClosed, name)
					return
				}
			}
		})
	}
	for c.Len() == 0 {
		runtime.Gosched()
	}
	require.NoError(t, c.Close())
	wg.Wait()
	assert.Zero(t, c.Len())
}

func TestThereIsNoGoroutine(t *testing.T) {
	// A bubble does not end, and synctest.Test fails, while a goroutine started in it
	// lives.
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		c := memory.New() // and never closed
		for range 3 {
			for name, call := range methods(c) {
				require.NoError(t, call(t.Context()), name)
			}
			time.Sleep(time.Hour)
		}
		assert.LessOrEqual(t, runtime.NumGoroutine(), before)
	})
}

func TestAMillionKeysCostWhatTheKeysOfOneWindowNeed(t *testing.T) {
	if testing.Short() {
		t.Skip("a million keys")
	}
	const (
		keys     = 1_000_000
		duration = 10 * time.Minute
		window   = time.Second
		inWindow = int(keys * window / duration)
		batch    = 100
	)
	synctest.Test(t, func(t *testing.T) {
		ask := func(c *memory.Cache, i int) {
			if g, err := c.Acquire(t.Context(), "tenant/"+strconv.Itoa(i), per(10, window)); err != nil || !g.OK {
				require.FailNow(t, "a new key is refused", "%v %v", g, err)
			}
		}
		base := heap()
		c := memory.New()
		for i := range inWindow {
			ask(c, i)
		}
		need := heap() - base
		require.NoError(t, c.Close())

		base = heap()
		c = memory.New()
		var most, mostKeys int64
		for i := range keys {
			ask(c, i)
			if i%batch == batch-1 {
				time.Sleep(duration / (keys / batch))
			}
			if i%(keys/40) == keys/40-1 {
				most = max(most, heap()-base)
				mostKeys = max(mostKeys, int64(c.Len()))
			}
		}
		t.Logf("%d keys in a window need %d bytes; most held were %d keys and %d bytes", inWindow, need, mostKeys, most)
		assert.LessOrEqual(t, mostKeys, int64(4*inWindow))
		assert.LessOrEqual(t, most, 4*need)

		time.Sleep(2 * window)
		for range 10 * inWindow { // the traffic of one key collects the others
			_, err := c.Acquire(t.Context(), "the last", per(10, window))
			require.NoError(t, err)
		}
		assert.Equal(t, 1, c.Len())
		runtime.KeepAlive(c)
	})
}

func TestReclaimingNeverForgetsALiveKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		const live = 500
		for i := range live {
			key := strconv.Itoa(i)
			require.NoError(t, c.Set(t.Context(), "eternal"+key, key, 0))
			require.NoError(t, c.Set(t.Context(), "long"+key, key, time.Hour))
			require.NoError(t, c.RecordHit(t.Context(), "series"+key, noon, time.Second))
			require.NoError(t, c.RecordHit(t.Context(), "series"+key, noon, time.Hour))
			require.NoError(t, c.Set(t.Context(), "extended"+key, key, time.Second))
			require.NoError(t, c.Set(t.Context(), "extended"+key, key, time.Hour))
			require.NoError(t, c.Set(t.Context(), "freed"+key, key, time.Second))
			require.NoError(t, c.Set(t.Context(), "freed"+key, key, 0))
		}
		for i := range 100_000 {
			key := strconv.Itoa(i)
			require.NoError(t, c.Set(t.Context(), "short"+key, key, time.Millisecond))
			require.NoError(t, c.RecordHit(t.Context(), "short"+key, noon, time.Millisecond))
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		for i := range live {
			key := strconv.Itoa(i)
			for _, kind := range []string{"eternal", "long", "extended", "freed"} {
				require.Equal(t, cache.Present(key), read(t, c, kind+key), kind)
			}
			n, err := c.CountHits(t.Context(), "series"+key, noon)
			require.NoError(t, err)
			require.Equal(t, 2, n)
		}
		assert.Less(t, c.Len(), 5*live+3000)
	})
}

func TestAKeyWhoseTTLWasShortenedIsReclaimedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		const n = 1000
		for i := range n {
			require.NoError(t, c.Set(t.Context(), strconv.Itoa(i), "v", time.Hour))
			require.NoError(t, c.Set(t.Context(), strconv.Itoa(i), "v", time.Second))
		}
		time.Sleep(time.Second)
		for range 20 * n {
			require.NoError(t, c.Set(t.Context(), "k", "v", time.Second))
		}
		assert.Equal(t, 1, c.Len())
	})
}

func TestTheKeysOfOneGroupCollectEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		most := 0
		for i := range 20_000 {
			require.NoError(t, c.Set(t.Context(), cache.Key("g", strconv.Itoa(i)), "v", time.Second))
			time.Sleep(time.Millisecond)
			most = max(most, c.Len())
		}
		assert.LessOrEqual(t, most, 1000+1)
	})
}

func TestKeysThatAreDeletedLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		churn := func(n int) {
			for i := range n {
				key := strconv.Itoa(i % 10)
				require.NoError(t, c.Set(t.Context(), key, "v", time.Hour))
				g, err := c.Acquire(t.Context(), key, per(1, time.Hour))
				require.NoError(t, err)
				require.NoError(t, c.GiveBack(t.Context(), key, g.Slot))
				require.NoError(t, c.RecordHit(t.Context(), key, noon, time.Hour))
				require.NoError(t, c.Delete(t.Context(), key))
			}
		}
		churn(1000)
		before := heap()
		churn(100_000)
		assert.Zero(t, c.Len())
		assert.Less(t, heap()-before, int64(64<<10))
	})
}

func TestTheMemoryOfABurstIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		trickle := func(n int) {
			for range n {
				time.Sleep(400 * time.Millisecond)
				_, err := c.Acquire(t.Context(), "k", per(1_000_000, time.Second))
				require.NoError(t, err)
				require.NoError(t, c.Set(t.Context(), "k", "v", time.Second))
			}
		}
		trickle(1000)
		before := heap()
		for i := range 50_000 {
			key := strconv.Itoa(i)
			acquire(t, c, per(1_000_000, time.Second))
			_, err := c.Acquire(t.Context(), key, per(1, time.Second))
			require.NoError(t, err)
			require.NoError(t, c.Set(t.Context(), key, key, time.Second))
		}
		most := heap() - before
		// A write reclaims what 50,000 others left, some at a time.
		trickle(50_000)
		assert.Equal(t, 2, c.Len())
		assert.Less(t, heap()-before, most/20)
	})
}
