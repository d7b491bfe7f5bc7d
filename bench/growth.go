package bench

import (
	"context"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	rediscache "github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// A Growth is how the cost of a call grows with something.
type Growth struct {
	Name  string // of the curve
	With  string // what grows
	Sizes []int
	Redis bool
	Make  func(tb testing.TB, server *Server, size int) Work
}

// Growths returns all of them, each of ours alone.
func Growths() []Growth {
	hundreds := []int{10, 100, 1_000, 10_000, 100_000, 1_000_000}
	waiters := []int{1, 10, 100, 1_000, 10_000, 100_000}
	list := []Growth{
		{Name: "keys, admitted", With: "keys", Sizes: append([]int{1}, hundreds...),
			Make: func(tb testing.TB, _ *Server, size int) Work { return inTurn(ourTaker(tb, ampleFor(size)), size) }},
		{Name: "keys, each forgotten between two calls", With: "keys", Sizes: append([]int{1}, hundreds...), Make: comeAndGo},
		{Name: "window empty, admitted and given back", With: "limit", Sizes: hundreds, Make: emptyWindow},
		{Name: "window full, refused", With: "limit", Sizes: hundreds,
			Make: func(_ testing.TB, _ *Server, size int) Work { return fullWindow(memory.New(), size, 0) }},
		{Name: "window full, waits and gives up", With: "limit", Sizes: hundreds,
			Make: func(_ testing.TB, _ *Server, size int) Work { return fullWindow(memory.New(), size, 2*time.Hour) }},
		{Name: "one more waits and gives up", With: "waiters", Sizes: waiters, Make: oneMoreWaiter},
		{Name: "breakers on one cache, closed", With: "breakers", Sizes: waiters[:5],
			Make: func(_ testing.TB, _ *Server, size int) Work { return manyBreakers(memory.New(), size) }},
	}
	list = append(list, Growth{Name: "100 keys, admitted, after so many windows", With: "windows gone by",
		Sizes: []int{1, 10, 100, 1_000, 3_600}, Make: longTraffic})
	for _, g := range list[2:5] {
		g.Name, g.Redis = "Redis, "+g.Name, true
		switch g.Name {
		case "Redis, window empty, admitted and given back":
			g.Name, g.Make = "Redis, window empty, admitted", emptySharedWindow
		case "Redis, window full, refused":
			g.Make = func(tb testing.TB, s *Server, size int) Work { return fullWindow(sharedCache(tb, s), size, 0) }
		default:
			g.Make = func(tb testing.TB, s *Server, size int) Work {
				return fullWindow(sharedCache(tb, s), size, 2*time.Hour)
			}
		}
		list = append(list, g)
	}
	list = append(list, Growth{Name: "Redis, breakers on one cache, closed", With: "breakers", Sizes: waiters[:5], Redis: true,
		Make: func(tb testing.TB, s *Server, size int) Work { return manyBreakers(sharedCache(tb, s), size) }})
	return list
}

// Crowd returns limiters in the memory of the process who ask so many keys in turn: ours
// first.
func Crowd(keys int) []Entrant {
	a := ampleFor(keys)
	of := func(name string, make func(tb testing.TB, a allowance) taker) Entrant {
		return Entrant{name, func(tb testing.TB, _ *Server) Work { return inTurn(make(tb, a), keys) }}
	}
	return []Entrant{
		of("ours", ourTaker),
		of("x/time/rate", func(_ testing.TB, a allowance) taker { return rateTaker(a) }),
		of("throttled", func(_ testing.TB, a allowance) taker { return throttledTaker(a) }),
		of("go-limiter", goLimiterTaker),
		of("ulule", func(_ testing.TB, a allowance) taker { return ululeTaker(a) }),
	}
}

// SharedCrowd returns limiters that share one key over Redis: ours first. throttled is not
// among them, since it fails when several want one key, nor is ours in a way that is worse.
func SharedCrowd() (list []Entrant) {
	for _, e := range redisLimiters(ampleShared, true, "crowd") {
		if e.Name != "throttled" && e.Name != "ours, AutoPipeline" {
			list = append(list, e)
		}
	}
	return list
}

// inTurn asks all keys in turn. Each batch goes on where the last one stopped.
func inTurn(take taker, keys int) Work {
	names := Names(keys)
	for range 2 {
		for _, name := range names {
			take(name)
		}
	}
	var next atomic.Int64
	return func(n int) (right int) {
		at := int((next.Add(int64(n)) - int64(n)) % int64(keys))
		for range n {
			if take(names[at]) {
				right++
			}
			if at++; at == keys {
				at = 0
			}
		}
		return right
	}
}

// hour is a window that nothing leaves, so that a limit of n is full after n hits.
func hour(limit int) cache.Request {
	return cache.Request{Limit: int64(limit), Window: time.Hour, Weight: 1}
}

// emptyWindow asks for the first hit of keys with such a limit, each of which it
// forgets again.
func emptyWindow(_ testing.TB, _ *Server, limit int) Work {
	c, ctx := memory.New(), context.Background()
	return func(n int) (right int) {
		for range n {
			g, err := c.Acquire(ctx, "k", hour(limit))
			if err == nil && g.OK {
				right++
			}
			check(c.GiveBack(ctx, "k", g.Slot))
		}
		return right
	}
}

func emptySharedWindow(tb testing.TB, server *Server, limit int) Work {
	c, ctx, name := sharedCache(tb, server), context.Background(), freshName()
	var next atomic.Int64
	return func(n int) (right int) {
		for range n {
			g, err := c.Acquire(ctx, name+strconv.FormatInt(next.Add(1), 10), hour(limit))
			if err == nil && g.OK {
				right++
			}
		}
		return right
	}
}

// acquiring is a cache that can do what ours can.
type acquiring interface {
	cache.Cache
	cache.Acquirer
}

func sharedCache(tb testing.TB, server *Server) acquiring {
	c := must(rediscache.New(NewClient(tb, server), rediscache.Config{Prefix: freshName() + ":", Timeout: time.Minute}))
	tb.Cleanup(func() { c.Close() })
	return c
}

// fullWindow fills a window. Each further call is refused, or, with a wait, takes a slot
// of the future and gives it back.
func fullWindow(c acquiring, limit int, wait time.Duration) Work {
	ctx := context.Background()
	fill(c, limit)
	ask := hour(limit)
	ask.MaxWait = wait
	return func(n int) (right int) {
		for range n {
			g, err := c.Acquire(ctx, "k", ask)
			if err == nil && g.OK == (wait > 0) {
				right++
			}
			if g.OK {
				check(c.GiveBack(ctx, "k", g.Slot))
			}
		}
		return right
	}
}

// fill puts so many hits into the window of "k", with many callers, since a server may
// be far away.
func fill(c acquiring, hits int) {
	var left atomic.Int64
	left.Store(int64(hits))
	var wg sync.WaitGroup
	for range Callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				must(c.Acquire(context.Background(), "k", hour(math.MaxInt32)))
			}
		})
	}
	wg.Wait()
}

