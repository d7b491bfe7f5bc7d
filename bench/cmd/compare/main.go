// Command compare measures the toolkit beside its peers and prints a table of ratios:
//
//	go run ./cmd/compare            # everything, some ten minutes
//	go run ./cmd/compare -quick     # to see that it runs
//	go run ./cmd/compare -docs ../docs  # and write it into docs/performance.md, with the plots
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/resilience-toolkit/resilience/bench"
)

func main() {
	only := flag.String("only", "", "measure the contests whose name matches this expression, and nothing else")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	tb := new(run)
	defer tb.end()
	o := bench.Options{Runs: 5, Turns: 20, Turn: 500 * time.Microsecond}
	ro := bench.Options{Runs: 5, Turns: 6, Turn: 20 * time.Millisecond}
	for _, c := range bench.Contests() {
		if !pattern.MatchString(c.Name) {
			continue
		}
		r := bench.Measure(tb, c, tb.server(), map[bool]bench.Options{false: o, true: ro}[c.Redis])
		j := c.Judge(r)
		fmt.Printf("## %s: %.2f (%.2f-%.2f) %s, %.2f (%.2f-%.2f) %s of %s; %.2f allocs %s\n", c.Name, j.Serial.Median, j.Serial.Min, j.Serial.Max, j.SerialVerdict, j.Parallel.Median, j.Parallel.Min, j.Parallel.Max, j.ParallelVerdict, j.Rival, j.Allocs, j.AllocsVerdict)
		for _, x := range r {
			s, p := bench.SpreadOf(x.Serial), bench.SpreadOf(x.Parallel)
			fmt.Printf("   %-28s %9.1f (%.1f-%.1f) / %9.1f (%.1f-%.1f)  %.2f allocs %.2f trips  wrong %.3f\n", x.Name, s.Median, s.Min, s.Max, p.Median, p.Min, p.Max, x.Allocs, x.Trips, x.Wrong)
		}
	}
}
