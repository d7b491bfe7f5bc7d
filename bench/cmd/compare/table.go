package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience/bench"
)

// The modules that are compared with.
var peers = map[string]bool{
	"github.com/avast/retry-go/v5": true, "github.com/cenkalti/backoff/v5": true,
	"github.com/eapache/go-resiliency": true, "github.com/failsafe-go/failsafe-go": true,
	"github.com/go-redis/redis_rate/v10": true, "github.com/redis/go-redis/v9": true,
	"github.com/sethvargo/go-limiter": true, "github.com/sethvargo/go-retry": true,
	"github.com/sony/gobreaker/v2": true, "github.com/throttled/throttled/v2": true,
	"github.com/ulule/limiter/v3": true, "go.uber.org/ratelimit": true, "golang.org/x/time": true,
}

// machine says where and with what the run was made.
func (r *run) machine(w io.Writer) {
	fmt.Fprintf(w, "%s, %d of them; %s/%s, %s; %s; load average when it began %s; %s.\n",
		cpu(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, strings.Replace(runtime.Version(), "go", "Go ", 1),
		redisVersion(), load(), time.Now().UTC().Format("2 January 2006, 15:04 UTC"))
	fmt.Fprintf(w, "Medians of %d runs of %d turns, in a run the median of its turns; over Redis of %d turns.\n\nPeers:", r.local.Runs, r.local.Turns, r.shared.Turns)
	info, _ := debug.ReadBuildInfo()
	separator := " "
	for _, m := range info.Deps {
		if peers[m.Path] {
			fmt.Fprintf(w, "%s%s %s", separator, m.Path, m.Version)
			separator = ",\n"
		}
	}
	fmt.Fprintln(w, ".")
}

func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "a processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "a processor"
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	if first == "" {
		return "unknown"
	}
	return first
}

func redisVersion() string {
	out, _ := exec.Command("redis-server", "--version").Output()
	for word := range strings.FieldsSeq(string(out)) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			return "Redis " + v + " on the loopback interface"
		}
	}
	return "no Redis"
}

// ratios is the table of the goals.
func ratios(w io.Writer, results []result) {
	fmt.Fprintln(w, "| | beside | one caller | several | allocations | the goal | |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, r := range results {
		j, goal, how := r.Judge(r.times), "none", ""
		if r.Goal.Text != "" {
			goal, how = r.Goal.Text, verdict(j)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", title(r.Name), j.Rival,
			compared(r.Goal, j.Serial, j.SerialMore), compared(r.Goal, j.Parallel, j.ParallelMore), number(j.Allocs), goal, how)
	}
}

func title(name string) string { return strings.Replace(name, "/", ": ", 1) }

func compared(g bench.Goal, ratio, more bench.Spread) string {
	if g.Plus > 0 {
		return fmt.Sprintf("**%+.1f ns** (%+.1f–%+.1f)", more.Median, more.Min, more.Max)
	}
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", ratio.Median, ratio.Min, ratio.Max)
}

func number(x float64) string { return fmt.Sprintf("%.0f", x) }

func verdict(j bench.Judgement) string {
	if j.SerialVerdict == bench.Met && j.ParallelVerdict == bench.Met && j.AllocsVerdict == bench.Met && j.TripsVerdict == bench.Met {
		return "met"
	}
	var list []string
	for _, v := range []struct {
		of string
		bench.Verdict
	}{{"one caller", j.SerialVerdict}, {"several", j.ParallelVerdict}, {"allocations", j.AllocsVerdict}, {"round trips", j.TripsVerdict}} {
		if v.Verdict != bench.Met {
			list = append(list, v.of+": "+string(v.Verdict))
		}
	}
	return strings.Join(list, "; ")
}

// details is a table for each contest.
func details(w io.Writer, results []result) {
	for _, r := range results {
		fmt.Fprintf(w, "### %s\n\n%s\n\n", title(r.Name), r.Notes)
		unit, by := "ns", 1.
		if r.Redis {
			unit, by = "µs", 1000
		}
		several := r.Parallel
		if several == 0 {
			several = runtime.GOMAXPROCS(0)
		}
		fmt.Fprintf(w, "| | %s, one caller | %s, %d callers | ours divided by it | allocations |", unit, unit, several)
		if r.Redis {
			fmt.Fprint(w, " round trips |")
		}
		fmt.Fprintf(w, "\n|---|---|---|---|---|%s\n", strings.Repeat("---|", map[bool]int{true: 1}[r.Redis]))
		for _, x := range r.times {
			divided := ""
			if !x.Ours() {
				divided = fmt.Sprintf("%.2f / %.2f", bench.Median(r.times[0].Serial)/bench.Median(x.Serial),
					bench.Median(r.times[0].Parallel)/bench.Median(x.Parallel))
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |", x.Name, spread(x.Serial, by), spread(x.Parallel, by), divided, number(x.Allocs))
			if r.Redis {
				fmt.Fprintf(w, " %.2f |", x.Trips)
			}
			fmt.Fprintln(w)
		}
		for _, x := range r.times {
			if x.Wrong > 0.0005 {
				fmt.Fprintf(w, "\nOf the %d callers' calls of %s, %.0f %% failed or were answered wrongly.\n", several, x.Name, 100*x.Wrong)
			}
		}
		fmt.Fprintln(w)
	}
}

func spread(values []float64, by float64) string {
	s := bench.SpreadOf(values)
	return fmt.Sprintf("%s (%s–%s)", significant(s.Median/by), significant(s.Min/by), significant(s.Max/by))
}

// significant has as many digits as mean anything.
func significant(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.1f", x)
	case x < 1000:
		return fmt.Sprintf("%.0f", x)
	}
	return count(int(x + 0.5))
}

// count groups the digits of a number of things.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
