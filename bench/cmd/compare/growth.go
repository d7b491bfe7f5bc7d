package main

import (
	"fmt"
	"io"
	"os"

	"github.com/resilience-toolkit/resilience/bench"
)

// growth is a table for each thing that may grow.
func (r *run) growth(w io.Writer) {
	type row struct {
		name  string
		times []float64
	}
	var withs []string
	rows, sizes := map[string][]row{}, map[string][]int{}
	for _, g := range bench.Growths() {
		fmt.Fprintln(os.Stderr, "measuring growth with the", g.With+":", g.Name)
		o := r.local
		if g.Redis {
			o = r.shared
		}
		o.Runs = 1
		var times []float64
		r.scope(func() { times = bench.MeasureGrowth(r, g, r.server(), o) })
		if rows[g.With] == nil {
			withs = append(withs, g.With)
			sizes[g.With] = g.Sizes
		}
		rows[g.With] = append(rows[g.With], row{g.Name, times})
	}
	for _, with := range withs {
		fmt.Fprintf(w, "| ns per call, with %s |", with)
		for _, size := range sizes[with] {
			fmt.Fprintf(w, " %s |", significant(float64(size)))
		}
		fmt.Fprint(w, "\n|---|")
		for range sizes[with] {
			fmt.Fprint(w, "---|")
		}
		fmt.Fprintln(w)
		for _, row := range rows[with] {
			fmt.Fprintf(w, "| %s |", row.name)
			for _, t := range row.times {
				fmt.Fprintf(w, " %s |", significant(t))
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
}

// bytes is what a key and a hit take, and what the server works for a call.
func (r *run) bytes(w io.Writer) {
	m := bench.MemoryBytes()
	s := bench.RedisBytes(r, r.server())
	fmt.Fprintln(w, "| bytes | a key with one hit | a further hit |\n|---|---|---|")
	fmt.Fprintf(w, "| in memory | %.0f | %.1f |\n| in Redis | %.0f | %.1f |\n\n", m.Key, m.Hit, s.Key, s.Hit)

	fmt.Fprintln(w, "| the server's own time for an acquire | µs |\n|---|---|")
	for _, c := range bench.ServerCosts() {
		r.scope(func() {
			fmt.Fprintf(w, "| %s | %.1f |\n", c.Name, bench.ServerCost(r, r.server(), c.Make(r, r.server()), 5_000, "evalsha"))
		})
	}
}
