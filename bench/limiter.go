package bench

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	failsafelimiter "github.com/failsafe-go/failsafe-go/ratelimiter"
	golimiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/resilience-toolkit/resilience/ratelimit"
)

// An allowance is a limit per window, the same for everybody. Where every call is to be
// admitted it is one that no machine can use up.
type allowance struct {
	limit  int
	window time.Duration
}

var (
	// Ten nanoseconds each is the most that a generic cell rate in whole nanoseconds can
	// express usefully.
	ample = allowance{100_000, time.Millisecond}
	used  = allowance{1, time.Hour}
)

// ampleFor returns one for keys that are asked in turn, with a window that is wide enough
// for each of them to have some hits in it all the time, as keys in use have: ten or so
// when somebody else has a turn as well.
func ampleFor(keys int) allowance {
	window := max(ample.window, time.Duration(keys)*10*time.Microsecond)
	return allowance{int(window / 10), window}
}

func (a allowance) rate() rate.Limit { return rate.Limit(float64(a.limit) / a.window.Seconds()) }

func limiterContests() []Contest {
	notes := "Ours is exact in every window; with a limit of 50, the others admit from 59 to 100 in some window (TestTheMostThatAnyWindowHolds). " +
		"x/time/rate, failsafe-go and uber keep one allowance, so a map under a sync.RWMutex finds it by key. " +
		"uber's only waits, so it cannot refuse."
	return []Contest{
		{
			Name: "Limiter/one key, admitted", Notes: notes,
			Goal:     Goal{Text: "not slower than x/time/rate behind a map, 0 allocations", Rivals: []string{"x/time/rate"}, Ratio: 1},
			Entrants: limiterEntrants(ample, 1, true, true),
		},
		{
			Name: "Limiter/10,000 keys, admitted", Notes: notes,
			Goal:     Goal{Text: "not slower than x/time/rate behind a map, 0 allocations", Rivals: []string{"x/time/rate"}, Ratio: 1},
			Entrants: limiterEntrants(ampleFor(10_000), 10_000, true, true),
		},
		{
			Name: "Limiter/one key, refused", Notes: notes,
			Goal:     Goal{Text: "not slower than x/time/rate behind a map, at most 1 allocation", Rivals: []string{"x/time/rate"}, Ratio: 1, Allocs: 1},
			Entrants: limiterEntrants(used, 1, false, false),
		},
	}
}

// A taker takes one hit of a key's allowance, or is refused.
type taker func(key string) bool

// limiterEntrants asks the keys in turn. Each goroutine begins at another one.
func limiterEntrants(a allowance, keys int, admitted, uberToo bool) []Entrant {
	names := Names(keys)
	var start atomic.Int64
	work := func(take taker) Work {
		if !admitted { // use it up
			for _, name := range names {
				take(name)
			}
		}
		if keys == 1 {
			name := names[0]
			return func(n int) (right int) {
				for range n {
					if take(name) == admitted {
						right++
					}
				}
				return right
			}
		}
		for range 3 { // as in use
			for _, name := range names {
				take(name)
			}
		}
		return func(n int) (right int) {
			at := int(start.Add(7919)) % keys
			for range n {
				if take(names[at]) == admitted {
					right++
				}
				if at++; at == keys {
					at = 0
				}
			}
			return right
		}
	}
	list := []Entrant{
		{"ours", func(tb testing.TB, _ *Server) Work { return work(ourTaker(tb, a)) }},
		{"x/time/rate", func(testing.TB, *Server) Work { return work(rateTaker(a)) }},
		{"failsafe-go bursty", func(testing.TB, *Server) Work {
			m := newKeyed(func() failsafelimiter.RateLimiter[int] {
				return failsafelimiter.NewBursty[int](uint(a.limit), a.window)
			})
			return work(func(key string) bool { return m.get(key).TryAcquirePermit() })
		}},
		{"go-limiter", func(tb testing.TB, _ *Server) Work { return work(goLimiterTaker(tb, a)) }},
		{"throttled", func(testing.TB, *Server) Work { return work(throttledTaker(a)) }},
		{"ulule", func(testing.TB, *Server) Work { return work(ululeTaker(a)) }},
	}
	if uberToo {
		list = append(list, Entrant{"uber", func(testing.TB, *Server) Work {
			m := newKeyed(func() uber.Limiter { return uber.New(a.limit, uber.Per(a.window)) })
			return work(func(key string) bool { m.get(key).Take(); return true })
		}})
	}
	return list
}

func ourTaker(tb testing.TB, a allowance) taker {
	l := must(ratelimit.New(a.limit, a.window, ratelimit.Config{}))
	tb.Cleanup(func() { l.Close() })
	ctx := context.Background()
	return func(key string) bool { return l.Acquire(ctx, key) == nil }
}

func rateTaker(a allowance) taker {
	m := newKeyed(func() *rate.Limiter { return rate.NewLimiter(a.rate(), a.limit) })
	return func(key string) bool { return m.get(key).Allow() }
}

func goLimiterTaker(tb testing.TB, a allowance) taker {
	// The same rate, but of an hour: after an interval it hands out less than a whole one.
	tokens := float64(a.limit) * float64(time.Hour) / float64(a.window)
	store := must(memorystore.New(&memorystore.Config{Tokens: uint64(tokens), Interval: time.Hour}))
	var s golimiter.Store = store
	ctx := context.Background()
	tb.Cleanup(func() { _ = s.Close(ctx) })
	return func(key string) bool {
		_, _, _, ok, err := s.Take(ctx, key)
		return err == nil && ok
	}
}

func throttledTaker(a allowance) taker {
	store := must(memstore.NewCtx(0))
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(a.limit, a.window), MaxBurst: a.limit - 1}
	l := must(throttled.NewGCRARateLimiterCtx(store, quota))
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}
}

func ululeTaker(a allowance) taker {
	l := ulule.New(ululememory.NewStore(), ulule.Rate{Period: a.window, Limit: int64(a.limit)})
	ctx := context.Background()
	return func(key string) bool {
		state, err := l.Get(ctx, key)
		return err == nil && !state.Reached
	}
}

// keyed finds a limiter by key, as one does with those that know no keys. Nothing is
// ever removed.
type keyed[T any] struct {
	mu   sync.RWMutex
	m    map[string]T
	make func() T
}

func newKeyed[T any](make func() T) *keyed[T] {
	return &keyed[T]{m: map[string]T{}, make: make}
}

func (k *keyed[T]) get(key string) T {
	k.mu.RLock()
	v, ok := k.m[key]
	k.mu.RUnlock()
	if ok {
		return v
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok = k.m[key]; !ok {
		v = k.make()
		k.m[key] = v
	}
	return v
}

// Names returns n keys.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "tenant/" + strconv.Itoa(i)
	}
	return names
}
