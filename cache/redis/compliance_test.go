package redis_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

var prefixes atomic.Int64

// freshPrefix keeps tests on one server apart.
func freshPrefix() string {
	return "test:" + strconv.FormatInt(time.Now().UnixNano(), 36) + ":" + strconv.FormatInt(prefixes.Add(1), 10) + ":"
}

// open opens a cache with a prefix of its own and a time limit that a busy machine keeps.
func open(t testing.TB, url string) *redis.Cache {
	t.Helper()
	c, err := redis.Open(url, redis.Config{Prefix: freshPrefix(), Timeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func comply(t *testing.T, url string) {
	compliancetest.Cache(compliancetest.Harness[*redis.Cache]{
		New: func() (*redis.Cache, error) {
			return redis.Open(url, redis.Config{Prefix: "test:", Timeout: 5 * time.Second})
		},
		Close: (*redis.Cache).Close,
		Slack: 250 * time.Millisecond,
	}).Run(t)
}

func TestComplianceOnOneServer(t *testing.T) {
	t.Parallel()
	comply(t, redistest.URL(t))
}

func TestComplianceThroughSentinel(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	comply(t, "redis+sentinel://"+strings.Join(g.Addrs(), ",")+"/0?master_name="+g.Name)
}

func TestComplianceOnACluster(t *testing.T) {
	t.Parallel()
	comply(t, "redis+cluster://"+strings.Join(redistest.Cluster(t).Addrs(), ","))
}
