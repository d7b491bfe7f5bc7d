package redis_test

import (
	"os"
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

func TestOpenTakesEveryKindOfAddress(t *testing.T) {
	t.Parallel()
	plain, s := redistest.Start(t), redistest.Start(t)
	s.Do("CONFIG", "SET", "requirepass", "se:cret")
	g := redistest.Sentinel(t)
	m := redistest.Cluster(t)
	for _, url := range []string{
		plain.URL(),
		plain.URL() + "/3",
		plain.URL() + "/3?pool_size=2&protocol=3",
		"unix://" + plain.Socket(),
		"unix://" + plain.Socket() + "?db=2",
		"redis://:se%3Acret@" + s.Addr(),
		"redis+sentinel://" + strings.Join(g.Addrs(), ",") + "/1?master_name=" + g.Name,
		"redis+sentinel://" + g.Addrs()[0] + "?master_name=" + g.Name + "&addr=" + g.Addrs()[1],
		"redis+cluster://" + strings.Join(m.Addrs(), ","),
		"redis+cluster://" + m.Addrs()[1],
	} {
		c := open(t, url)
		require.NoError(t, c.Set(bg, "k", "v", time.Minute), url)
		v, ok, err := c.Get(bg, "k")
		require.NoError(t, err, url)
		require.True(t, ok, url)
		require.Equal(t, "v", v)
	}
}

func TestOpenSaysWhatIsWrongWithAnAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                               `scheme is ""`,
		"localhost:6379":                                 `scheme is "localhost"`,
		"http://localhost":                               `scheme is "http"`,
		"redis+ring://localhost":                         `ends in "ring"`,
		"unix+cluster:///tmp/x":                          `scheme is "unix+cluster"`,
		"redis://localhost/notanumber":                   "database",
		"redis://localhost?no_such=1":                    "no_such",
		"redis+sentinel://localhost:26379":               "master_name",
		"redis+cluster://localhost?max=many":             "max",
		"redis://localhost?pool_size=-1":                 "pool_size is -1",
		"redis+cluster://localhost?pool_size=3000000000": "pool_size is 3000000000",
		"redis+sentinel://localhost?master_name=main&min_idle_conns=-1":     "min_idle_conns is -1",
		"redis+cluster://localhost?max_redirects=-2":                        "max_redirects is -2",
		"redis+cluster://localhost?read_only=true":                          "replicas",
		"redis+cluster://localhost?route_by_latency=true":                   "replicas",
		"redis+sentinel://localhost?master_name=main&replica_only=true":     "replicas",
		"redis+sentinel://localhost?master_name=main&route_by_latency=true": "replicas",
		"redis+sentinel://localhost?master_name=main&route_randomly=true":   "replicas",
	} {
		_, err := redis.Open(url, redis.Config{})
		if assert.Error(t, err, url) {
			assert.True(t, strings.HasPrefix(err.Error(), "redis: "), err.Error())
			assert.Contains(t, err.Error(), want)
		}
	}
	_, err := redis.Open("redis://user:pass word\x7f@host", redis.Config{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "pass", "a password must not end up in a log")
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	client := driver.NewClient(&driver.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	_, err := redis.New(nil, redis.Config{})
	require.ErrorContains(t, err, "client is nil")
	_, err = redis.New((*driver.Client)(nil), redis.Config{})
	require.ErrorContains(t, err, "client is nil")
	_, err = redis.New(client, redis.Config{Timeout: -time.Second})
	require.ErrorContains(t, err, "Timeout is -1s")
	_, err = redis.New(client, redis.Config{Prefix: "{app}:"})
	require.ErrorContains(t, err, `Prefix is "{app}:"`)
	_, err = redis.Open("redis://127.0.0.1:1", redis.Config{Timeout: -1})
	require.ErrorContains(t, err, "Timeout")

	for _, o := range []*driver.ClusterOptions{
		{Addrs: []string{"127.0.0.1:1"}, ReadOnly: true},
		{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true},
		{Addrs: []string{"127.0.0.1:1"}, RouteRandomly: true},
	} {
		client := driver.NewClusterClient(o)
		_, err := redis.New(client, redis.Config{})
		require.ErrorContains(t, err, "replicas")
		client.Close()
	}
}

func TestPrefixesKeepCachesApart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, prefix := range []string{"", "a:", "b:"} {
		c, err := redis.Open(s.URL(), redis.Config{Prefix: prefix})
		require.NoError(t, err)
		defer c.Close()
		_, ok, err := c.Get(bg, "k")
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, c.Set(bg, "k", "v", time.Minute))
	}
	require.Equal(t, []string{"a:{k}:v", "b:{k}:v", "resilience:{k}:v"}, keys(s))
}

// What docs/redis.md says a user of the server needs, and no more.
func TestAUserWithTheDocumentedRightsSuffices(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/redis.md")
	require.NoError(t, err)
	_, rights, ok := strings.Cut(string(guide), "ACL SETUSER app on >secret ")
	require.True(t, ok)
	rights, _, _ = strings.Cut(rights, "```")

	s := redistest.Start(t)
	s.Do(append([]string{"ACL", "SETUSER", "app", "on", ">secret"}, strings.Fields(rights)...)...)
	c, err := redis.Open("redis://app:secret@"+s.Addr(), redis.Config{Timeout: 5 * time.Second})
	require.NoError(t, err)
	defer c.Close()
	warm(t, c)
	for range 2 {
		for op, run := range operations(c) {
			require.NoError(t, run(bg), op)
		}
		for range 3 { // heavier hits use more
			g, err := c.Acquire(bg, "heavy", cache.Request{Limit: 6, Window: time.Minute, Weight: 2, MaxWait: time.Hour})
			require.NoError(t, err)
			require.NoError(t, c.GiveBack(bg, "heavy", g.Slot))
			_, err = c.Acquire(bg, "heavy", cache.Request{Limit: 6, Window: time.Minute, Weight: 2, MaxWait: time.Hour})
			require.NoError(t, err)
		}
		_, err := c.Used(bg, "heavy", time.Minute)
		require.NoError(t, err)
	}

	for _, right := range strings.Fields(rights) {
		if !strings.HasPrefix(right, "+") {
			continue
		}
		assert.Positive(t, s.Calls(strings.TrimPrefix(right, "+")), "%s is not needed", right)
	}
}
