package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilience-toolkit/resilience/cache/memory"
	rediscache "github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// Bytes is what a key with one hit costs, its own bytes included, and each further hit.
type Bytes struct{ Key, Hit float64 }

// MemoryBytes measures this in the memory of the process.
func MemoryBytes() (b Bytes) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	const keys, hits = 200_000, 1 << 20
	names := Names(keys)
	ctx := context.Background()
	c := memory.New()
	before := heap()
	for _, name := range names {
		must(c.Acquire(ctx, name, hour(1)))
	}
	b.Key = (heap() - before) / keys
	runtime.KeepAlive(names)
	c.Close()

	c = memory.New()
	before = heap()
	fill(c, hits)
	b.Hit = (heap() - before) / hits
	c.Close()
	return b
}

// RedisBytes measures this on a server, by what it says itself (MEMORY USAGE), for hits
// up to the 128th, which it keeps in a more compact form, and for those after them.
func RedisBytes(tb testing.TB, server *Server) (few, many Bytes) {
	const compact, hits = 128, 100_000
	client, ctx := NewClient(tb, server), context.Background()
	usage := func(hits int) float64 {
		prefix := freshName() + ":"
		c := must(rediscache.New(client, rediscache.Config{Prefix: prefix}))
		fill(c, hits)
		keys := must(client.Keys(ctx, prefix+"*").Result())
		if len(keys) != 1 {
			tb.Fatal(fmt.Sprint("a series of ", len(keys), " keys"))
		}
		return float64(must(client.Do(ctx, "MEMORY", "USAGE", keys[0], "SAMPLES", 0).Int64()))
	}
	few.Key = usage(1)
	few.Hit = (usage(compact) - few.Key) / (compact - 1)
	many.Key = few.Key
	many.Hit = (usage(hits) - few.Key) / (hits - 1)
	return few, many
}

// A Cost is what a server works for one call, in microseconds, by its own account: all
// that its main thread does if calls come one after the other, and if many callers keep it
// busy, and what of the latter is the script or command itself.
type Cost struct{ Thread, Busy, Script float64 }

// ServerCost measures this with n calls, and as many per caller.
func ServerCost(tb testing.TB, server *Server, work Work, n int, command string) (c Cost) {
	client, ctx := NewClient(tb, server), context.Background()
	cpu := func() float64 {
		info := must(client.InfoMap(ctx, "cpu").Result())["CPU"]
		user := must(strconv.ParseFloat(info["used_cpu_user_main_thread"], 64))
		system := must(strconv.ParseFloat(info["used_cpu_sys_main_thread"], 64))
		return 1e6 * (user + system)
	}
	work(100)
	before := cpu()
	work(n)
	c.Thread = (cpu() - before) / float64(n)
	check(client.ConfigResetStat(ctx).Err())
	before = cpu()
	batch(work, Callers, n/Callers)
	calls := float64(n / Callers * Callers) // of which one command may have served several
	c.Busy = (cpu() - before) / calls
	c.Script = float64(usec(tb, client, command)) / calls
	return c
}

// usec returns how long all commands of a name have taken the server.
func usec(tb testing.TB, client *redis.Client, command string) int64 {
	stats := must(client.InfoMap(context.Background(), "commandstats").Result())["Commandstats"]["cmdstat_"+command]
	var calls, total int64
	if _, err := fmt.Sscanf(stats, "calls=%d,usec=%d,", &calls, &total); err != nil {
		tb.Fatal("the server has not counted ", command, ": ", err)
	}
	return total
}

// clientPerCaller has callers of one key who cannot send anything together, as those in
// processes of their own.
func clientPerCaller(tb testing.TB, server *Server) Work {
	prefix := freshName() + ":"
	var limiters []*ratelimit.Limiter
	for range Callers {
		shared := must(rediscache.New(NewClient(tb, server), rediscache.Config{Prefix: prefix}))
		l := must(ratelimit.New(ampleShared.limit, ampleShared.window, ratelimit.Config{Cache: shared}))
		tb.Cleanup(func() { l.Close(); shared.Close() })
		limiters = append(limiters, l)
	}
	var caller atomic.Int64
	ctx := context.Background()
	return func(n int) (right int) {
		l := limiters[caller.Add(1)%Callers]
		for range n {
			if l.Acquire(ctx, "key") == nil {
				right++
			}
		}
		return right
	}
}

// ServerCosts are what to ask a server for, to see what it has to work.
func ServerCosts() []Entrant {
	list := []Entrant{}
	for _, e := range redisLimiters(ampleShared, true, "cost") {
		if e.Name == "ours" || e.Name == "bare EVALSHA" || e.Name == "redis_rate" {
			list = append(list, Entrant{e.Name + ", admitted", e.Make})
		}
	}
	list = append(list,
		Entrant{"ours, admitted, a key per caller", redisLimiters(ampleShared, true, "")[0].Make},
		Entrant{"ours, admitted, a client per caller", clientPerCaller})
	for _, limit := range []int{100, 10_000, 100_000} {
		list = append(list, Entrant{fmt.Sprintf("ours, refused, %d hits in the window", limit), func(tb testing.TB, s *Server) Work {
			return fullWindow(sharedCache(tb, s), limit, 0)
		}})
	}
	return list
}
