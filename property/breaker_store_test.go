package property

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// A moody store does as it is asked, or fails before it does, or fails after it has,
// or hangs, or has something else under the key, as it is told to in advance.
type moody struct {
	*memory.Cache
	mu    sync.Mutex
	moods []string
}

// TimeLimit says that it may hang, which the cache within cannot.
func (c *moody) TimeLimit() (time.Duration, bool) { return 0, false }

func (c *moody) mood() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.moods) == 0 {
		return "well"
	}
	m := c.moods[0]
	c.moods = c.moods[1:]
	return m
}

func (c *moody) do(ctx context.Context, op, key string, f func() error) error {
	away := &cache.UnavailableError{Op: op, Err: errors.New("connection reset")}
	switch c.mood() {
	case "fails":
		return away
	case "loses the reply":
		_ = f()
		return away
	case "hangs":
		<-ctx.Done()
		return &cache.UnavailableError{Op: op, Err: context.Cause(ctx)}
	case "garbage":
		_ = c.Cache.Set(ctx, key, "garbage", time.Hour)
	case "gone":
		_ = c.Cache.Delete(ctx, key)
	case "another kind":
		return &cache.CorruptError{Op: op, Key: key, Err: errors.New("wrong kind of value")}
	}
	return f()
}

func (c *moody) Get(ctx context.Context, key string) (v string, ok bool, err error) {
	err = c.do(ctx, "get", key, func() error { v, ok, err = c.Cache.Get(ctx, key); return err })
	return v, ok, err
}

func (c *moody) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	return c.do(ctx, "set", key, func() error { return c.Cache.Set(ctx, key, value, ttl) })
}

func (c *moody) Increment(ctx context.Context, key string, ttl time.Duration) (n int64, err error) {
	err = c.do(ctx, "increment", key, func() error { n, err = c.Cache.Increment(ctx, key, ttl); return err })
	return n, err
}

func (c *moody) Delete(ctx context.Context, key string) error {
	return c.do(ctx, "delete", key, func() error { return c.Cache.Delete(ctx, key) })
}

func (c *moody) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	return c.do(ctx, "get many", keys[0], func() error { return c.Cache.GetMany(ctx, keys, entries) })
}

func (c *moody) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (ok bool, err error) {
	err = c.do(ctx, "compare and swap", key, func() error {
		ok, err = c.Cache.CompareAndSwap(ctx, key, old, new, ttl)
		return err
	})
	return ok, err
}

// A call gets its own result or a refusal, whatever the store does, and when that is
// well again a circuit is as good as new.
func TestWhateverTheStoreDoesNoCircuitIsStuckAndNoResultIsReplaced(t *testing.T) {
	moods := rapid.SliceOfN(rapid.SampledFrom([]string{
		"well", "well", "well", "well", "well", "well", "fails", "loses the reply", "hangs", "garbage", "gone", "another kind",
	}), 0, 200)
	check(t, func(t *rapid.T) {
		ctx := context.Background()
		kv := &moody{Cache: memory.New(), moods: moods.Draw(t, "moods")}
		cfg := breaker.Config{
			Cache: kv, FailureThreshold: rapid.IntRange(1, 3).Draw(t, "threshold"),
			RecoveryTimeout: 10 * time.Second, ProbeLease: 5 * time.Second, Probes: rapid.IntRange(1, 2).Draw(t, "probes"),
			Staleness: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "staleness"),
		}
		var breakers [2]*breaker.Breaker
		for i := range breakers {
			var err error
			breakers[i], err = breaker.New(cfg)
			require.NoError(t, err)
		}
		some := func(t *rapid.T) *breaker.Breaker { return breakers[rapid.IntRange(0, 1).Draw(t, "breaker")] }
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"do": func(t *rapid.T) {
				want := rapid.SampledFrom([]error{nil, errHost, errHost, resilience.ErrRejected}).Draw(t, "result")
				made := false
				err := some(t).Do(ctx, func(context.Context) error { made = true; return want })
				var open *breaker.OpenError
				if errors.As(err, &open) {
					require.False(t, made)
					require.Positive(t, open.Wait)
					return
				}
				require.True(t, made)
				require.Equal(t, want, err)
			},
			"allow": func(t *rapid.T) {
				p, err := some(t).Allow(ctx)
				if err == nil {
					switch rapid.IntRange(0, 2).Draw(t, "then") {
					case 0: // forget it
					case 1:
						p.Settle(ctx, breaker.Success)
					case 2:
						_ = p.Renew(ctx)
						p.Settle(ctx, breaker.Failure)
					}
					return
				}
				require.ErrorIs(t, err, resilience.ErrRejected)
			},
			"by hand": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "open") {
					_ = some(t).ForceOpen(ctx, 3*time.Second)
				} else {
					_ = some(t).Reset(ctx)
				}
			},
			"wait": func(t *rapid.T) {
				time.Sleep(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second}).Draw(t, "pause"))
			},
		})
		kv.mu.Lock()
		kv.moods = nil
		kv.mu.Unlock()
		time.Sleep(cfg.RecoveryTimeout + cfg.ProbeLease)
		b := some(t)
		require.NoError(t, b.Do(ctx, func(context.Context) error { return nil }))
		for range cfg.FailureThreshold {
			s, err := b.State(ctx)
			require.NoError(t, err)
			require.Equal(t, "closed", s.String())
			require.ErrorIs(t, b.Do(ctx, func(context.Context) error { return errHost }), errHost)
		}
		require.ErrorIs(t, b.Do(ctx, func(context.Context) error { return nil }), resilience.ErrRejected)
	})
}
