package redis_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// lossy opens a cache behind a proxy that loses the first reply to each operation and
// delivers the next.
func lossy(t *testing.T, s *redistest.Server) (*redis.Cache, *redistest.Proxy) {
	t.Helper()
	p := redistest.NewProxy(t, s)
	client := driver.NewClient(&driver.Options{Addr: p.Addr(), MinRetryBackoff: -1, PoolSize: 1})
	t.Cleanup(func() { client.Close() })
	c, err := redis.New(client, redis.Config{Prefix: freshPrefix(), Timeout: 5 * time.Second})
	require.NoError(t, err)
	// Scripts known beforehand, so that one operation is one reply.
	warm(t, c)
	return c, p
}

// warm runs each script once.
func warm(t *testing.T, c *redis.Cache) {
	t.Helper()
	g, err := c.Acquire(bg, "warm", unit(9, time.Minute, 0))
	require.NoError(t, err)
	require.NoError(t, c.GiveBack(bg, "warm", g.Slot))
	_, err = c.Used(bg, "warm", time.Minute)
	require.NoError(t, err)
	_, err = c.Increment(bg, "warm", time.Minute)
	require.NoError(t, err)
	_, err = c.CompareAndSwap(bg, "warm", cache.Present("1"), cache.Absent(), 0)
	require.NoError(t, err)
	require.NoError(t, c.RecordHit(bg, "warm", time.Now(), time.Minute))
	_, err = c.CountHits(bg, "warm", time.Now())
	require.NoError(t, err)
	_, _, err = c.OldestHit(bg, "warm", time.Now())
	require.NoError(t, err)
	require.NoError(t, c.GetMany(bg, []string{"warm"}, make([]cache.Entry, 1)))
	require.NoError(t, c.Delete(bg, "warm"))
}

// firstLost loses every reply whose number is even.
func firstLost(n int) bool { return n%2 == 0 }

func TestWhatTheDriverSendsAgainIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := lossy(t, s)

	for _, weight := range []int64{1, 3} {
		t.Run(fmt.Sprintf("acquire of weight %d", weight), func(t *testing.T) {
			key := fmt.Sprint("w", weight)
			p.Drop(firstLost)
			r := cache.Request{Limit: 4 * weight, Window: time.Minute, Weight: weight}
			for i := range 6 {
				g, err := c.Acquire(bg, key, r)
				require.NoError(t, err)
				assert.Equal(t, i < 4, g.OK, "call %d", i)
				assert.GreaterOrEqual(t, g.Wait, time.Duration(0))
			}
			require.Equal(t, 12, p.Replies(), "each was sent twice")
			p.Drop(nil)
			used, err := c.Used(bg, key, time.Minute)
			require.NoError(t, err)
			require.Equal(t, 4*weight, used)
		})
	}
	t.Run("acquire of a unit among heavier ones", func(t *testing.T) {
		p.Drop(firstLost)
		for _, weight := range []int64{1, 5, 1, 1} {
			g, err := c.Acquire(bg, "mixed", cache.Request{Limit: 100, Window: time.Minute, Weight: weight})
			require.NoError(t, err)
			require.True(t, g.OK)
		}
		p.Drop(nil)
		used, err := c.Used(bg, "mixed", time.Minute)
		require.NoError(t, err)
		require.EqualValues(t, 8, used)
	})
	t.Run("increment", func(t *testing.T) {
		p.Drop(firstLost)
		for i := range 5 {
			n, err := c.Increment(bg, "n", time.Minute)
			require.NoError(t, err)
			require.EqualValues(t, i+1, n)
		}
		require.Equal(t, 10, p.Replies())
	})
	t.Run("record hit", func(t *testing.T) {
		p.Drop(firstLost)
		at := time.Now()
		for range 5 {
			require.NoError(t, c.RecordHit(bg, "hits", at, time.Minute))
		}
		p.Drop(nil)
		n, err := c.CountHits(bg, "hits", at)
		require.NoError(t, err)
		require.Equal(t, 5, n)
	})
	t.Run("compare and swap", func(t *testing.T) {
		p.Drop(firstLost)
		from := cache.Absent()
		for i := range 4 {
			to := cache.Present(strconv.Itoa(i))
			ok, err := c.CompareAndSwap(bg, "cas", from, to, time.Minute)
			require.NoError(t, err)
			require.True(t, ok, "the one who swapped is told so")
			from = to
		}
		ok, err := c.CompareAndSwap(bg, "cas", cache.Absent(), cache.Present("x"), time.Minute)
		require.NoError(t, err)
		require.False(t, ok)
		ok, err = c.CompareAndSwap(bg, "cas", from, cache.Absent(), 0)
		require.NoError(t, err)
		require.True(t, ok)
	})
}

