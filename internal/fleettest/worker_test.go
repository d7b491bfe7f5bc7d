// Package fleettest tests what only several processes can show: that limiters and breakers
// on one Redis are one, whatever becomes of the processes and of the server. The test
// binary starts itself again as a worker, as often as a test needs.
package fleettest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/redis"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// patience is a time limit that a busy machine keeps, for tests that are not about it.
const patience = 20 * time.Second

// A job is what a worker is told to do.
type job struct {
	Do  string // the name of a function in jobs
	URL string

	Limit      int
	Window     time.Duration
	MaxWait    time.Duration
	Limiters   int
	Goroutines int // of each limiter or breaker
	For        time.Duration

	Breakers int
	Breaker  breakerConfig
}

type breakerConfig struct {
	Threshold int
	Recovery  time.Duration
	Lease     time.Duration
}

// A result is what a worker has seen.
type result struct {
	Admitted int
	Refused  int
	Outages  int
	Unsound  []string // what should not have happened
	Slots    []slot   // what was recorded, by the server's clock
	States   []string
}

type slot struct {
	Asked int64 // when the server was asked, in its microseconds
	At    int64 // when the slot is
	Done  int64 // when the caller went ahead, in microseconds of this machine's clock
}

func (r *result) add(other result) {
	r.Admitted += other.Admitted
	r.Refused += other.Refused
	r.Outages += other.Outages
	r.Unsound = append(r.Unsound, other.Unsound...)
	r.Slots = append(r.Slots, other.Slots...)
	r.States = append(r.States, other.States...)
}

// ---- the side of the test ----

type worker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  interface{ Write([]byte) (int, error) }
	out *bufio.Scanner
}

// start starts n workers for a job and returns when each has said that it is ready.
func start(t *testing.T, n int, j job) []*worker {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	var all []*worker
	for range n {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "FLEETTEST_JOB="+string(text))
		// The driver logs every connection that a test has cut.
		stderr := new(bytes.Buffer)
		cmd.Stderr = stderr
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("a worker said: %s", stderr)
			}
		})
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		w := &worker{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
		w.out.Buffer(nil, 16<<20)
		t.Cleanup(w.kill)
		all = append(all, w)
	}
	for _, w := range all {
		w.expect("ready")
	}
	return all
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

func (w *worker) line() string {
	w.t.Helper()
	require.True(w.t, w.out.Scan(), "the worker has ended: %v", w.out.Err())
	return w.out.Text()
}

func (w *worker) expect(line string) {
	w.t.Helper()
	require.Equal(w.t, line, w.line())
}

// release lets all workers go on at the same moment.
func release(all []*worker) {
	for _, w := range all {
		_, err := w.in.Write([]byte("go\n"))
		require.NoError(w.t, err)
	}
}

// collect waits for the results and adds them up.
func collect(t *testing.T, all []*worker) result {
	t.Helper()
	var sum result
	for _, w := range all {
		var r result
		require.NoError(t, json.Unmarshal([]byte(w.line()), &r))
		sum.add(r)
	}
	require.Empty(t, sum.Unsound)
	return sum
}

// ---- the side of the worker ----

func TestMain(m *testing.M) {
	if text := os.Getenv("FLEETTEST_JOB"); text != "" {
		work(text)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var jobs = map[string]func(*bench){
	"limit": doLimit, "wait": doWait, "probe": doProbe, "hang": doHang, "fail": doFail, "traffic": doTraffic,
}

// A bench is where a worker works.
type bench struct {
	job
	in *bufio.Scanner

	mu sync.Mutex
	result
}

func work(text string) {
	b := &bench{in: bufio.NewScanner(os.Stdin)}
	if err := json.Unmarshal([]byte(text), &b.job); err != nil {
		panic(err)
	}
	jobs[b.Do](b)
	out, err := json.Marshal(b.result)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out))
}

// meet says something to the test and waits for its signal. A test that has gone takes
// its workers with it.
func (b *bench) meet(say string) {
	fmt.Println(say)
	if !b.in.Scan() {
		os.Exit(1)
	}
}

