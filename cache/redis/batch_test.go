package redis_test

import (
	"context"
	"errors"
	"strconv"
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

// A gate is a hook that counts single commands, batches of acquires, and the acquires in
// them, and holds up single commands while it is closed.
type gate struct {
	mu      sync.Mutex
	open    chan struct{}
	deaf    bool // whether it holds up without regard to the context
	held    atomic.Int64
	alone   atomic.Int64
	batches atomic.Int64
	batched atomic.Int64
	stop    chan struct{} // if not nil, holds up batches, without regard to the context
	stopped atomic.Int64
}

func (g *gate) shut(deaf bool) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := make(chan struct{})
	g.open, g.deaf = c, deaf
	return sync.OnceFunc(func() { close(c) })
}

func (g *gate) DialHook(next driver.DialHook) driver.DialHook { return next }

func (g *gate) ProcessHook(next driver.ProcessHook) driver.ProcessHook {
	return func(ctx context.Context, cmd driver.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		if n := acquires(cmd); n > 1 {
			g.batch(n)
			return next(ctx, cmd)
		}
		g.mu.Lock()
		open, deaf := g.open, g.deaf
		g.mu.Unlock()
		g.alone.Add(1)
		if open != nil {
			g.held.Add(1)
			done := ctx.Done()
			if deaf {
				done = nil
			}
			select {
			case <-open:
			case <-done:
				return ctx.Err()
			}
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next driver.ProcessPipelineHook) driver.ProcessPipelineHook {
	return func(ctx context.Context, cmds []driver.Cmder) error {
		n := 0
		for _, cmd := range cmds { // which may also be what is said first on a connection
			n += acquires(cmd)
		}
		if n > 0 {
			g.batch(n)
		}
		return next(ctx, cmds)
	}
}

func (g *gate) batch(n int) {
	g.batches.Add(1)
	g.batched.Add(int64(n))
	if g.stop != nil {
		g.stopped.Add(1)
		<-g.stop
	}
}

// acquires returns how many acquires a command does: after what they have in common, each
// has three arguments. No other script of one key has as many.
func acquires(cmd driver.Cmder) int {
	if args := cmd.Args(); len(args) >= 10 && args[2] == 1 {
		return (len(args) - 7) / 3
	}
	return 0
}

func gated(t *testing.T, addr string, timeout time.Duration) (*redis.Cache, *gate) {
	t.Helper()
	client := driver.NewClient(&driver.Options{Addr: addr, MinRetryBackoff: -1})
	t.Cleanup(func() { client.Close() })
	g := &gate{}
	client.AddHook(g)
	c, err := redis.New(client, redis.Config{Prefix: freshPrefix(), Timeout: timeout})
	require.NoError(t, err)
	warm(t, c)
	return c, g
}

// flights is how many acquires are on their way before the next ones gather.
const flights = 4

// gather has that many acquires held up by the gate, and as many others as asked for
// waiting behind them; the contexts are those of the latter.
func gather(t *testing.T, c *redis.Cache, g *gate, contexts []context.Context) (wait func() []error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, flights+len(contexts))
	acquire := func(i int, ctx context.Context) {
		_, errs[i] = c.Acquire(ctx, "k", unit(1000, time.Minute, 0))
	}
	before := g.held.Load()
	for i := range flights {
		all.Go(func() { acquire(i, bg) })
	}
	require.Eventually(t, func() bool { return g.held.Load() == before+flights }, 5*time.Second, time.Millisecond)
	for i, ctx := range contexts {
		all.Go(func() { acquire(flights+i, ctx) })
	}
	time.Sleep(50 * time.Millisecond) // they have no way to say that they wait
	return func() []error { all.Wait(); return errs }
}

func used(t *testing.T, c *redis.Cache) int64 {
	t.Helper()
	n, err := c.Used(bg, "k", time.Minute)
	require.NoError(t, err)
	return n
}

func TestALoneAcquireGoesAtOnceAndByItself(t *testing.T) {
	t.Parallel()
	c, g := gated(t, redistest.Start(t).Addr(), 5*time.Second)
	before := g.alone.Load()
	for range 5 {
		_, err := c.Acquire(bg, "k", unit(1000, time.Minute, 0))
		require.NoError(t, err)
	}
	require.EqualValues(t, before+5, g.alone.Load())
	require.Zero(t, g.batches.Load())
}

func TestAcquiresThatWaitGoTogetherAndWhoLeavesTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	c, g := gated(t, redistest.Start(t).Addr(), 10*time.Second)
	open := g.shut(false)
	cause := errors.New("the user left")
	leaving, leave := context.WithCancelCause(bg)
	contexts := []context.Context{leaving}
	for range 9 {
		contexts = append(contexts, bg)
	}
	wait := gather(t, c, g, contexts)
	leave(cause)
	time.Sleep(20 * time.Millisecond)
	open()
	for i, err := range wait() {
		if i == flights {
			require.ErrorIs(t, err, cause)
			continue
		}
		require.NoError(t, err)
	}
	require.EqualValues(t, flights+9, used(t, c), "who left before the start has taken no slot")
	require.EqualValues(t, 9, g.batched.Load())
	require.EqualValues(t, 1, g.batches.Load())
}