// What is sent again is looked for among the hits of what may have been sent before it,
// and not in all of a long series.
func TestWhatIsSentAgainCostsNoWalkThroughALongSeries(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := lossy(t, s)
	r := cache.Request{Limit: 1 << 40, Window: time.Hour, Weight: 3}
	_, err := c.Acquire(bg, "k", r)
	require.NoError(t, err)
	list := keys(s)
	series := list[slices.IndexFunc(list, func(k string) bool { return strings.HasSuffix(k, "{k}:h") })]
	s.Do("DEL", series)
	const old = 20_000 // one each 100 ms
	s.Do("EVAL", `
		for i = 1, ARGV[2] do
			local hit = '~' .. struct.pack('>I7I7', 2 * (i - 1), 3) .. string.format('%011d', i)
			redis.call('ZADD', KEYS[1], ARGV[1] - (ARGV[2] - i + 1) * 100000, hit)
		end`, "1", series, strconv.FormatInt(serverTime(s), 10), strconv.Itoa(old))
	// The first reply is lost, and so is what the first sending did.
	p.Drop(func(n int) bool {
		if n == 0 {
			s.Do("ZREMRANGEBYRANK", series, "-1", "-1")
		}
		return n == 0
	})
	before := s.Calls("zrange")
	g, err := c.Acquire(bg, "k", r)
	require.NoError(t, err)
	require.True(t, g.OK)
	require.Equal(t, 2, p.Replies())
	require.Less(t, s.Calls("zrange")-before, int64(400))
	require.EqualValues(t, old+1, s.Do("ZCARD", series))
}

// The first sending has been done, then somebody else undid it: the second must not do it
// again, or a probe's place that was given back is taken for nobody.
func TestASwapThatWasUndoneMeanwhileIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := lossy(t, s)
	other, err := redis.Open(s.URL(), redis.Config{Prefix: "other:"})
	require.NoError(t, err)
	defer other.Close()
	value := ""
	p.Drop(func(n int) bool {
		if n == 0 {
			for _, k := range keys(s) {
				if k[len(k)-5:] == ":v:at" {
					value = k
					s.Do("DEL", k)
				}
			}
		}
		return n == 0
	})
	ok, err := c.CompareAndSwap(bg, cache.Key("probe", "at"), cache.Absent(), cache.Present("me"), time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	require.NotEmpty(t, value)
	_, there, err := c.Get(bg, cache.Key("probe", "at"))
	require.NoError(t, err)
	require.False(t, there)
}

func TestWhatIsNeverAnsweredIsAnError(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := lossy(t, s)
	p.Drop(func(int) bool { return true })
	var away *cache.UnavailableError
	_, err := c.Acquire(bg, "k", unit(5, time.Minute, 0))
	require.ErrorAs(t, err, &away)
	require.Equal(t, "acquire", away.Op)
	_, err = c.Increment(bg, "n", time.Minute)
	require.ErrorAs(t, err, &away)
	p.Drop(nil)
	used, err := c.Used(bg, "k", time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 1, used, "sent four times, counted once")
	n, err := c.Increment(bg, "n", time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

func TestScriptsThatTheServerForgotAreSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	for range 3 {
		s.Do("SCRIPT", "FLUSH")
		warm(t, c)
	}
}

func TestOperationsAreRememberedForAWhileOnly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	_, err := c.Increment(bg, "n", 0)
	require.NoError(t, err)
	_, err = c.CompareAndSwap(bg, "v", cache.Absent(), cache.Present("1"), 0)
	require.NoError(t, err)
	list := keys(s)
	require.Len(t, list, 4)
	for _, k := range list {
		ttl := s.Do("PTTL", k).(int64)
		if k[len(k)-2:] == ":v" {
			assert.EqualValues(t, -1, ttl)
		} else {
			assert.Positive(t, ttl)
			assert.LessOrEqual(t, ttl, int64(15_000))
		}
	}
}
