package bench

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	rediscache "github.com/resilience-toolkit/resilience/cache/redis"
)

func redisBreakers() []Entrant {
	ours := func(staleness time.Duration) func(tb testing.TB, server *Server) Work {
		return func(tb testing.TB, server *Server) Work {
			return calls(resilience.Wrap(answer, SharedCircuit(tb, server.Addr(), freshName(), staleness)))
		}
	}
	return []Entrant{
		{"ours", ours(0)},
		{"ours, 100 ms stale", ours(100 * time.Millisecond)},
		{"bare GET", func(tb testing.TB, server *Server) Work {
			first := BareGet(tb, server.Addr())
			return calls(func(ctx context.Context) (int, error) { return first(ctx, answer) })
		}},
		{"gobreaker distributed", func(tb testing.TB, server *Server) Work {
			execute := SharedGobreaker(tb, server.Addr(), freshName())
			var turn sync.Mutex
			return calls(func(ctx context.Context) (int, error) {
				turn.Lock()
				defer turn.Unlock()
				return execute(ctx, answer)
			})
		}},
	}
}

// SharedCircuit returns a circuit of ours on a server.
func SharedCircuit(tb testing.TB, addr, name string, staleness time.Duration) *breaker.Breaker {
	shared := must(rediscache.New(newClient(tb, addr), rediscache.Config{}))
	circuit := must(breaker.New(breaker.Config{Name: name, Cache: shared, FailureThreshold: threshold, Staleness: staleness}))
	tb.Cleanup(func() { circuit.Close(); shared.Close() })
	return circuit
}

// BareGet returns what runs a call after a round trip, which is the least that asking for
// each call can cost.
func BareGet(tb testing.TB, addr string) func(context.Context, resilience.Call[int]) (int, error) {
	client := newClient(tb, addr)
	check(client.Set(context.Background(), "bare", "closed", 0).Err())
	return func(ctx context.Context, call resilience.Call[int]) (int, error) {
		if err := client.Get(ctx, "bare").Err(); err != nil {
			return 0, err
		}
		return call(ctx)
	}
}

// SharedGobreaker returns gobreaker's circuit on a server, which runs one call.
func SharedGobreaker(tb testing.TB, addr, name string) func(context.Context, resilience.Call[int]) (int, error) {
	client := newClient(tb, addr)
	settings := gobreakerSettings()
	settings.Name = name
	store := &gobreakerStore{client: client, locks: redsync.New(redsyncgoredis.NewPool(client))}
	circuit := must(gobreaker.NewDistributedCircuitBreaker[int](store, settings))
	return func(ctx context.Context, call resilience.Call[int]) (int, error) {
		return circuit.Execute(func() (int, error) { return call(ctx) })
	}
}

// gobreakerStore keeps gobreaker's state in Redis: a value, and a lock of five seconds.
// It has one caller at a time.
type gobreakerStore struct {
	client *redis.Client
	locks  *redsync.Redsync
	held   *redsync.Mutex
}

func (s *gobreakerStore) Lock(name string) error {
	s.held = s.locks.NewMutex(name, redsync.WithExpiry(5*time.Second))
	return s.held.Lock()
}

func (s *gobreakerStore) Unlock(string) error {
	ok, err := s.held.Unlock()
	if err == nil && !ok {
		err = errors.New("the lock was lost")
	}
	return err
}

func (s *gobreakerStore) GetData(name string) ([]byte, error) {
	return s.client.Get(context.Background(), name).Bytes()
}

func (s *gobreakerStore) SetData(name string, data []byte) error {
	return s.client.Set(context.Background(), name, data, 0).Err()
}
