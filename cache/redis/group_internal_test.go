package redis

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// A stopped is the script of acquires with a clock that a test sets.
type stopped struct {
	t      *testing.T
	client *redis.Client
	sha    string
}

func stop(t *testing.T) *stopped {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr()})
	t.Cleanup(func() { client.Close() })
	const clock = "redis.call('TIME')"
	require.Equal(t, 1, strings.Count(acquireLua, clock))
	text := strings.Replace(acquireLua, clock, "redis.call('HMGET', 'clock', 's', 'us')", 1)
	sha, err := client.ScriptLoad(t.Context(), text).Result()
	require.NoError(t, err)
	return &stopped{t, client, sha}
}

func (s *stopped) set(now int64) {
	require.NoError(s.t, s.client.HSet(s.t.Context(), "clock", "s", now/1_000_000, "us", now%1_000_000).Err())
}

// acquire runs the script for a group, and does not say that it was sent before unless
// it is told to.
func (s *stopped) acquire(key string, limit, window int64, sent string, group []*passenger) []answer {
	args := []any{limit, window, sent}
	for _, p := range group {
		args = append(args, p.weight, p.wait, p.id)
	}
	numbers, err := s.client.EvalSha(s.t.Context(), s.sha, []string{key}, args...).Int64Slice()
	require.NoError(s.t, err)
	require.Len(s.t, numbers, 3*len(group))
	var answers []answer
	for a := range slices.Chunk(numbers, 3) {
		answers = append(answers, answer{a[0], a[1], a[2]})
	}
	return answers
}

// Those that go together get what they would have got one by one, and leave the same behind.
func TestAGroupIsAnsweredLikeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := stop(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	both := []string{"together", "apart"}
	sum := map[int64]int{}
	for series := range 40 {
		ctx := t.Context()
		require.NoError(t, s.client.Del(ctx, both...).Err())
		window := []int64{1, 7, 50, 1000, 40_000, 2_000_000}[rng.IntN(6)]
		limit := 1 + rng.Int64N(60)
		most := 1 + rng.IntN([]int{3, 20, 128}[rng.IntN(3)])
		heavy := []int{0, 0, 1, 20, 100}[rng.IntN(5)] // of 100
		now := time.Now().Add(time.Hour).UnixMicro()
		var taken []answer
		var ids []string
		for step := range 30 {
			now += rng.Int64N(2*window/int64(1+rng.IntN(20))+1) * int64(min(rng.IntN(4), 1))
			s.set(now)
			if rng.IntN(10) == 0 {
				limit = 1 + rng.Int64N(60)
			}
			var group []*passenger
			for range 1 + rng.IntN(most) {
				p := &passenger{weight: 1, id: idText(newID()), wait: rng.Int64N(3) * rng.Int64N(2*window)}
				if rng.IntN(100) < heavy {
					p.weight = 1 + rng.Int64N(limit)
				}
				group = append(group, p)
			}
			for _, sent := range []string{"0", strconv.FormatInt(window, 10)}[:1+rng.IntN(4)/3] {
				answers := s.acquire(both[0], limit, window, sent, group)
				for i, a := range answers {
					require.Equal(t, a, s.acquire(both[1], limit, window, sent, group[i:i+1])[0],
						"hit %d of step %d of series %d, sent %s", i, step, series, sent)
					sum[a.status]++
					if a.status == granted && sent == "0" {
						taken, ids = append(taken, a), append(ids, group[i].id)
					}
				}
			}
			for len(taken) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(taken))
				for _, key := range both {
					require.NoError(t, s.client.Eval(ctx, giveBackLua, []string{key}, ids[i], taken[i].at).Err())
				}
				taken, ids = slices.Delete(taken, i, i+1), slices.Delete(ids, i, i+1)
			}
			left := [2][]redis.Z{}
			for i, key := range both {
				left[i] = s.client.ZRangeWithScores(ctx, key, 0, -1).Val()
			}
			require.Equal(t, left[1], left[0], "step %d of series %d", step, series)
			ttl := s.client.Eval(ctx, bothTTL, both).Val().([]any)
			require.Equal(t, ttl[1], ttl[0], "step %d of series %d", step, series)
		}
	}
	require.Greater(t, sum[granted], 1000)
	require.Greater(t, sum[refused], 1000)
}

// bothTTL is what two keys have left within one millisecond.
const bothTTL = `
	local one, two
	repeat
		one, two = redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])
	until redis.call('PTTL', KEYS[1]) == one
	return { one, two }`

// What a refused one asked for is free for those behind it, who may be lighter or have
// more patience.
func TestARefusedHitOfAGroupIsInNobodysWay(t *testing.T) {
	t.Parallel()
	s := stop(t)
	now := time.Now().Add(time.Hour).UnixMicro()
	s.set(now)
	ask := func(weight, wait int64) *passenger {
		return &passenger{weight: weight, wait: wait, id: idText(newID())}
	}
	const window = 1000
	require.Equal(t, []answer{
		{granted, 0, now}, {granted, 0, now}, {refused, window, 0}, {granted, window, now + window},
		{granted, window, now + window}, {refused, 2 * window, 0}, {granted, 2 * window, now + 2*window},
	}, s.acquire("plain", 2, window, "0", []*passenger{
		ask(1, 0), ask(1, 0), ask(1, window-1), ask(1, window), ask(1, window), ask(1, window), ask(1, 3*window),
	}))
	require.Equal(t, []answer{
		{granted, 0, now}, {granted, 0, now}, {refused, window, 0}, {granted, 0, now}, {refused, window, 0},
		{granted, window, now + window}, {granted, window, now + window},
	}, s.acquire("heavy", 10, window, "0", []*passenger{
		ask(1, 0), ask(7, 0), ask(3, 0), ask(2, 0), ask(1, 0), ask(9, window), ask(1, window),
	}))
}