func TestABatchOfSeveralSeriesIsOneRoundTripAndTakesEachWhatItAskedFor(t *testing.T) {
	t.Parallel()
	c, g := gated(t, redistest.Start(t).Addr(), 10*time.Second)
	open := g.shut(false)
	wait := gather(t, c, g, nil)
	var all sync.WaitGroup
	var granted [3]atomic.Int64
	for i := range 30 {
		all.Go(func() {
			key, limit := i%3, int64(4+i%3) // of 10 that ask
			grant, err := c.Acquire(bg, strconv.Itoa(key), unit(limit, time.Minute, 0))
			assert.NoError(t, err)
			if grant.OK {
				granted[key].Add(1)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	open()
	wait()
	all.Wait()
	for key := range granted {
		require.EqualValues(t, 4+key, granted[key].Load())
	}
	require.EqualValues(t, 1, g.batches.Load())
	require.EqualValues(t, 30, g.batched.Load())
}

func TestWhatIsWrongWithASeriesIsToldToAllWhoAskedForItAndToNobodyElse(t *testing.T) {
	t.Parallel()
	for what, plant := range map[string][]string{
		"another type": {"SET", "", "v"},
		"no hit":       {"ZADD", "", "1", "what is this"},
	} {
		t.Run(what, func(t *testing.T) {
			s := redistest.Start(t)
			c, g := gated(t, s.Addr(), 10*time.Second)
			for _, key := range []string{"good", "bad"} {
				_, err := c.Acquire(bg, key, unit(1000, time.Minute, 0))
				require.NoError(t, err)
			}
			plant[1] = seriesOf(s, "bad")
			s.Do("DEL", plant[1])
			s.Do(plant...)
			open := g.shut(false)
			wait := gather(t, c, g, nil)
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					key := []string{"good", "bad"}[i%2]
					grant, err := c.Acquire(bg, key, unit(1000, time.Minute, 0))
					if key == "good" {
						assert.NoError(t, err)
						assert.True(t, grant.OK)
						return
					}
					var corrupt *cache.CorruptError
					if assert.ErrorAs(t, err, &corrupt) {
						assert.Equal(t, "bad", corrupt.Key)
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			open()
			wait()
			all.Wait()
			require.EqualValues(t, 10, g.batched.Load())
		})
	}
}

func TestABatchThatTheServerHasNoMemoryForTakesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, g := gated(t, s.Addr(), 10*time.Second)
	open := g.shut(false)
	contexts := make([]context.Context, 20)
	for i := range contexts {
		contexts[i] = bg
	}
	wait := gather(t, c, g, contexts)
	s.Do("CONFIG", "SET", "maxmemory", "1")
	open()
	for _, err := range wait() {
		var away *cache.UnavailableError
		require.ErrorAs(t, err, &away)
		require.ErrorContains(t, err, "OOM")
	}
	require.EqualValues(t, 20, g.batched.Load())
	require.Zero(t, used(t, c))
}

func TestABatchWhoseScriptWasForgottenIsSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, g := gated(t, s.Addr(), 10*time.Second)
	open := g.shut(false)
	wait := gather(t, c, g, []context.Context{bg, bg, bg, bg, bg})
	s.Do("SCRIPT", "FLUSH")
	open()
	for _, err := range wait() {
		require.NoError(t, err)
	}
	require.EqualValues(t, flights+5, used(t, c))
}

func TestABatchWhoseRepliesAreLostIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s)
	c, g := gated(t, p.Addr(), 10*time.Second)
	open := g.shut(false)
	wait := gather(t, c, g, []context.Context{bg, bg, bg, bg, bg})
	p.Drop(func(n int) bool { return n < 6 })
	open()
	for _, err := range wait() {
		var away *cache.UnavailableError
		if err != nil {
			require.ErrorAs(t, err, &away)
		}
	}
	require.Greater(t, p.Replies(), 6)
	require.EqualValues(t, flights+5, used(t, c))
}

func TestAnOutageIsToldToEveryoneOfABatch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, g := gated(t, s.Addr(), 200*time.Millisecond)
	open := g.shut(false)
	wait := gather(t, c, g, []context.Context{bg, bg, bg, bg, bg})
	s.Kill()
	start := time.Now()
	open()
	for _, err := range wait() {
		var away *cache.UnavailableError
		require.ErrorAs(t, err, &away)
	}
	require.Less(t, time.Since(start), 200*time.Millisecond+slack)
}

