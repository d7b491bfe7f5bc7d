package bench

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	rediscache "github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// A Server is the Redis that a contest starts for itself.
type Server = redistest.Server

// NewClient returns a client of the server, with the same options for everybody.
func NewClient(tb testing.TB, server *Server) *redis.Client { return newClient(tb, server.Addr()) }

func newClient(tb testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr:                     addr,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	tb.Cleanup(func() { client.Close() })
	return client
}

// Callers is how many goroutines share one client in the parallel half.
const Callers = 64

// More than one Redis can carry, so that every call is admitted.
var ampleShared = allowance{1_000_000, time.Second}

func redisContests() []Contest {
	notes := "A call is one command or script of the others; ours keeps every hit of the last second, some 10,000 of them one " +
		"after the other and more in parallel, where the others keep a number. The bare EVALSHA runs TIME, GET and SET. " +
		"Where the caller's context can be cancelled, ours returns when it is; the others wait for the reply or their time limit. " +
		"AutoPipeline is the automatic pipelining of the driver, which is experimental and ignores contexts; over it ours sends each " +
		"acquire by itself. " +
		fmt.Sprintf("Parallel is %d callers of one client.", Callers)
	goal := Goal{
		Text:   "one round trip, within 15 % of the bare EVALSHA, at most 25 allocations; in parallel faster than that",
		Rivals: []string{"bare EVALSHA"}, Ratio: 1.15, Allocs: 25, Parallel: 1, Trips: 1,
	}
	return []Contest{
		{
			Name: "Redis limiter/one key, admitted", Notes: notes, Goal: goal, Parallel: Callers, Redis: true,
			Entrants: redisLimiters(ampleShared, true, "one"),
		},
		{
			Name: "Redis limiter/one key, refused", Notes: notes, Goal: goal, Parallel: Callers, Redis: true,
			Entrants: redisLimiters(used, false, "one"),
		},
		{
			Name: "Redis limiter/a key per caller, admitted", Notes: notes, Goal: goal, Parallel: Callers, Redis: true,
			Entrants: redisLimiters(ampleShared, true, ""),
		},
		{
			Name: "Redis breaker/closed",
			Notes: "What the sharing costs per call, with a call that takes no time. gobreaker holds a lock in Redis while the call " +
				"runs, and sleeps when it finds it taken, so its callers here take turns at a mutex first. Its store for Redis is not " +
				"released as a module; this one is written after it, on the same lock. With a staleness ours asks every 100 ms.",
			Goal:  Goal{Text: "at most one round trip", Rivals: []string{"bare GET"}, Allocs: math.Inf(1), Trips: 1},
			Redis: true, Parallel: Callers,
			Entrants: redisBreakers(),
		},
	}
}

var fresh atomic.Int64

// freshName returns a name that nothing on the server has.
func freshName() string { return "bench" + strconv.FormatInt(fresh.Add(1), 10) }

// redisLimiters asks one key, or one of its own for each goroutine.
func redisLimiters(a allowance, admitted bool, key string) []Entrant {
	work := func(take taker) Work {
		for range a.limit {
			if !admitted {
				take(key)
			}
		}
		var goroutine atomic.Int64
		return func(n int) (right int) {
			key := key
			if key == "" {
				key = strconv.FormatInt(goroutine.Add(1)%Callers, 10)
			}
			for range n {
				if take(key) == admitted {
					right++
				}
			}
			return right
		}
	}
	type clientOf = func(testing.TB, *Server) redis.UniversalClient
	ours := func(client clientOf, context func(testing.TB) context.Context) func(testing.TB, *Server) Work {
		return func(tb testing.TB, server *Server) Work {
			shared := must(rediscache.New(client(tb, server), rediscache.Config{Prefix: freshName() + ":"}))
			l := must(ratelimit.New(a.limit, a.window, ratelimit.Config{Cache: shared}))
			tb.Cleanup(func() { l.Close(); shared.Close() })
			ctx := context(tb)
			return work(func(key string) bool { return l.Acquire(ctx, key) == nil })
		}
	}
	bare := func(client clientOf) func(testing.TB, *Server) Work {
		return func(tb testing.TB, server *Server) Work {
			client, ctx := client(tb, server), context.Background()
			sha := must(client.ScriptLoad(ctx, bareScript).Result())
			name := freshName()
			return work(func(key string) bool {
				_, err := client.EvalSha(ctx, sha, []string{name + key}, 1).Int()
				return (err == nil) == admitted // it refuses nobody
			})
		}
	}
	return []Entrant{
		{"ours", ours(plainClient, background)},
		{"ours, cancellable", ours(plainClient, cancellable)},
		{"ours, AutoPipeline", ours(pipeliner, background)},
		{"bare EVALSHA", bare(plainClient)},
		{"EVALSHA, AutoPipeline", bare(pipeliner)},
		{"redis_rate", func(tb testing.TB, server *Server) Work {
			l, ctx, name := redis_rate.NewLimiter(NewClient(tb, server)), context.Background(), freshName()
			limit := redis_rate.Limit{Rate: a.limit, Burst: a.limit, Period: a.window}
			return work(func(key string) bool {
				result, err := l.Allow(ctx, name+key, limit)
				return err == nil && result.Allowed == 1
			})
		}},
		{"throttled", func(tb testing.TB, server *Server) Work {
			store := must(goredisstore.NewCtx(NewClient(tb, server), freshName()))
			quota := throttled.RateQuota{MaxRate: throttled.PerDuration(a.limit, a.window), MaxBurst: a.limit - 1}
			l, ctx := must(throttled.NewGCRARateLimiterCtx(store, quota)), context.Background()
			return work(func(key string) bool {
				limited, _, err := l.RateLimitCtx(ctx, key, 1)
				return err == nil && !limited
			})
		}},
		{"ulule", func(tb testing.TB, server *Server) Work {
			store := must(ululeredis.NewStoreWithOptions(NewClient(tb, server), ulule.StoreOptions{Prefix: freshName()}))
			l, ctx := ulule.New(store, ulule.Rate{Period: a.window, Limit: int64(a.limit)}), context.Background()
			return work(func(key string) bool {
				state, err := l.Get(ctx, key)
				return err == nil && !state.Reached
			})
		}},
	}
}

func plainClient(tb testing.TB, server *Server) redis.UniversalClient { return NewClient(tb, server) }

// pipeliner returns the driver's client that sends by itself what is asked at one moment.
func pipeliner(tb testing.TB, server *Server) redis.UniversalClient {
	p := must(NewClient(tb, server).AutoPipeline())
	tb.Cleanup(func() { p.Close() })
	return p
}

func background(testing.TB) context.Context { return context.Background() }

func cancellable(tb testing.TB) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	return ctx
}

// What a limiter cannot do without: the server's clock, what is there, and what will be.
const bareScript = `
redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000)
return 1`