func (b *bench) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var limited *ratelimit.ExceededError
	var open *breaker.OpenError
	var away *cache.UnavailableError
	switch {
	case err == nil:
		b.Admitted++
	case errors.As(err, &limited):
		b.Refused++
		if limited.RetryAfter() <= 0 {
			b.Unsound = append(b.Unsound, err.Error())
		}
	case errors.As(err, &open):
		b.Refused++
	case errors.As(err, &away):
		b.Outages++
	default:
		b.Unsound = append(b.Unsound, err.Error())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A recorder is a cache that notes each slot it gives.
type recorder struct {
	*redis.Cache
	b *bench
}

func (r recorder) Acquire(ctx context.Context, key string, q cache.Request) (cache.Grant, error) {
	g, err := r.Cache.Acquire(ctx, key, q)
	if g.OK {
		r.b.mu.Lock()
		r.b.Slots = append(r.b.Slots, slot{Asked: g.Slot.At - g.Wait.Microseconds(), At: g.Slot.At})
		r.b.mu.Unlock()
	}
	return g, err
}

func (b *bench) limiters() []*ratelimit.Limiter {
	var all []*ratelimit.Limiter
	for range b.Limiters {
		c := must(redis.Open(b.URL, redis.Config{Timeout: patience}))
		all = append(all, must(ratelimit.New(b.Limit, b.Window, ratelimit.Config{Cache: recorder{c, b}, MaxWait: b.MaxWait})))
	}
	return all
}

// doLimit asks once from every goroutine, or again and again For a while.
func doLimit(b *bench) {
	limiters := b.limiters()
	b.meet("ready")
	until := time.Now().Add(b.For)
	var all sync.WaitGroup
	for _, l := range limiters {
		for range b.Goroutines {
			all.Go(func() {
				for {
					b.note(l.Acquire(context.Background(), "tenant"))
					if time.Now().After(until) {
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// doWait waits for a slot with every goroutine, and notes when each went ahead.
func doWait(b *bench) {
	c := must(redis.Open(b.URL, redis.Config{Timeout: patience}))
	b.meet("ready")
	var all sync.WaitGroup
	for range b.Goroutines {
		all.Go(func() {
			var mine bench // a limiter each, to know whose slot it was
			l := must(ratelimit.New(b.Limit, b.Window, ratelimit.Config{Cache: recorder{c, &mine}, MaxWait: b.MaxWait}))
			err := l.Acquire(context.Background(), "tenant")
			done := time.Now().UnixMicro()
			b.note(err)
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(mine.Slots) != 1 {
				b.Unsound = append(b.Unsound, fmt.Sprintf("%d acquires", len(mine.Slots)))
				return
			}
			mine.Slots[0].Done = done
			b.Slots = append(b.Slots, mine.Slots[0])
		})
	}
	all.Wait()
}

// doTraffic asks the limiter and the breaker again and again until the test says that it
// is enough, whatever becomes of the server.
func doTraffic(b *bench) {
	c := must(redis.Open(b.URL, redis.Config{}))
	l := must(ratelimit.New(b.Limit, b.Window, ratelimit.Config{Cache: recorder{c, b}}))
	circuit := b.breaker(c)
	b.meet("ready")
	var enough atomic.Bool
	var all sync.WaitGroup
	for range b.Goroutines {
		all.Go(func() {
			for !enough.Load() {
				start := time.Now()
				b.note(l.Acquire(context.Background(), "tenant"))
				if err := circuit.Do(context.Background(), func(context.Context) error { return nil }); err != nil {
					b.note(fmt.Errorf("a healthy call was refused: %v", err))
				}
				if took := time.Since(start); took > 5*time.Second {
					b.note(fmt.Errorf("a call took %v", took))
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	b.meet("going")
	enough.Store(true)
	all.Wait()
	// Longer than a read may take. Whatever was abandoned has ended by then.
	time.Sleep(1200 * time.Millisecond)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if n := bytes.Count(stacks, []byte("redis.(*Cache)")); n > 0 {
		b.Unsound = append(b.Unsound, fmt.Sprintf("%d operations are still under way", n))
	}
}

func (b *bench) breaker(c *redis.Cache) *breaker.Breaker {
	return must(breaker.New(breaker.Config{
		Name: "host", Cache: c, FailureThreshold: b.Breaker.Threshold,
		RecoveryTimeout: b.Breaker.Recovery, ProbeLease: b.Breaker.Lease,
		OnStoreError: func(_ context.Context, err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.Outages++
		},
	}))
}

// doProbe calls from every goroutine when recovery is due; what is let through takes long.
func doProbe(b *bench) {
	c := must(redis.Open(b.URL, redis.Config{Timeout: patience}))
	circuit := b.breaker(c)
	b.meet("ready")
	var all sync.WaitGroup
	for range b.Goroutines {
		all.Go(func() {
			b.note(circuit.Do(context.Background(), func(context.Context) error {
				time.Sleep(b.For)
				return nil
			}))
		})
	}
	all.Wait()
}

// doHang takes the probe's place and never comes back.
func doHang(b *bench) {
	c := must(redis.Open(b.URL, redis.Config{Timeout: patience}))
	circuit := b.breaker(c)
	b.meet("ready")
	b.note(circuit.Do(context.Background(), func(context.Context) error {
		b.meet("probing")
		return nil
	}))
}

var errDown = errors.New("the host is down")

// doFail lets all calls in, and then all of them fail at the same moment.
func doFail(b *bench) {
	var circuits []*breaker.Breaker
	for range b.Breakers {
		circuits = append(circuits, b.breaker(must(redis.Open(b.URL, redis.Config{Timeout: patience}))))
	}
	b.meet("ready")
	var in, all sync.WaitGroup
	fail := make(chan struct{})
	for _, circuit := range circuits {
		for range b.Goroutines {
			in.Add(1)
			all.Go(func() {
				err := circuit.Do(context.Background(), func(context.Context) error {
					in.Done()
					<-fail
					return errDown
				})
				if !errors.Is(err, errDown) {
					b.note(fmt.Errorf("a call on a closed circuit: %v", err))
				}
			})
		}
	}
	in.Wait()
	b.meet("in")
	close(fail)
	all.Wait()
	b.meet("failed")
	for _, circuit := range circuits {
		b.States = append(b.States, must(circuit.State(context.Background())).String())
	}
}

// mostIn returns the most slots that any span of a window holds.
func mostIn(slots []slot, window time.Duration) int {
	slices.SortFunc(slots, func(a, b slot) int { return int(a.At - b.At) })
	most, first := 0, 0
	for i, s := range slots {
		for s.At-slots[first].At >= window.Microseconds() {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