// oneMoreWaiter has so many wait for a slot, in this process, and then one more, who
// gives up at once.
func oneMoreWaiter(tb testing.TB, _ *Server, waiters int) Work {
	var waiting atomic.Int64
	l := must(ratelimit.New(1, time.Minute, ratelimit.Config{
		MaxWait: math.MaxInt64,
		OnWait: func(ctx context.Context, _ ratelimit.Wait) {
			waiting.Add(1)
			if give, ok := ctx.Value(giveUp{}).(func()); ok {
				give()
			}
		},
	}))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	tb.Cleanup(func() { cancel(); wg.Wait(); l.Close() })
	check(l.Acquire(ctx, "k"))
	for range waiters {
		wg.Go(func() { _ = l.Acquire(ctx, "k") })
	}
	for waiting.Load() < int64(waiters) {
		time.Sleep(time.Millisecond)
	}
	return func(n int) (right int) {
		for range n {
			ctx, cancel := context.WithCancel(context.Background())
			if l.Acquire(context.WithValue(ctx, giveUp{}, func() { cancel() }), "k") != nil {
				right++
			}
			cancel()
		}
		return right
	}
}

type giveUp struct{}

// comeAndGo asks keys in turn whose windows are over by the time that it is their turn
// again, so that each is made anew, and another one reclaimed.
func comeAndGo(tb testing.TB, _ *Server, keys int) Work {
	window := max(time.Microsecond, time.Duration(keys)*20*time.Nanosecond)
	return inTurn(ourTaker(tb, allowance{1_000_000, window}), keys)
}

// longTraffic has traffic for so many windows, of a millisecond each: 3,600 of them are to
// those what an hour is to windows of a second.
func longTraffic(tb testing.TB, _ *Server, windows int) Work {
	work := inTurn(ourTaker(tb, ample), 100)
	for end := time.Now().Add(time.Duration(windows) * ample.window); time.Now().Before(end); {
		work(100)
	}
	return work
}

// manyBreakers calls through so many circuits on one cache in turn.
func manyBreakers(c cache.KeyValue, size int) Work {
	circuits := make([]*breaker.Breaker, size)
	for i := range circuits {
		circuits[i] = must(breaker.New(breaker.Config{Name: strconv.Itoa(i), Cache: c}))
	}
	ctx := context.Background()
	op := func(context.Context) error { return nil }
	for _, circuit := range circuits {
		check(circuit.Do(ctx, op)) // knows its state from then on
	}
	var next atomic.Int64
	return func(n int) (right int) {
		at := int((next.Add(int64(n)) - int64(n)) % int64(size))
		for range n {
			if circuits[at].Do(ctx, op) == nil {
				right++
			}
			if at++; at == size {
				at = 0
			}
		}
		return right
	}
}

// MeasureGrowth returns the ns per call at each size: medians of a few turns.
func MeasureGrowth(tb testing.TB, g Growth, server *Server, o Options) []float64 {
	list := make([]float64, len(g.Sizes))
	for i, size := range g.Sizes {
		e := Entrant{g.Name, func(tb testing.TB, s *Server) Work { return g.Make(tb, s, size) }}
		list[i] = Median(MeasureAt(tb, []Entrant{e}, 1, server, o)[0])
	}
	return list
}

// MeasureAt returns the ns per call of each entrant in each run, with so many callers.
func MeasureAt(tb testing.TB, entrants []Entrant, callers int, server *Server, o Options) [][]float64 {
	var works []Work
	for _, e := range entrants {
		works = append(works, e.Make(tb, server))
	}
	var list [][]float64
	for i, t := range turns(works, callers, o) {
		if t.wrong > 0.01 {
			tb.Fatalf("%s with %d callers: %.1f %% of the results were wrong", entrants[i].Name, callers, 100*t.wrong)
		}
		list = append(list, t.times)
	}
	return list
}
