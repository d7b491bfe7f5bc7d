package redis_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// operations are all there are, by name.
func operations(c *redis.Cache) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"get":       func(ctx context.Context) error { _, _, err := c.Get(ctx, "k"); return err },
		"set":       func(ctx context.Context) error { return c.Set(ctx, "k", "v", time.Minute) },
		"increment": func(ctx context.Context) error { _, err := c.Increment(ctx, "n", time.Minute); return err },
		"delete":    func(ctx context.Context) error { return c.Delete(ctx, "k") },
		"compare and swap": func(ctx context.Context) error {
			_, err := c.CompareAndSwap(ctx, "k", cache.Absent(), cache.Present("v"), time.Minute)
			return err
		},
		"get many":   func(ctx context.Context) error { return c.GetMany(ctx, []string{"k"}, make([]cache.Entry, 1)) },
		"record hit": func(ctx context.Context) error { return c.RecordHit(ctx, "k", time.Now(), time.Minute) },
		"count hits": func(ctx context.Context) error { _, err := c.CountHits(ctx, "k", time.Now()); return err },
		"oldest hit": func(ctx context.Context) error { _, _, err := c.OldestHit(ctx, "k", time.Now()); return err },
		"acquire": func(ctx context.Context) error {
			_, err := c.Acquire(ctx, "k", unit(1, time.Minute, time.Second))
			return err
		},
		"give back": func(ctx context.Context) error { return c.GiveBack(ctx, "k", cache.Slot{At: 1, ID: 1}) },
		"used":      func(ctx context.Context) error { _, err := c.Used(ctx, "k", time.Minute); return err },
	}
}

// wantAway asserts that every operation says in time that the store is away.
func wantAway(t *testing.T, c *redis.Cache, within time.Duration) {
	t.Helper()
	for op, run := range operations(c) {
		start := time.Now()
		err := run(bg)
		took := time.Since(start)
		var away *cache.UnavailableError
		if assert.ErrorAs(t, err, &away, op) {
			assert.Equal(t, op, away.Op)
			assert.NotErrorIs(t, err, driver.Nil)
		}
		assert.Less(t, took, within, op)
	}
}

// slack is what a busy machine may add to a time limit. What ignores the limit takes
// seconds.
const slack = 500 * time.Millisecond

func TestEveryOperationSaysThatNobodyListens(t *testing.T) {
	t.Parallel()
	c, err := redis.Open("redis://127.0.0.1:1", redis.Config{})
	require.NoError(t, err, "opening needs no server")
	defer c.Close()
	wantAway(t, c, 250*time.Millisecond+slack)
}

func TestNoOperationOutlastsTheTimeoutOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	owned, err := redis.Open(s.URL(), redis.Config{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	defer owned.Close()
	// By default a client of the driver ignores contexts, and waits for 5 s.
	client := driver.NewClient(&driver.Options{Addr: s.Addr()})
	defer client.Close()
	borrowed, err := redis.New(client, redis.Config{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	for _, c := range []*redis.Cache{owned, borrowed} {
		_, _, err := c.Get(bg, "k")
		require.NoError(t, err)
		s.Pause()
		wantAway(t, c, 50*time.Millisecond+slack)
		s.Resume()
		require.Eventually(t, func() bool { _, _, err := c.Get(bg, "k"); return err == nil }, 2*time.Second, time.Millisecond)
	}
}

// The timeout is an answer to errors.As for a net.Error, and no deadline of the caller's.
func TestTimeoutIsNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	defer s.Resume()
	c, err := redis.Open(s.URL(), redis.Config{Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	_, _, err = c.Get(ctx, "k")
	var away *cache.UnavailableError
	require.ErrorAs(t, err, &away)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestNoOperationOutlastsItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	cause := errors.New("the user left")
	ignores := driver.NewClient(&driver.Options{Addr: s.Addr(), PoolSize: 2, MaxActiveConns: 2})
	defer ignores.Close()
	minds := driver.NewClient(&driver.Options{Addr: s.Addr(), PoolSize: 2, MaxActiveConns: 2, ContextTimeoutEnabled: true})
	defer minds.Close()
	for name, client := range map[string]*driver.Client{"ignores contexts": ignores, "minds contexts": minds} {
		t.Run(name, func(t *testing.T) {
			c, err := redis.New(client, redis.Config{Timeout: 10 * time.Second})
			require.NoError(t, err)
			warm(t, c)
			s.Pause()
			resume := sync.OnceFunc(s.Resume)
			defer resume()
			for range 20 {
				ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
				start := time.Now()
				_, err := c.Acquire(ctx, "k", unit(1000, time.Minute, 0))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var away *cache.UnavailableError
				require.False(t, errors.As(err, &away))
				require.Less(t, time.Since(start), 50*time.Millisecond+slack)
				cancel()
			}
			ctx, cancel := context.WithCancelCause(bg)
			time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
			start := time.Now()
			_, err = c.Acquire(ctx, "k", unit(1000, time.Minute, 0))
			require.ErrorIs(t, err, cause)
			require.Less(t, time.Since(start), 20*time.Millisecond+slack)
			resume()
			for range 20 {
				_, err := c.Acquire(bg, "k", unit(1000, time.Minute, 0))
				require.NoError(t, err)
			}
			require.LessOrEqual(t, client.PoolStats().TotalConns, uint32(2))
		})
	}
}

func TestContextThatIsDoneSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	warm(t, c)
	cause := errors.New("never mind")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	before := s.Stats("total_commands_processed")
	for op, run := range operations(c) {
		require.ErrorIs(t, run(ctx), cause, op)
	}
	require.EqualValues(t, before+1, s.Stats("total_commands_processed"), "all but this one")
}

// Whoever waits for a connection in vain has learnt nothing about the limit.
func TestExhaustedPoolIsAnOutageAndPasses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := driver.NewClient(&driver.Options{Addr: s.Addr(), PoolSize: 5, MaxActiveConns: 5})
	defer client.Close()
	c, err := redis.New(client, redis.Config{})
	require.NoError(t, err)
	warm(t, c)
	s.Pause()
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := c.Acquire(ctx, "k", unit(1, time.Minute, 0))
			var away *cache.UnavailableError
			assert.True(t, errors.As(err, &away) || errors.Is(err, context.DeadlineExceeded), "%v", err)
			assert.Less(t, time.Since(start), 300*time.Millisecond+2*slack)
		})
	}
	all.Wait()
	s.Resume()
	s.Kill()
	time.Sleep(300 * time.Millisecond)
	s.Restart()
	require.Eventually(t, func() bool { _, _, err := c.Get(bg, "k"); return err == nil }, time.Second, time.Millisecond)
}

