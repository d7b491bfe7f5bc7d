package httptransport_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/resilience-toolkit/resilience/retry"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/timeout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func limit(t testing.TB, d time.Duration) *timeout.Policy {
	t.Helper()
	p, err := timeout.New(d)
	require.NoError(t, err)
	return p
}

func TestEveryResponseIsClosedOnce(t *testing.T) {
	var mu sync.Mutex
	var bodies []*tape
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusServiceUnavailable
		if r.Header.Get("X-Attempt") == "3" && r.Header.Get("X-Succeeds") != "" {
			status = http.StatusOK
		}
		w.WriteHeader(status)
		_, _ = w.Write(make([]byte, 4<<10))
	})
	var sent atomic.Int64
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		req.Header.Set("X-Attempt", fmt.Sprint((sent.Add(1)-1)%3+1))
		r, err := n.Base.RoundTrip(req)
		if err == nil {
			b := &tape{Reader: r.Body}
			r.Body = struct {
				io.Reader
				io.Closer
			}{b, closers{b, r.Body}}
			mu.Lock()
			bodies = append(bodies, b)
			mu.Unlock()
		}
		return r, err
	})
	client := &http.Client{Transport: httptransport.New(base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))}
	for i := range 100 {
		req := get(t, n.URL)
		if i%2 == 0 {
			req.Header.Set("X-Succeeds", "yes")
		}
		r, err := client.Do(req)
		require.NoError(t, err)
		_ = read(t, r)
	}
	require.Len(t, bodies, 300)
	for i, b := range bodies {
		assert.EqualValues(t, 1, b.closes.Load(), i)
	}
	assert.LessOrEqual(t, n.opened.Load(), int64(1), "one after the other, one connection")
}

type closers []io.Closer

func (c closers) Close() error {
	var err error
	for _, each := range c {
		err = errors.Join(err, each.Close())
	}
	return err
}

// loopback serves on a real socket.
type served struct {
	*network
	URL string
}

func loopback(t testing.TB, handler http.HandlerFunc) served {
	server := httptest.NewServer(handler)
	n := served{network: new(network), URL: server.URL}
	n.Base = &http.Transport{
		MaxIdleConnsPerHost: 1000,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return n.count(conn), nil
		},
	}
	t.Cleanup(func() {
		n.Base.CloseIdleConnections()
		server.Close()
	})
	return n
}

func TestTenThousandRequestsLeaveNothingBehind(t *testing.T) {
	const workers, total = 50, 10_000
	var count atomic.Int64
	var together sync.WaitGroup
	together.Add(workers)
	n := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			together.Done()
			together.Wait()
			return
		}
		if count.Add(1)%10 < 3 {
			w.WriteHeader([]int{429, 500, 503}[count.Load()%3])
		}
		fmt.Fprint(w, strings.Repeat("x", int(count.Load()%9000)))
	})
	client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{},
		limit(t, time.Minute), attempts(t, 4, httptransport.Retryable), limit(t, 30*time.Second))}
	before := runtime.NumGoroutine()

	// One connection for each worker. To begin with, http.Transport opens a few more:
	// it does not stop a dial that is overtaken by a connection come free.
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			r, err := client.Get(n.URL + "/together")
			if assert.NoError(t, err) {
				_ = r.Body.Close()
			}
		})
	}
	wg.Wait()
	var failed atomic.Int64
	for range workers {
		wg.Go(func() {
			for range total / workers {
				r, err := client.Get(n.URL)
				if !assert.NoError(t, err) {
					return
				}
				if r.StatusCode != 200 {
					failed.Add(1)
				}
				_, err = io.Copy(io.Discard, r.Body)
				assert.NoError(t, err)
				assert.NoError(t, r.Body.Close())
			}
		})
	}
	wg.Wait()
	assert.Less(t, failed.Load(), int64(total/20))
	assert.Greater(t, count.Load(), int64(total*13/10), "too few were retried for this test")
	assert.LessOrEqual(t, n.opened.Load(), int64(workers+1))
	assert.LessOrEqual(t, n.open.Load(), int64(workers+1))
	client.CloseIdleConnections()
	eventually(t, "connections closed", func() bool { return n.open.Load() == 0 })
	eventually(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before })
}