func TestAcquiresThatHangHoldUpNobodyForLong(t *testing.T) {
	t.Parallel()
	c, g := gated(t, redistest.Start(t).Addr(), 100*time.Millisecond)
	open := g.shut(true)
	defer open()
	wait := gather(t, c, g, []context.Context{bg, bg, bg})
	for i, err := range wait() {
		var away *cache.UnavailableError
		if i < flights {
			require.ErrorAs(t, err, &away)
		}
	}
	g.mu.Lock()
	g.open = nil // those that hang go on hanging
	g.mu.Unlock()
	require.Eventually(t, func() bool {
		_, err := c.Acquire(bg, "k", unit(1000, time.Minute, 0))
		return err == nil
	}, time.Second, time.Millisecond)
}

// Their time runs from when they asked, and not from when they were sent.
func TestWhoWaitsForAFlightIsToldWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	c, g := gated(t, redistest.Start(t).Addr(), timeout)
	stop := make(chan struct{})
	defer close(stop)
	g.stop = stop
	open := g.shut(true)
	defer open()
	start := time.Now()
	wait := gather(t, c, g, []context.Context{bg, bg, bg})
	for _, err := range wait() {
		var away *cache.UnavailableError
		require.ErrorAs(t, err, &away)
		require.ErrorContains(t, err, "no answer within 300ms")
	}
	require.Less(t, time.Since(start), timeout+slack)
}

func TestBatchesThatHangHoldUpNobodyForLong(t *testing.T) {
	t.Parallel()
	c, g := gated(t, redistest.Start(t).Addr(), 100*time.Millisecond)
	stop := make(chan struct{})
	defer close(stop)
	g.stop = stop
	for start := time.Now(); g.stopped.Load() < flights; {
		require.Less(t, time.Since(start), 10*time.Second)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, err := c.Acquire(bg, "k", unit(1000, time.Minute, 0))
				var away *cache.UnavailableError
				assert.True(t, err == nil || errors.As(err, &away), "%v", err)
			})
		}
		all.Wait()
	}
	require.Eventually(t, func() bool {
		_, err := c.Acquire(bg, "k", unit(1000, time.Minute, 0))
		return err == nil
	}, 2*time.Second, time.Millisecond)
}

func TestManyAcquiresTakeFewRoundTripsAndStayExact(t *testing.T) {
	t.Parallel()
	c, g := gated(t, redistest.Start(t).Addr(), 10*time.Second)
	var all sync.WaitGroup
	var granted atomic.Int64
	for range 64 {
		all.Go(func() {
			for range 20 {
				grant, err := c.Acquire(bg, "k", unit(100, time.Minute, 0))
				assert.NoError(t, err)
				if grant.OK {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 100, granted.Load())
	trips := g.alone.Load() + g.batches.Load()
	t.Logf("%d round trips", trips)
	require.Less(t, trips, int64(64*20/2))
}

func TestASlotThatComesWhenTheCallerHasGoneIsGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	warm(t, c)
	s.Pause()
	var all sync.WaitGroup
	for range 20 { // some go alone, some together
		all.Go(func() {
			ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
			defer cancel()
			_, err := c.Acquire(ctx, "k", unit(1000, time.Minute, time.Minute))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
	all.Wait()
	s.Resume()
	for start := time.Now(); used(t, c) > 0 || s.Calls("zadd") < 5; time.Sleep(5 * time.Millisecond) {
		require.Less(t, time.Since(start), 3*time.Second, "%d hits are left", used(t, c))
	}
}

// One after the other, those of a large batch would take as long as they are many.
func TestSlotsOfABatchThatComeTooLateAreGivenBackTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s)
	c := open(t, "redis://"+p.Addr())
	warm(t, c)
	const late, delay = 100, 100 * time.Millisecond
	p.Delay(delay)
	var all sync.WaitGroup
	for _, script := range []string{"known", "forgotten"} {
		before := s.Calls("zadd")
		for i := range late {
			all.Go(func() {
				if i >= flights {
					time.Sleep(delay / 4)
				}
				ctx, cancel := context.WithTimeout(bg, delay+delay/2)
				defer cancel()
				_, _ = c.Acquire(ctx, "k"+script, unit(1000, time.Minute, time.Minute))
			})
		}
		time.Sleep(delay)
		if script == "forgotten" {
			s.Do("SCRIPT", "FLUSH")
		}
		all.Wait()
		for start := time.Now(); ; time.Sleep(delay / 10) {
			// Those of the first flights were in time, and have been used.
			if s.Calls("zadd")-before > flights && s.Do("ZCARD", seriesOf(s, "k"+script)).(int64) <= flights {
				break
			}
			require.Less(t, time.Since(start), 20*delay, "%s", script)
		}
	}
}

// seriesOf returns the server's key of a series.
func seriesOf(s *redistest.Server, key string) string {
	for _, k := range keys(s) {
		if strings.HasSuffix(k, "{"+key+"}:h") {
			return k
		}
	}
	return "none"
}