// A server that is slow is no limit that is reached, and holds nobody for longer than they
// have.
func TestASlowServerIsAnOutageForThoseWhoHaveNoTimeAndPasses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s)
	client := driver.NewClient(&driver.Options{Addr: p.Addr(), PoolSize: 5})
	defer client.Close()
	c, err := redis.New(client, redis.Config{Timeout: 250 * time.Millisecond})
	require.NoError(t, err)
	warm(t, c)
	p.Delay(100 * time.Millisecond)
	var all sync.WaitGroup
	var granted, away atomic.Int64
	for range 500 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			g, err := c.Acquire(ctx, "k", unit(1000, time.Minute, 0))
			assert.Less(t, time.Since(start), 300*time.Millisecond+slack)
			var outage *cache.UnavailableError
			switch {
			case err == nil:
				assert.True(t, g.OK, "the limit is twice as high")
				granted.Add(1)
			case errors.As(err, &outage) || errors.Is(err, context.DeadlineExceeded):
				away.Add(1)
			default:
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	t.Logf("%d granted, %d away", granted.Load(), away.Load())
	p.Delay(0)
	start := time.Now()
	require.Eventually(t, func() bool { _, _, err := c.Get(bg, "k"); return err == nil }, time.Second, time.Millisecond)
	require.Less(t, time.Since(start), time.Second)
	time.Sleep(2 * slack) // what came too late is given back
	used, err := c.Used(bg, "k", time.Minute)
	require.NoError(t, err)
	require.GreaterOrEqual(t, used, granted.Load(), "who was admitted is counted")
	t.Logf("%d used", used)
}

