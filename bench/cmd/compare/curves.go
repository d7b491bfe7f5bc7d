package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/resilience-toolkit/resilience/bench"
)

// plots measures what is better seen than read, and draws it.
func (r *run) plots(dir string) {
	r.check(os.MkdirAll(dir, 0o755))
	serial, shared := r.local, r.shared
	serial.Runs, shared.Runs = 3, 3

	keys := []int{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
	r.check(drawChart(filepath.Join(dir, "keys.png"), chart{
		title: "One admission, in the memory of one process, against the number of keys",
		y:     "ns per call", x: "keys, asked in turn by one goroutine",
		series: r.curves(keys, func(size int) ([]bench.Entrant, int, bench.Options) {
			return bench.Crowd(size), 1, serial
		}),
	}))

	goroutines := []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	r.check(drawChart(filepath.Join(dir, "goroutines.png"), chart{
		title: "One admission, in the memory of one process, against the number of goroutines",
		y:     "ns per call, all goroutines together", x: "goroutines, asking 10,000 keys in turn",
		series: r.curves(goroutines, func(size int) ([]bench.Entrant, int, bench.Options) {
			return bench.Crowd(10_000), size, serial
		}),
	}))
	r.check(drawChart(filepath.Join(dir, "redis.png"), chart{
		title: "One admission over Redis, against the number of goroutines",
		y:     "µs per call, all goroutines together", x: "goroutines, all asking for one key", by: 1000,
		series: r.curves(goroutines, func(size int) ([]bench.Entrant, int, bench.Options) {
			return bench.SharedCrowd(), size, shared
		}),
	}))
}

// curves measures everybody at each size.
func (r *run) curves(sizes []int, at func(size int) ([]bench.Entrant, int, bench.Options)) []series {
	var list []series
	for _, size := range sizes {
		fmt.Fprintln(os.Stderr, "measuring a curve at", size)
		entrants, callers, o := at(size)
		r.scope(func() {
			for i, times := range bench.MeasureAt(r, entrants, callers, r.server(), o) {
				if len(list) <= i {
					list = append(list, series{name: entrants[i].Name, ours: entrants[i].Ours()})
				}
				list[i].x = append(list[i].x, float64(size))
				list[i].y = append(list[i].y, bench.Median(times))
			}
		})
	}
	return list
}
