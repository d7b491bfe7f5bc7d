package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// Whoever has to be asked first, where the master is or which node serves a slot, may hang
// like the server itself; so may a connection in the making.
func TestNoOperationOutlastsTheTimeoutWhoeverHangs(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (url string, all []*redistest.Server){
		"one server": func(t *testing.T) (string, []*redistest.Server) {
			s := redistest.Start(t)
			return s.URL(), []*redistest.Server{s}
		},
		"a handshake": func(t *testing.T) (string, []*redistest.Server) {
			s := redistest.Start(t)
			return "rediss://" + s.Addr(), []*redistest.Server{s}
		},
		"the sentinels": func(t *testing.T) (string, []*redistest.Server) {
			g := redistest.Sentinel(t)
			return "redis+sentinel://" + strings.Join(g.Addrs(), ",") + "?master_name=" + g.Name, g.Sentinels[:]
		},
		"a cluster": func(t *testing.T) (string, []*redistest.Server) {
			m := redistest.Cluster(t)
			return "redis+cluster://" + strings.Join(m.Addrs(), ","), m.Servers[:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, all := start(t)
			for _, s := range all {
				s.Pause()
			}
			const timeout = 50 * time.Millisecond
			for _, op := range []string{"get", "increment", "acquire"} {
				c, err := redis.Open(url, redis.Config{Timeout: timeout}) // that knows nobody yet
				require.NoError(t, err)
				start := time.Now()
				require.Error(t, operations(c)[op](bg), op)
				require.Less(t, time.Since(start), timeout+slack, op)
				require.NoError(t, c.Close())
			}
			for _, s := range all {
				s.Resume()
			}
		})
	}
}