func TestDiscardedBodyIsReadWithinABound(t *testing.T) {
	for name, length := range map[string]int64{"length told": 10 << 20, "length not told": -1} {
		t.Run(name, func(t *testing.T) {
			long := &tape{Reader: strings.NewReader(strings.Repeat("x", 10<<20))}
			responses := []*http.Response{
				{StatusCode: 503, Body: long, ContentLength: length},
				{StatusCode: 200, Body: http.NoBody},
			}
			base := roundTripper(func(*http.Request) (*http.Response, error) {
				r := responses[0]
				responses = responses[1:]
				return r, nil
			})
			transport := httptransport.New(base, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))
			r, err := transport.RoundTrip(get(t, "http://host.test/"))
			require.NoError(t, err)
			assert.Equal(t, 200, r.StatusCode)
			assert.EqualValues(t, 1, long.closes.Load())
			assert.LessOrEqual(t, long.reads.Load(), int64(64<<10+1))
			if length > 0 {
				assert.Zero(t, long.reads.Load(), "it was known to be in vain")
			}
		})
	}
}

func TestConnectionOfADiscardedResponseIsUsedAgain(t *testing.T) {
	for name, size := range map[string]int{"empty": 0, "small": 100, "at the bound": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			n := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(503)
				w.(http.Flusher).Flush() // length not told
				_, _ = w.Write(make([]byte, size))
			})
			transport := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 5, httptransport.Retryable))
			r, err := transport.RoundTrip(get(t, n.URL))
			require.NoError(t, err)
			_ = read(t, r)
			assert.EqualValues(t, 1, n.opened.Load())
		})
	}
}

func TestAttemptsOfOneCallShareTheOneConnectionAllowed(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%3 != 0 {
			w.WriteHeader(503)
			_, _ = w.Write(make([]byte, 1<<20)) // too much to drain
		}
	})
	n.Base.MaxConnsPerHost = 1
	client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			r, err := client.Get(n.URL)
			if assert.NoError(t, err) {
				_ = r.Body.Close()
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, n.open.Load(), int64(1))
}

func TestBodyThatFailsHalfwayDoesNotStopTheNextAttempt(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(503)
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))
	r, err := transport.RoundTrip(get(t, n.URL))
	require.NoError(t, err)
	assert.Equal(t, 200, r.StatusCode)
	_ = read(t, r)
}

func TestBodyThatStallsDelaysTheNextAttemptByASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		n := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) == 1 {
				w.WriteHeader(503)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		})
		transport := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 2, httptransport.Retryable))
		start := time.Now()
		r, err := transport.RoundTrip(get(t, "http://host.test/"))
		require.NoError(t, err)
		assert.Equal(t, 200, r.StatusCode)
		assert.Equal(t, time.Second, time.Since(start))
		_ = read(t, r)
	})
}

// Each attempt may take a second; the caller has half a minute, or less than two.
func TestAttemptsLimitIsNotTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		n := inMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			if requests.Add(1) < 3 {
				<-r.Context().Done()
			}
		})
		transport := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable), limit(t, time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		r, err := transport.RoundTrip(get(t, "http://host.test/").WithContext(ctx))
		require.NoError(t, err)
		_ = read(t, r)
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.EqualValues(t, 3, requests.Load())
	})
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		n := inMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			<-r.Context().Done()
		})
		client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable), limit(t, time.Second))}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := client.Do(get(t, "http://host.test/").WithContext(ctx))
		assert.Equal(t, 1500*time.Millisecond, time.Since(start))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.EqualValues(t, 2, requests.Load())
	})
}

// The caller's leaving is a timeout if it was by deadline, whatever the attempts ended
// with before.
func TestTimeoutOfAnErrorIsTheCallersIfTheCallerHasGone(t *testing.T) {
	for name, want := range map[string]bool{"deadline": true, "cancellation": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := inMemory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{},
					attempts(t, 3, httptransport.Retryable), limit(t, time.Second))}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if name == "deadline" {
					ctx, cancel = context.WithTimeout(ctx, 1500*time.Millisecond)
					defer cancel()
				} else {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				_, err := client.Do(get(t, "http://host.test/").WithContext(ctx))
				failed, ok := errors.AsType[*url.Error](err)
				require.True(t, ok, "got %v", err)
				assert.Equal(t, want, failed.Timeout(), "%v", err)
			})
		})
	}
}

func TestLimitOfTheWholeEndsTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		n := inMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			<-r.Context().Done()
		})
		client := &http.Client{Transport: httptransport.New(n.Base, httptransport.Config{},
			limit(t, 45*time.Second), attempts(t, 3, httptransport.Retryable), limit(t, 30*time.Second))}
		start := time.Now()
		_, err := client.Do(get(t, "http://host.test/"))
		assert.Equal(t, 45*time.Second, time.Since(start))
		exceeded, ok := errors.AsType[*timeout.ExceededError](err)
		require.True(t, ok, "got %v", err)
		assert.Equal(t, 45*time.Second, exceeded.Limit)
		var timedOut interface{ Timeout() bool }
		require.ErrorAs(t, err, &timedOut)
		assert.True(t, timedOut.Timeout())
		synctest.Wait()
		assert.EqualValues(t, 2, requests.Load())
		assert.Zero(t, n.open.Load(), "the connection of an attempt that was cut off is closed")
	})
}

// slowly sends a body of n bytes, one per second, after headers that take a second.
func slowly(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		w.WriteHeader(200)
		for range n {
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Second):
				_, _ = w.Write([]byte("x"))
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestBodyIsNotCutOffByItsAttemptsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := inMemory(t, slowly(10))
		transport := httptransport.New(n.Base, httptransport.Config{},
			limit(t, 5*time.Second), attempts(t, 2, httptransport.Retryable), limit(t, 2*time.Second))
		r, err := transport.RoundTrip(get(t, "http://host.test/"))
		require.NoError(t, err)
		time.Sleep(time.Hour) // whenever it is read
		assert.Equal(t, "xxxxxxxxxx", read(t, r))
	})
}

func TestLongBodyIsReadableAfterTheAttempt(t *testing.T) {
	var requests atomic.Int64
	n := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(503)
		}
		_, _ = w.Write(make([]byte, 1<<20))
	})
	transport := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 2, httptransport.Retryable), limit(t, time.Minute))
	for range 20 {
		requests.Store(0)
		r, err := transport.RoundTrip(get(t, n.URL))
		require.NoError(t, err)
		assert.Len(t, read(t, r), 1<<20)
	}
}

func TestLimitMayCoverTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := inMemory(t, slowly(10))
		transport := httptransport.New(n.Base, httptransport.Config{LimitBody: true},
			attempts(t, 2, httptransport.Retryable), limit(t, 4500*time.Millisecond))
		start := time.Now()
		r, err := transport.RoundTrip(get(t, "http://host.test/"))
		require.NoError(t, err)
		b, err := io.ReadAll(r.Body)
		assert.Equal(t, 4500*time.Millisecond, time.Since(start))
		assert.Equal(t, "xxx", string(b))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		netErr, ok := errors.AsType[net.Error](err)
		assert.True(t, ok && netErr.Timeout())
		require.NoError(t, r.Body.Close())
		synctest.Wait()
		assert.Zero(t, n.open.Load())
	})
	synctest.Test(t, func(t *testing.T) { // in time
		n := inMemory(t, slowly(3))
		transport := httptransport.New(n.Base, httptransport.Config{LimitBody: true}, limit(t, 4500*time.Millisecond))
		r, err := transport.RoundTrip(get(t, "http://host.test/"))
		require.NoError(t, err)
		assert.Equal(t, "xxx", read(t, r))
	})
}

