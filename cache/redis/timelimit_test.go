package redis_test

import (
	"context"
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

// A client may mind contexts, and what it calls to connect may not.
func TestWhatAClientCallsDoesNotOutlastTheTimeLimit(t *testing.T) {
	t.Parallel()
	const timeout, hang = 100 * time.Millisecond, 3 * time.Second
	for name, call := range map[string]func(*driver.Options){
		"credentials": func(o *driver.Options) {
			o.CredentialsProvider = func() (string, string) { time.Sleep(hang); return "", "" }
		},
		"credentials by context": func(o *driver.Options) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { time.Sleep(hang); return "", "", nil }
		},
		"on connect": func(o *driver.Options) {
			o.OnConnect = func(context.Context, *driver.Conn) error { time.Sleep(hang); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &driver.Options{Addr: redistest.Start(t).Addr(), ContextTimeoutEnabled: true}
			call(o)
			client := driver.NewClient(o)
			defer client.Close()
			c, err := redis.New(client, redis.Config{Timeout: timeout})
			require.NoError(t, err)
			for _, op := range []string{"get", "acquire", "get many"} {
				start := time.Now()
				require.Error(t, operations(c)[op](bg), op)
				require.Less(t, time.Since(start), timeout+slack, op)
			}
		})
	}
}
