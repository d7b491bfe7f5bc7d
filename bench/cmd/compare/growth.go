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
			fmt.Fprintf(w, " %s |", count(size))
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
	few, many := bench.RedisBytes(r, r.server())
	fmt.Fprintln(w, "| bytes | a key with one hit | a further hit, up to the 128th | a hit after those |\n|---|---|---|---|")
	fmt.Fprintf(w, "| in memory | %.0f | %.1f | %.1f |\n", m.Key, m.Hit, m.Hit)
	fmt.Fprintf(w, "| in Redis, by MEMORY USAGE | %.0f | %.1f | %.1f |\n\n", few.Key, few.Hit, many.Hit)

	fmt.Fprintf(w, "| µs of the server for an acquire, by its own account | its main thread, one caller | its main thread, %d callers | of that in the script |\n|---|---|---|---|\n", bench.Callers)
	for _, e := range bench.ServerCosts() {
		r.scope(func() {
			c := bench.ServerCost(r, r.server(), e.Make(r, r.server()), 20_000, "evalsha")
			fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f |\n", e.Name, c.Thread, c.Busy, c.Script)
		})
	}
}