func TestCallerMayCancelWhileTheBodyIsRead(t *testing.T) {
	for name, policies := range map[string][]resilience.Policy{
		"no limit": {attempts(t, 2, httptransport.Retryable)},
		"limited":  {attempts(t, 2, httptransport.Retryable), limit(t, time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := inMemory(t, slowly(10))
				ctx, cancel := context.WithCancelCause(t.Context())
				shutdown := errors.New("shutting down")
				time.AfterFunc(3500*time.Millisecond, func() { cancel(shutdown) })
				r, err := httptransport.New(n.Base, httptransport.Config{}, policies...).RoundTrip(get(t, "http://host.test/").WithContext(ctx))
				require.NoError(t, err)
				b, err := io.ReadAll(r.Body)
				assert.Equal(t, "xx", string(b))
				assert.ErrorIs(t, err, shutdown)
				require.NoError(t, r.Body.Close())
				synctest.Wait()
				assert.Zero(t, n.open.Load())
			})
		})
	}
}

func TestResponseThatComesWithTheLimitIsTooLateOrWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			n := inMemory(t, slowly(3))
			transport := httptransport.New(n.Base, httptransport.Config{}, limit(t, time.Second))
			r, err := transport.RoundTrip(get(t, "http://host.test/"))
			if err != nil {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				continue
			}
			assert.Equal(t, "xxx", read(t, r))
		}
	})
}

// contexts records those that a base was given.
type contexts struct {
	base http.RoundTripper
	all  []context.Context
}

func (c *contexts) RoundTrip(req *http.Request) (*http.Response, error) {
	c.all = append(c.all, req.Context())
	return c.base.RoundTrip(req)
}

func TestAttemptsContextIsReleased(t *testing.T) {
	for _, within := range []time.Duration{0, time.Minute} {
		for name, end := range map[string]func(*http.Response){
			"at the body's end": func(r *http.Response) { _, _ = io.Copy(io.Discard, r.Body) },
			"by its close":      func(r *http.Response) { _ = r.Body.Close() },
		} {
			t.Run(fmt.Sprintf("%s, limit %v", name, within), func(t *testing.T) {
				url, _ := script(t, 503, 200)
				base := &contexts{base: http.DefaultTransport}
				policies := []resilience.Policy{attempts(t, 2, httptransport.Retryable)}
				if within > 0 {
					policies = append(policies, limit(t, within))
				}
				r, err := httptransport.New(base, httptransport.Config{LimitBody: true}, policies...).RoundTrip(get(t, url))
				require.NoError(t, err)
				require.Len(t, base.all, 2)
				assert.ErrorIs(t, base.all[0].Err(), context.Canceled, "discarded")
				assert.NoError(t, base.all[1].Err())
				end(r)
				assert.ErrorIs(t, base.all[1].Err(), context.Canceled)
				_ = r.Body.Close()
			})
		}
		t.Run(fmt.Sprintf("without a body, limit %v", within), func(t *testing.T) {
			base := &contexts{base: roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
			})}
			r, err := httptransport.New(base, httptransport.Config{}).RoundTrip(get(t, "http://host.test/"))
			require.NoError(t, err)
			assert.Equal(t, http.NoBody, r.Body)
			assert.Error(t, base.all[0].Err())
		})
		t.Run(fmt.Sprintf("after an error, limit %v", within), func(t *testing.T) {
			base := &contexts{base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.EOF })}
			_, err := httptransport.New(base, httptransport.Config{}).RoundTrip(get(t, "http://host.test/"))
			assert.Equal(t, io.EOF, err)
			assert.Error(t, base.all[0].Err())
		})
	}
}

func TestWithoutALimitTheCallersCancellationIsSeenAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		cancel()
		return nil, req.Context().Err()
	})
	transport := httptransport.New(base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable))
	_, err := transport.RoundTrip(get(t, "http://host.test/").WithContext(ctx))
	assert.ErrorIs(t, err, context.Canceled)
}

type valueKey struct{}

func TestBaseSeesWhatThePoliciesSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addValue := policy(func(ctx context.Context, op func(context.Context) error) error {
			return op(context.WithValue(ctx, valueKey{}, "traced"))
		})
		var left time.Duration
		var value any
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx := req.Context()
			deadline, _ := ctx.Deadline()
			left, value = time.Until(deadline), ctx.Value(valueKey{})
			<-ctx.Done()
			return nil, ctx.Err() // as a base does that knows no causes
		})
		transport := httptransport.New(base, httptransport.Config{}, addValue, limit(t, time.Second))
		_, err := transport.RoundTrip(get(t, "http://host.test/"))
		assert.Equal(t, time.Second, left)
		assert.Equal(t, "traced", value)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, context.Canceled)
		_, ours := errors.AsType[*timeout.ExceededError](err)
		assert.True(t, ours)
	})
}

