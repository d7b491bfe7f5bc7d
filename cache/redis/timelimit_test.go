package redis_test

import (
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

func TestTheTimeLimitIsTheTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{0: 250 * time.Millisecond, time.Hour: time.Hour} {
		c, err := redis.Open("redis://127.0.0.1:1", redis.Config{Timeout: timeout})
		require.NoError(t, err)
		for range 2 {
			longest, ok := c.TimeLimit()
			assert.Equal(t, want, longest)
			assert.True(t, ok)
			require.NoError(t, c.Close())
		}
	}
}

// The second round trip of a script that the server does not know has what is left of the
// time of the first, over any client.
func TestAScriptThatIsSentAgainKeepsToTheTimeLimit(t *testing.T) {
	t.Parallel()
	const timeout, delay = 1500 * time.Millisecond, time.Second
	for name, minds := range map[string]bool{"ignores contexts": false, "minds contexts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s)
			client := driver.NewClient(&driver.Options{Addr: p.Addr(), ContextTimeoutEnabled: minds, MaxRetries: -1})
			defer client.Close()
			c, err := redis.New(client, redis.Config{Timeout: timeout})
			require.NoError(t, err)
			getMany := operations(c)["get many"]
			require.NoError(t, getMany(bg))
			s.Do("SCRIPT", "FLUSH")
			p.Delay(delay)
			start := time.Now()
			require.Error(t, getMany(bg))
			require.Less(t, time.Since(start), timeout+slack/2)
		})
	}
}