// A thousand operations that the client does not give up must not become ten thousand.
func TestAbandonedOperationsAreBounded(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	var under, most atomic.Int64
	client := driver.NewClient(&driver.Options{
		Addr: "127.0.0.1:1", MaxRetries: -1, PoolSize: 5000, DialerRetries: 1,
	})
	client.AddHook(hook(func(ctx context.Context, cmd driver.Cmder, next driver.ProcessHook) error {
		most.Store(max(most.Load(), under.Add(1)))
		defer under.Add(-1)
		<-stuck // whatever the context says
		return net.ErrClosed
	}))
	defer client.Close()
	c, err := redis.New(client, redis.Config{Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	var all sync.WaitGroup
	start := time.Now()
	for range 3000 {
		all.Go(func() {
			_, _, err := c.Get(bg, "k")
			var away *cache.UnavailableError
			assert.ErrorAs(t, err, &away)
		})
	}
	all.Wait()
	assert.Less(t, time.Since(start), 100*time.Millisecond+4*slack)
	assert.LessOrEqual(t, most.Load(), int64(1024))
	close(stuck)
	require.Eventually(t, func() bool { return under.Load() == 0 }, time.Second, time.Millisecond)
}

type hook func(ctx context.Context, cmd driver.Cmder, next driver.ProcessHook) error

func (h hook) DialHook(next driver.DialHook) driver.DialHook { return next }
func (h hook) ProcessHook(next driver.ProcessHook) driver.ProcessHook {
	return func(ctx context.Context, cmd driver.Cmder) error { return h(ctx, cmd, next) }
}
func (h hook) ProcessPipelineHook(next driver.ProcessPipelineHook) driver.ProcessPipelineHook {
	return next
}

func TestNothingIsLeftAfterAnOutage(t *testing.T) {
	s := redistest.Start(t)
	before := runtime.NumGoroutine()
	const read = 300 * time.Millisecond
	client := driver.NewClient(&driver.Options{
		Addr: s.Addr(), PoolSize: 4, ReadTimeout: read, WriteTimeout: read, DialTimeout: read,
	})
	c, err := redis.New(client, redis.Config{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	warm(t, c)
	s.Pause()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			_, err := c.Acquire(bg, "k", unit(1, time.Minute, 0))
			assert.Error(t, err)
		})
	}
	all.Wait()
	time.Sleep(read + 300*time.Millisecond)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	assert.Zero(t, strings.Count(string(stacks), "redis.(*Cache)"), "%s", stacks)
	s.Resume()
	for range 20 {
		_, err := c.Acquire(bg, "k", unit(1000, time.Minute, 0))
		require.NoError(t, err)
	}
	o, stats := client.Options(), client.PoolStats()
	assert.LessOrEqual(t, int(stats.TotalConns), o.PoolSize)
	// The one that asks is of the test, and batches have a pool of their own.
	assert.Eventually(t, func() bool {
		return s.Stats("connected_clients") <= int64(1+o.PoolSize+max(o.PipelinePoolSize, driver.DefaultPipelinePoolSize))
	}, 2*time.Second, 10*time.Millisecond)
	require.NoError(t, client.Close())
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 6*time.Second, 10*time.Millisecond)
	assert.Eventually(t, func() bool { return s.Stats("connected_clients") == 1 }, 2*time.Second, 10*time.Millisecond)
}

func TestReplicaIsAnOutageUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t), redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	c := open(t, replica.URL())
	_, _, err := c.Get(bg, "k")
	require.NoError(t, err)
	replica.Do("REPLICAOF", host, port)
	short, err := redis.Open(replica.URL(), redis.Config{})
	require.NoError(t, err)
	defer short.Close()
	for op, run := range operations(short) {
		switch op {
		case "get", "get many", "oldest hit", "used", "give back", "count hits": // read, or find nothing to write
			continue
		}
		var away *cache.UnavailableError
		require.ErrorAs(t, run(bg), &away, op)
	}
	replica.Do("REPLICAOF", "NO", "ONE")
	for op, run := range operations(short) {
		require.NoError(t, run(bg), op)
	}
}

func TestServerOutOfMemoryIsAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	c := open(t, s.URL())
	var away *cache.UnavailableError
	require.ErrorAs(t, c.Set(bg, "k", "v", 0), &away)
	require.Contains(t, away.Error(), "OOM")
	_, err := c.Acquire(bg, "k", unit(1, time.Minute, 0))
	require.ErrorAs(t, err, &away)
}

func TestAClosedCacheSaysSo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	owned, err := redis.Open(s.URL(), redis.Config{})
	require.NoError(t, err)
	client := driver.NewClient(&driver.Options{Addr: s.Addr()})
	defer client.Close()
	borrowed, err := redis.New(client, redis.Config{})
	require.NoError(t, err)
	for _, c := range []*redis.Cache{owned, borrowed} {
		warm(t, c)
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "closing twice is safe")
		for op, run := range operations(c) {
			require.ErrorIs(t, run(bg), cache.ErrClosed, op)
		}
	}
	require.NoError(t, client.Ping(bg).Err(), "what was borrowed is not closed")
}

// A client that its owner has closed is a store that is away.
func TestABorrowedClientThatIsClosedIsAnOutage(t *testing.T) {
	t.Parallel()
	client := driver.NewClient(&driver.Options{Addr: "127.0.0.1:1"})
	c, err := redis.New(client, redis.Config{})
	require.NoError(t, err)
	require.NoError(t, client.Close())
	wantAway(t, c, 250*time.Millisecond+slack)
}

func TestClosingInTheMiddleOfTraffic(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for {
				_, err := c.Acquire(bg, "k", unit(1, time.Minute, 0))
				if err == nil {
					continue
				}
				var away *cache.UnavailableError
				assert.True(t, errors.Is(err, cache.ErrClosed) || errors.As(err, &away), "%v", err)
				if errors.Is(err, cache.ErrClosed) {
					return
				}
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, c.Close())
	all.Wait()
}