func TestPanicLeavesNothingOpen(t *testing.T) {
	for name, test := range map[string]struct {
		after  bool
		failed func(*http.Response) bool
	}{
		"in a policy, after the attempt": {after: true},
		"in Config.Failed":               {failed: func(*http.Response) bool { panic("boom") }},
	} {
		t.Run(name, func(t *testing.T) {
			body := &tape{Reader: strings.NewReader("sorry")}
			base := &contexts{base: roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Body: body, ContentLength: 5}, nil
			})}
			transport := httptransport.New(base, httptransport.Config{Failed: test.failed},
				policy(func(ctx context.Context, op func(context.Context) error) error {
					err := op(ctx)
					if test.after {
						panic("boom")
					}
					return err
				}))
			assert.PanicsWithValue(t, "boom", func() { _, _ = transport.RoundTrip(get(t, "http://host.test/")) })
			assert.EqualValues(t, 1, body.closes.Load())
			assert.Error(t, base.all[0].Err())
		})
	}
	t.Run("in the base", func(t *testing.T) {
		base := &contexts{base: roundTripper(func(*http.Request) (*http.Response, error) { panic("boom") })}
		assert.PanicsWithValue(t, "boom", func() {
			_, _ = httptransport.New(base, httptransport.Config{}).RoundTrip(get(t, "http://host.test/"))
		})
		assert.Error(t, base.all[0].Err())
	})
}

// Latencies, statuses, bodies, cancellations and careless readers in any combination.
// A goroutine left behind would keep the bubble from ending.
func TestNothingIsLeftHoweverCallsEnd(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			pick := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			pause := func(ctx context.Context) bool {
				select {
				case <-time.After(time.Duration(pick(2000)) * time.Millisecond):
					return true
				case <-ctx.Done():
					return false
				}
			}
			n := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
				if !pause(r.Context()) {
					return
				}
				switch pick(6) {
				case 0:
					panic(http.ErrAbortHandler)
				case 1, 2:
					w.WriteHeader(503)
				}
				for range pick(4) {
					_, _ = w.Write(make([]byte, pick(50_000)))
					w.(http.Flusher).Flush()
					if !pause(r.Context()) {
						return
					}
				}
			})
			var contexts []context.Context
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				contexts = append(contexts, req.Context())
				mu.Unlock()
				return n.Base.RoundTrip(req)
			})
			transport := httptransport.New(base, httptransport.Config{LimitBody: seed%2 == 0},
				limit(t, 6*time.Second), attempts(t, 3, httptransport.Retryable), limit(t, 3*time.Second))
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() {
					ctx := t.Context()
					if pick(2) == 0 {
						limited, cancel := context.WithTimeout(ctx, time.Duration(pick(9000))*time.Millisecond)
						t.Cleanup(cancel) // not before it has been looked at what is left
						ctx = limited
					}
					r, err := transport.RoundTrip(get(t, "http://host.test/").WithContext(ctx))
					if err != nil {
						return
					}
					_, _ = io.CopyN(io.Discard, r.Body, int64(pick(100_000)))
					_ = r.Body.Close()
				})
			}
			wg.Wait()
			assert.NotEmpty(t, contexts)
			for _, ctx := range contexts {
				assert.Error(t, ctx.Err())
			}
			n.Base.CloseIdleConnections()
			synctest.Wait()
			assert.Zero(t, n.open.Load())
		})
	}
}

