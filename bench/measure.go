package bench

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Options say how long to measure. See [Measure].
type Options struct {
	Runs  int           // what medians are taken of
	Turns int           // of each entrant in a run
	Turn  time.Duration // how long one lasts, more or less
}

// A Result is what an entrant has needed.
type Result struct {
	Entrant
	Serial   []float64 // ns per call, for each run
	Parallel []float64 // the same, of all callers together
	Allocs   float64   // per call, with one caller
	Trips    float64   // to the server and back, per call, with one caller
	Wrong    float64   // the part of the results that were not what they should have been, in parallel
}

// Measure lets the entrants of a contest take turns, first with one caller and then with
// several at once. An entrant's time in a run is the median of its turns.
func Measure(tb testing.TB, c Contest, server *Server, o Options) []Result {
	results := make([]Result, len(c.Entrants))
	works := make([]Work, len(c.Entrants))
	for i, e := range c.Entrants {
		results[i].Entrant = e
		works[i] = e.Make(tb, server)
	}
	callers := c.callers()
	for i, serial := range turns(works, 1, o) {
		results[i].Serial = serial.times
	}
	for i, parallel := range turns(works, callers, o) {
		results[i].Parallel, results[i].Wrong = parallel.times, parallel.wrong
	}
	for i, work := range works {
		n := 1000
		if c.Redis {
			n = 200
		}
		results[i].Allocs = allocs(work, n)
		if c.Redis {
			before := server.Stats("total_reads_processed")
			work(n)
			// Without the two readings, each of which is a connection with one command.
			results[i].Trips = max(0, float64(server.Stats("total_reads_processed")-before-1)/float64(n))
		}
	}
	return results
}

func (c Contest) callers() int {
	if c.Parallel > 0 {
		return c.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

type timing struct {
	times []float64 // ns per call, for each run
	wrong float64
}

func turns(works []Work, callers int, o Options) []timing {
	sizes := make([]int, len(works)) // calls per caller and turn
	for i, work := range works {
		sizes[i] = size(work, callers, o.Turn)
	}
	timings := make([]timing, len(works))
	made, right := make([]int, len(works)), make([]int, len(works))
	samples := make([][]float64, len(works))
	runtime.GC()
	for range o.Runs {
		for turn := range o.Turns {
			for i := range works {
				i = (i + turn) % len(works) // nobody is always behind the same one
				took, ok := batch(works[i], callers, sizes[i])
				all := sizes[i] * callers
				samples[i] = append(samples[i], float64(took)/float64(all))
				made[i], right[i] = made[i]+all, right[i]+ok
			}
		}
		for i := range works {
			timings[i].times = append(timings[i].times, Median(samples[i]))
			samples[i] = samples[i][:0]
		}
	}
	for i := range works {
		timings[i].wrong = 1 - float64(right[i])/float64(made[i])
	}
	return timings
}

// batch has each caller do the work n times, and returns what all of it took.
func batch(work Work, callers, n int) (took time.Duration, right int) {
	if callers == 1 {
		start := time.Now()
		right = work(n)
		return time.Since(start), right
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for range callers {
		wg.Go(func() {
			ok := work(n)
			mu.Lock()
			right += ok
			mu.Unlock()
		})
	}
	wg.Wait()
	return time.Since(start), right
}

// size finds how many calls of each caller make a turn. It takes the best of a few
// batches, since one that was held up would make turns too short to mean anything.
func size(work Work, callers int, turn time.Duration) int {
	for n := 1; ; n *= 2 {
		least := time.Duration(math.MaxInt64)
		for range 5 {
			took, _ := batch(work, callers, n)
			if least = min(least, took); least < turn/2 {
				break
			}
		}
		if least >= turn/2 {
			return max(1, int(float64(n)*float64(turn)/float64(least)))
		}
	}
}

func allocs(work Work, n int) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	work(n)
	runtime.ReadMemStats(&before)
	work(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

// Median returns the middle one of the values, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
