package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

func TestNewRefusesWhatHasNoMeaning(t *testing.T) {
	for _, tt := range []struct {
		limit  int
		window time.Duration
		cfg    ratelimit.Config
		want   string
	}{
		{0, time.Second, ratelimit.Config{}, "ratelimit: limit is 0, want"},
		{-1, time.Second, ratelimit.Config{}, "ratelimit: limit is -1, want"},
		{1, time.Second, ratelimit.Config{Cache: (*memory.Cache)(nil)}, "ratelimit: Cache is a nil *memory.Cache"},
		{math.MinInt, time.Second, ratelimit.Config{}, "ratelimit: limit is -"},
		{1, 0, ratelimit.Config{}, "ratelimit: window is 0s, want"},
		{1, -time.Second, ratelimit.Config{}, "ratelimit: window is -1s, want"},
		{1, 999, ratelimit.Config{}, "ratelimit: window is 999ns, want"},
		{1, time.Second, ratelimit.Config{MaxWait: -1}, "ratelimit: MaxWait is -1ns, want"},
		{1, time.Second, ratelimit.Config{WhenUnavailable: 2}, "ratelimit: WhenUnavailable is Unavailable(2), want"},
	} {
		l, err := ratelimit.New(tt.limit, tt.window, tt.cfg)
		require.ErrorContains(t, err, tt.want)
		require.Nil(t, l)
	}
	l := limiter(t, 1, time.Second, ratelimit.Config{})
	require.PanicsWithValue(t, "ratelimit: By: keyOf is nil", func() { l.By(nil) })
}

func TestTwoLimitersOnOneCacheShareTheirAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		cfg := ratelimit.Config{Name: "api", Cache: shared}
		a, b := limiter(t, 10, time.Second, cfg), limiter(t, 10, time.Second, cfg)
		assert.Equal(t, 6, admitted(a, "k", 6))
		assert.Equal(t, 4, admitted(b, "k", 10))
		assert.Zero(t, admitted(a, "k", 10))

		c := limiter(t, 10, time.Second, ratelimit.Config{Name: "api", Cache: memory.New()})
		d := limiter(t, 10, time.Second, ratelimit.Config{Name: "api"})
		assert.Equal(t, 10, admitted(c, "k", 20))
		assert.Equal(t, 10, admitted(d, "k", 20))
	})
}

func TestTwentyLimitersOnOneCacheAdmitTheLimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		var mu sync.Mutex
		in := 0
		var all sync.WaitGroup
		for range 20 {
			l := limiter(t, 100, time.Minute, ratelimit.Config{Cache: shared})
			for range 100 {
				all.Go(func() {
					err := l.Acquire(t.Context(), "k")
					if err == nil {
						mu.Lock()
						in++
						mu.Unlock()
						return
					}
					wait, _ := resilience.RetryAfter(err)
					assert.Positive(t, wait)
				})
			}
		}
		all.Wait()
		assert.Equal(t, 100, in)
	})
}

func TestOneLimiterAdmitsTheLimitOfTwoThousandWhoComeAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		l := limiter(t, 100, time.Minute, ratelimit.Config{Cache: c})
		var in, out atomic.Int64
		var all sync.WaitGroup
		for range 2000 {
			all.Go(func() {
				err := l.Acquire(t.Context(), "k")
				if err == nil {
					in.Add(1)
					return
				}
				exceeded, ok := errors.AsType[*ratelimit.ExceededError](err)
				if assert.True(t, ok, "%v", err) && assert.Positive(t, exceeded.Wait) {
					out.Add(1)
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, 100, in.Load())
		assert.EqualValues(t, 1900, out.Load())
	})
}

func TestNoTwoTriplesOfNameWindowAndKeyShareASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		for _, of := range []struct {
			name   string
			window time.Duration
			key    string
		}{
			{"", time.Minute, ""},
			{"", time.Minute, "a"},
			{"", time.Minute, "1:a"},
			{"a", time.Minute, ""},
			{"a", time.Minute, "1m0s:"},
			{"a:1m0s", time.Minute, ""},
			{"a:1m0s:", time.Minute, ""},
			{"a", time.Hour, ""},
			{"1:a", time.Minute, ""},
			{"a", time.Minute, "b:c"},
			{"a:b", time.Minute, "c"},
			{"a\x00", time.Minute, "b"},
			{"a", time.Minute, "\x00b"},
		} {
			l := limiter(t, 1, of.window, ratelimit.Config{Name: of.name, Cache: shared})
			assert.Equal(t, 1, admitted(l, of.key, 2), "%+v", of)
		}
	})
}

func TestTheKeysOfOneLimiterAreOfDifferentGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]bool{}
		c := spy{memory.New(), func(key string) { seen[cache.Group(key)] = true }}
		l := limiter(t, 5, time.Second, ratelimit.Config{Name: "api", Cache: c})
		for i := range 100 {
			require.NoError(t, l.Acquire(t.Context(), fmt.Sprint(i)))
		}
		assert.Len(t, seen, 100, "so that a store of several servers spreads them")
	})
}

type spy struct {
	*memory.Cache
	saw func(key string)
}

func (s spy) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	s.saw(key)
	return s.Cache.Acquire(ctx, key, r)
}