// A policy that does not wait for its attempt breaks the rules, and loses its own
// call and nothing else.
func TestPolicyThatWalksAwayLeaksNothing(t *testing.T) {
	for _, says := range []error{nil, errors.New("gave up")} {
		t.Run(fmt.Sprint(says), func(t *testing.T) {
			body := &tape{Reader: strings.NewReader("late")}
			reached, answer := make(chan struct{}), make(chan struct{})
			base := roundTripper(func(*http.Request) (*http.Response, error) {
				close(reached)
				<-answer
				return &http.Response{StatusCode: 200, Body: body, ContentLength: 4}, nil
			})
			ended := make(chan error, 2)
			transport := httptransport.New(base, httptransport.Config{}, policy(func(ctx context.Context, op func(context.Context) error) error {
				go func() {
					ended <- op(ctx)
					ended <- op(ctx) // and once more
				}()
				<-reached
				return says
			}))
			r, err := transport.RoundTrip(get(t, "http://host.test/"))
			assert.Nil(t, r)
			assert.Error(t, err)
			close(answer)
			<-ended
			assert.EqualValues(t, 1, body.closes.Load())
			assert.ErrorIs(t, <-ended, resilience.ErrRejected)
		})
	}
}

func TestSuccessWithoutAResponseIsAnError(t *testing.T) {
	swallow := policy(func(ctx context.Context, op func(context.Context) error) error {
		_ = op(ctx)
		return nil
	})
	broken := roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.EOF })
	r, err := httptransport.New(broken, httptransport.Config{}, swallow).RoundTrip(get(t, "http://host.test/"))
	assert.Nil(t, r)
	assert.ErrorContains(t, err, "without a response")

	nothing := roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })
	r, err = httptransport.New(nothing, httptransport.Config{}).RoundTrip(get(t, "http://host.test/"))
	assert.Nil(t, r)
	assert.ErrorContains(t, err, "neither a response nor an error")
}

func TestResponseThatComesWithAnErrorIsClosed(t *testing.T) {
	body := &tape{Reader: strings.NewReader("x")}
	broken := errors.New("both")
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: body}, broken
	})
	r, err := httptransport.New(base, httptransport.Config{}).RoundTrip(get(t, "http://host.test/"))
	assert.Nil(t, r)
	assert.Equal(t, broken, err)
	assert.EqualValues(t, 1, body.closes.Load())
}

func TestCallersDeadlineWhileTheBodyIsReadIsTheCallers(t *testing.T) {
	derive := policy(func(ctx context.Context, op func(context.Context) error) error {
		ctx, cancel := context.WithCancel(ctx) // a context of its own, and no limit
		defer cancel()
		return op(ctx)
	})
	for name, p := range map[string]resilience.Policy{"no limit": derive, "a longer limit": limit(t, time.Minute)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
				callers := errors.New("the caller's time is up")
				for range 20 { // two timers at one instant fire in any order
					ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, callers)
					r, err := httptransport.New(n.Base, httptransport.Config{LimitBody: true}, p).
						RoundTrip(get(t, "http://host.test/").WithContext(ctx))
					require.NoError(t, err)
					_, err = io.ReadAll(r.Body)
					assert.ErrorIs(t, err, callers)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					_ = r.Body.Close()
					cancel()
				}
				n.Base.CloseIdleConnections()
			})
		})
	}
}

func TestDiscardingABodyKeepsWithinTheLimitOfTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // in the middle of its apology
		})
		again := retrying(t, always, retry.Config{Backoff: retry.Constant(50 * time.Millisecond)})
		start := time.Now()
		_, err := httptransport.New(n.Base, httptransport.Config{}, limit(t, 100*time.Millisecond), again).
			RoundTrip(get(t, "http://host.test/"))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 100*time.Millisecond, time.Since(start))
		n.Base.CloseIdleConnections()
	})
}

func TestLimitThatRanOutIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := inMemory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		for method, want := range map[string]string{
			"GET":  "retry: gave up after 2 attempts: attempts used up: timeout: limit of 1s exceeded",
			"POST": "timeout: limit of 1s exceeded",
		} {
			req := get(t, "http://host.test/")
			req.Method = method
			_, err := httptransport.New(n.Base, httptransport.Config{}, attempts(t, 2, httptransport.Retryable), limit(t, time.Second)).RoundTrip(req)
			assert.EqualError(t, err, want)
		}
		n.Base.CloseIdleConnections()
	})
}
