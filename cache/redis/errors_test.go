package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// garbage is what a key may come to hold that is not ours, as commands that make it.
var garbage = map[string][]string{
	"string": {"SET", "", "garbage"},
	"list":   {"RPUSH", "", "garbage"},
	"hash":   {"HSET", "", "garbage", "garbage"},
	"set":    {"SADD", "", "garbage"},
	"stream": {"XADD", "", "*", "garbage", "garbage"},
	"zset":   {"ZADD", "", "1", "garbage"},
	// As hits, with scores that are no instants.
	"fraction": {"ZADD", "", "1.5", "00000000000"},
	"infinity": {"ZADD", "", "inf", "00000000000"},
	"too far":  {"ZADD", "", "1e300", "00000000000"},
}

func plant(s *redistest.Server, key, what string) {
	command := append([]string(nil), garbage[what]...)
	command[1] = key
	s.Do("DEL", key)
	s.Do(command...)
}

func TestGarbageIsATypedErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	const value, series, counter = "resilience:{k}:v", "resilience:{k}:h", "resilience:{n}:v"
	// What each operation can do something with; all else is an error.
	zsets := []string{"zset", "fraction", "infinity", "too far"}
	fine := map[string][]string{
		"get": {"string"}, "get many": {"string"}, "compare and swap": {"string"},
		"give back": zsets, "record hit": zsets, "count hits": zsets, "oldest hit": zsets,
		"used": zsets, // a score is a score, and what it is the score of need not be looked at
	}
	for what := range garbage { // these ask for nothing
		fine["set"], fine["delete"] = append(fine["set"], what), append(fine["delete"], what)
	}
	for what := range garbage {
		for op, run := range operations(c) {
			for _, key := range []string{value, series, counter} {
				plant(s, key, what)
			}
			err := run(bg)
			if slices.Contains(fine[op], what) {
				assert.NoError(t, err, "%s on %s", op, what)
				continue
			}
			var corrupt *cache.CorruptError
			if assert.ErrorAs(t, err, &corrupt, "%s on %s", op, what) {
				assert.Equal(t, op, corrupt.Op)
				assert.NotEmpty(t, corrupt.Key)
			}
		}
	}
}

func TestGetManyNamesTheKeyThatIsCorrupt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, err := redis.Open(s.URL(), redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	list := []string{cache.Key("g", "a"), cache.Key("g", "b"), cache.Key("g", "c")}
	require.NoError(t, c.Set(bg, list[0], "1", time.Minute))
	plant(s, "resilience:{g}:v:b", "list")
	var corrupt *cache.CorruptError
	require.ErrorAs(t, c.GetMany(bg, list, make([]cache.Entry, 3)), &corrupt)
	require.Equal(t, list[1], corrupt.Key)
}

func TestGetManyOfTwoGroupsIsRefusedOnAnyServer(t *testing.T) {
	t.Parallel()
	c, err := redis.Open("redis://127.0.0.1:1", redis.Config{})
	require.NoError(t, err)
	defer c.Close()
	err = c.GetMany(bg, []string{cache.Key("a", "x"), cache.Key("b", "x")}, make([]cache.Entry, 2))
	var bad *cache.ArgumentError
	require.ErrorAs(t, err, &bad)
	require.NoError(t, c.GetMany(bg, nil, nil), "none are none, without a server")
}

// Every refusal of a server that is not an answer to the question is an outage.
func TestErrorsOfTheServerAreOutages(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"MOVED 3999 127.0.0.1:1",
		"ASK 3999 127.0.0.1:1",
		"CROSSSLOT Keys in request don't hash to the same slot",
		"NOAUTH Authentication required.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"BUSY Redis is busy running a script.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"NOREPLICAS Not enough good replicas to write.",
		"ERR max number of clients reached",
		"ERR something that nobody has thought of",
	} {
		c := open(t, "redis://"+answering(t, "-"+line+"\r\n")+"?max_retries=-1")
		for op, run := range operations(c) {
			var away *cache.UnavailableError
			require.ErrorAs(t, run(bg), &away, "%s: %s", op, line)
		}
	}
}

// Replies that are none must not bring anything down.
func TestNonsenseRepliesAreErrors(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"*0\r\n", "*1\r\n:1\r\n", "*-1\r\n", "$-1\r\n", "*3\r\n$1\r\na\r\n:1\r\n:1\r\n", "?\r\n", "\r\n", ":1\r\n"} {
		c := open(t, "redis://"+answering(t, reply)+"?max_retries=-1")
		ctx, cancel := context.WithTimeout(bg, time.Second)
		for op, run := range operations(c) {
			err := run(ctx)
			switch op {
			case "acquire", "get many":
				assert.Error(t, err, "%s: %q", op, reply)
			}
		}
		cancel()
	}
}

// answering starts a server that answers every command with the same reply, and returns
// its address.
func answering(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					var n int
					if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
						return
					}
					command := ""
					for i := range n {
						var size int
						if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
							return
						}
						arg := make([]byte, size+2)
						for read := 0; read < len(arg); {
							m, err := r.Read(arg[read:])
							if err != nil {
								return
							}
							read += m
						}
						if i == 0 {
							command = string(arg[:size])
						}
					}
					answer := reply
					if command == "hello" || command == "client" {
						answer = "-ERR unknown command\r\n" // an old server, that wants no greeting
					}
					if _, err := conn.Write([]byte(answer)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