func TestClosingALimiterLeavesABorrowedCacheAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		require.NoError(t, shared.Set(t.Context(), "circuit", "open", 0))
		cfg := ratelimit.Config{Cache: shared}
		a, b := limiter(t, 10, time.Second, cfg), limiter(t, 10, time.Second, cfg)
		require.Equal(t, 10, admitted(a, "k", 10))
		require.NoError(t, a.Close())
		require.NoError(t, a.Close(), "twice is safe")

		assert.Zero(t, admitted(b, "k", 10), "the hits are still there")
		value, ok, err := shared.Get(t.Context(), "circuit")
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, "open", value)
	})
}

func TestAfterCloseEverythingSaysSo(t *testing.T) {
	for _, c := range []cache.Cache{nil, memory.New(), plain{memory.New()}} {
		l, err := ratelimit.New(1, time.Second, ratelimit.Config{
			Cache: c, WhenUnavailable: ratelimit.Admit,
			OnUnavailable: func(context.Context, ratelimit.Outage) { t.Error("this is no outage") },
		})
		require.NoError(t, err)
		require.NoError(t, l.Acquire(t.Context(), "k"))
		require.NoError(t, l.Close())
		for _, err := range []error{
			l.Acquire(t.Context(), "k"),
			l.AcquireN(t.Context(), "k", 1),
			l.For("k").Do(t.Context(), func(context.Context) error { return nil }),
		} {
			require.ErrorIs(t, err, cache.ErrClosed)
			require.ErrorIs(t, err, resilience.ErrRejected)
		}
		_, err = l.Remaining(t.Context(), "k")
		require.ErrorIs(t, err, cache.ErrClosed)
		require.ErrorIs(t, l.Reset(t.Context(), "k"), cache.ErrClosed)
	}
}

func TestABorrowedCacheThatItsOwnerClosedAdmitsNobody(t *testing.T) {
	shared := memory.New()
	l := limiter(t, 1, time.Second, ratelimit.Config{Cache: shared, WhenUnavailable: ratelimit.Admit})
	require.NoError(t, shared.Close())
	err := l.Acquire(t.Context(), "k")
	require.ErrorIs(t, err, cache.ErrClosed)
	require.ErrorIs(t, err, resilience.ErrRejected)
}

func TestByTakesTheKeyFromTheCall(t *testing.T) {
	onEach(t, func(t *testing.T, c cache.Cache) {
		type tenant struct{}
		l := limiter(t, 4, time.Second, ratelimit.Config{Cache: c})
		p := l.By(func(ctx context.Context) string { return ctx.Value(tenant{}).(string) }).Cost(2)
		as := func(who string) error {
			return p.Do(context.WithValue(t.Context(), tenant{}, who), func(context.Context) error { return nil })
		}
		for _, who := range []string{"a", "b"} {
			require.NoError(t, as(who))
			require.NoError(t, as(who))
			var exceeded *ratelimit.ExceededError
			require.ErrorAs(t, as(who), &exceeded)
			assert.Equal(t, who, exceeded.Key)
			assert.Equal(t, 2, exceeded.Cost)
		}
		require.Error(t, l.Acquire(t.Context(), "a"), "For, By and Acquire share the key")
		require.Error(t, l.For("b").Do(t.Context(), func(context.Context) error { return nil }))
	})
}

func TestHooksAreToldOncePerEventAndMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var l *ratelimit.Limiter
		look := func(ctx context.Context) {
			_, err := l.Remaining(ctx, "k") // under a lock this would never return
			assert.NoError(t, err)
		}
		l = limiter(t, 2, 10*time.Second, ratelimit.Config{
			Name:    "api",
			MaxWait: 10 * time.Second,
			OnRefuse: func(ctx context.Context, e *ratelimit.ExceededError) {
				look(ctx)
				told = append(told, e.Error())
			},
			OnWait: func(ctx context.Context, w ratelimit.Wait) {
				look(ctx)
				told = append(told, fmt.Sprintf("%+v", w))
			},
		})
		require.NoError(t, l.AcquireN(t.Context(), "k", 2))
		require.NoError(t, l.AcquireN(t.Context(), "k", 1))
		require.Error(t, l.AcquireN(t.Context(), "k", 3))
		assert.Equal(t, []string{"{Key:k Cost:1 For:10s}"}, told[:1])
		assert.Len(t, told, 2)
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
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	synctest.Test(t, func(t *testing.T) {
		ask := func(l *ratelimit.Limiter, i int) {
			if err := l.Acquire(t.Context(), "tenant/"+strconv.Itoa(i)); err != nil {
				require.FailNow(t, "a new key is refused", "%v", err)
			}
		}
		cfg := ratelimit.Config{MaxWait: time.Minute}
		base := heap()
		l := limiter(t, 10, window, cfg)
		for i := range inWindow {
			ask(l, i)
		}
		need := heap() - base
		require.NoError(t, l.Close())

		goroutines := runtime.NumGoroutine()
		base = heap()
		l = limiter(t, 10, window, cfg)
		most := int64(0)
		for i := range keys {
			ask(l, i)
			if i%batch == batch-1 {
				time.Sleep(duration / (keys / batch))
			}
			if i%(keys/40) == keys/40-1 {
				most = max(most, heap()-base)
			}
		}
		t.Logf("%d keys in a window need %d bytes; most held were %d", inWindow, need, most)
		assert.LessOrEqual(t, most, 4*need)
		assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "nothing runs in the background")
		runtime.KeepAlive(l)
	})
}
