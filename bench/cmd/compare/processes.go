package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/bench"
)

// The shared breaker is measured between processes, since that is what it is for. The
// command starts itself again, told by this variable what to do.
const workerVariable = "RESILIENCE_BENCH_WORKER"

// circuits are the ways to guard a call that several processes make.
var circuits = []struct {
	name string
	make func(t *run, addr string) func(context.Context, resilience.Call[int]) (int, error)
}{
	{"no sharing", func(*run, string) func(context.Context, resilience.Call[int]) (int, error) {
		return func(ctx context.Context, call resilience.Call[int]) (int, error) { return call(ctx) }
	}},
	{"ours", func(t *run, addr string) func(context.Context, resilience.Call[int]) (int, error) {
		return guarded(resilience.With[int](bench.SharedCircuit(t, addr, "processes", 0)))
	}},
	{"ours, 100 ms stale", func(t *run, addr string) func(context.Context, resilience.Call[int]) (int, error) {
		return guarded(resilience.With[int](bench.SharedCircuit(t, addr, "processes", 100*time.Millisecond)))
	}},
	{"no sharing, but a bare GET first", func(t *run, addr string) func(context.Context, resilience.Call[int]) (int, error) {
		return bench.BareGet(t, addr)
	}},
	{"gobreaker distributed", func(t *run, addr string) func(context.Context, resilience.Call[int]) (int, error) {
		return bench.SharedGobreaker(t, addr, "processes")
	}},
}

func guarded(guard resilience.Decorator[int]) func(context.Context, resilience.Call[int]) (int, error) {
	return func(ctx context.Context, call resilience.Call[int]) (int, error) { return guard(call)(ctx) }
}

// processes counts the calls per second that get through in 1, 2 and 4 processes.
func (r *run) processes(w io.Writer) {
	numbers := []int{1, 2, 4}
	fmt.Fprintln(w, "| calls of 1 ms per second, from so many processes | 1 | 2 | 4 | at 4, beside no sharing |\n|---|---|---|---|---|")
	rates, beside := make([][]float64, len(circuits)), make([]bench.Spread, len(circuits))
	for i := range circuits {
		rates[i] = make([]float64, len(numbers))
	}
	const rounds = 5
	for k, n := range numbers {
		samples := make([][]float64, len(circuits))
		for range rounds {
			for i := range circuits {
				samples[i] = append(samples[i], r.count(i, n))
			}
		}
		for i := range circuits {
			rates[i][k] = bench.Median(samples[i])
			ratios := make([]float64, rounds)
			for round := range ratios {
				ratios[round] = samples[i][round] / samples[0][round]
			}
			beside[i] = bench.SpreadOf(ratios) // the last number's stays
		}
	}
	for i, c := range circuits {
		fmt.Fprintf(w, "| %s |", c.name)
		for _, rate := range rates[i] {
			fmt.Fprintf(w, " %s |", significant(rate))
		}
		fmt.Fprintf(w, " %.2f (%.2f–%.2f) |\n", beside[i].Median, beside[i].Min, beside[i].Max)
	}
	fmt.Fprintln(w, "\nThe goal is 0.9 at four processes, with at most one round trip per call and nearly none with a staleness.")
}

// count has n processes make calls for a while, and returns how many succeed per second.
func (r *run) count(circuit, n int) float64 {
	type process struct {
		*exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var list []process
	for range n {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", workerVariable, circuit, r.server().Addr(), r.calls))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		r.check(err)
		out, err := cmd.StdoutPipe()
		r.check(err)
		r.check(cmd.Start())
		list = append(list, process{cmd, in, bufio.NewReader(out)})
	}
	line := func(p process) string {
		text, err := p.out.ReadString('\n')
		r.check(err)
		return strings.TrimSpace(text)
	}
	for _, p := range list {
		line(p) // is ready
	}
	for _, p := range list {
		fmt.Fprintln(p.in, "go")
	}
	all := 0
	for _, p := range list {
		calls, err := strconv.Atoi(line(p))
		r.check(err)
		r.check(p.Wait())
		all += calls
	}
	return float64(all) / r.calls.Seconds()
}

// worker makes calls if this process was started to do so.
func worker() bool {
	order, ok := os.LookupEnv(workerVariable)
	if !ok {
		return false
	}
	t := new(run)
	defer t.end()
	var circuit int
	var addr, length string
	_, err := fmt.Sscan(order, &circuit, &addr, &length)
	t.check(err)
	lasting, err := time.ParseDuration(length)
	t.check(err)
	execute := circuits[circuit].make(t, addr)
	call := func(context.Context) (int, error) {
		time.Sleep(time.Millisecond)
		return 42, nil
	}
	ctx := context.Background()
	_, err = execute(ctx, call) // connects
	t.check(err)
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	t.check(err)
	calls := 0
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		if value, err := execute(ctx, call); err == nil && value == 42 {
			calls++
		}
	}
	fmt.Println(calls)
	return true
}