// A weight that is long gone is no burden to plain hits, and no sum goes on for ever.
func TestAfterAPauseOfAWindowPlainHitsArePlainAgain(t *testing.T) {
	t.Parallel()
	s := stop(t)
	now := time.Now().Add(time.Hour).UnixMicro()
	const window = 1000
	for _, pause := range []int64{window - 1, window} {
		require.NoError(t, s.client.Del(t.Context(), "k").Err())
		for i, weight := range []int64{1, 3, 1, 2} {
			s.set(now + int64(i)*pause)
			group := []*passenger{{weight: weight, id: idText(newID())}, {weight: 1, id: idText(newID())}}
			require.Len(t, s.acquire("k", 100, window, "0", group), 2)
			plain := 0
			members := s.client.ZRange(t.Context(), "k", 0, -1).Val()
			for _, m := range members {
				if len(m) == idLen {
					plain++
				}
			}
			if pause == window {
				require.Len(t, members, 2, "what has left is gone")
				require.Equal(t, []int{2, 0, 2, 0}[i], plain)
			} else if i > 0 {
				require.LessOrEqual(t, plain, 2)
				require.Greater(t, len(members), plain)
			}
		}
	}
}

// Who happens to be the first of an eighth of a window does not have to wait while all that
// left in the one before is cleared away.
func TestWhatHasLeftIsDiscardedAFewAtATime(t *testing.T) {
	t.Parallel()
	s := stop(t)
	const window, every = 4000, 3
	start := time.Now().Add(time.Hour).UnixMicro()
	most, before := 0, 0
	for now := start; now < start+3*window; now += every {
		s.set(now)
		group := []*passenger{{weight: 1, id: idText(newID())}}
		require.EqualValues(t, granted, s.acquire("k", 1_000_000, window, "0", group)[0].status)
		left := int(s.client.ZCard(t.Context(), "k").Val())
		most, before = max(most, before+1-left), left
	}
	require.Positive(t, most)
	require.LessOrEqual(t, most, 16)
	require.LessOrEqual(t, before, window/every+17)
}

func TestAGroupTakesAFewCommandsOfTheServer(t *testing.T) {
	t.Parallel()
	s := stop(t)
	now := time.Now().Add(time.Hour).UnixMicro()
	var group []*passenger
	for range maxBatch {
		group = append(group, &passenger{weight: 1, wait: 1 << 40, id: idText(newID())})
	}
	count := func() (commands int) {
		stats := s.client.Info(t.Context(), "stats").Val()
		_, rest, _ := strings.Cut(stats, "total_commands_processed:")
		text, _, _ := strings.Cut(rest, "\r\n")
		commands, err := strconv.Atoi(text)
		require.NoError(t, err)
		return commands
	}
	for range 3 {
		for _, p := range group {
			p.id = idText(newID())
		}
		s.set(now)
		before := count()
		for _, a := range s.acquire("k", 100, 1_000_000, "0", group) {
			require.EqualValues(t, granted, a.status)
		}
		require.LessOrEqual(t, count()-before, 1+1+6, "this one, the script, and what it runs")
	}
}

func TestASeriesIsAGroupInOrderOfArrival(t *testing.T) {
	t.Parallel()
	all := []series{{"k", 10, 1000}, {"l", 10, 1000}, {"m", 10, 1000}, {"n", 10, 1000}}
	var list []*passenger
	for i := range 100 {
		list = append(list, &passenger{series: all[i*7%4], wait: int64(i)})
	}
	groups := bySeries(list)
	require.Len(t, groups, 4)
	for _, group := range groups {
		require.Len(t, group, 25)
		for i, p := range group {
			require.Equal(t, group[0].series, p.series)
			require.True(t, i == 0 || group[i-1].wait < p.wait)
		}
	}
	require.Empty(t, bySeries(nil))
}

// Of one key, who came first is decided first, whatever limit the others name.
func TestABatchKeepsTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	list := []*passenger{
		{series: series{"b", 11, 1000}}, {series: series{"a", 5, 1000}}, {series: series{"b", 10, 1000}},
		{series: series{"b", 10, 1000}}, {series: series{"b", 11, 1000}},
	}
	require.Equal(t, [][]*passenger{{list[1]}, {list[0]}, {list[2], list[3]}, {list[4]}}, bySeries(slices.Clone(list)))
}

// A client that hands out the commands of others, as a hook may, does no harm.
func TestAnAnswerOfTheWrongLengthIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, numbers := range [][]int64{nil, {1, 0, 5}, {1, 0, 5, 1, 0}, {1, 0, 5, 1, 0, 5, 1, 0, 5}} {
		cmd := redis.NewIntSliceCmd(context.Background())
		cmd.SetVal(numbers)
		p, q := &passenger{done: make(chan struct{})}, &passenger{done: make(chan struct{})}
		require.Empty(t, new(Cache).deliver(context.Background(), cmd, nil, p, q))
		<-p.done
		<-q.done
		require.ErrorIs(t, p.err, errMalformed)
		require.ErrorIs(t, q.err, errMalformed)
	}
}
