package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestGoalsAreJudgedRunByRun(t *testing.T) {
	c := Contest{
		Goal:     Goal{Ratio: 1, Allocs: 1, Rivals: []string{"a", "b"}},
		Entrants: []Entrant{{Name: "ours"}, {Name: "a"}, {Name: "b"}, {Name: "c"}},
	}
	results := []Result{
		{Entrant: c.Entrants[0], Serial: []float64{10, 20, 30}, Parallel: []float64{10, 10, 10}, Allocs: 1},
		{Entrant: c.Entrants[1], Serial: []float64{50, 50, 50}, Parallel: []float64{1, 1, 1}},
		{Entrant: c.Entrants[2], Serial: []float64{20, 18, 15}, Parallel: []float64{8, 8, 8}},
		{Entrant: c.Entrants[3], Serial: []float64{1, 1, 1}, Parallel: []float64{1, 1, 1}},
	}
	j := c.Judge(results)
	assert.Equal(t, "b", j.Rival, "the fastest of those who are named")
	assert.InDelta(t, 20./18, j.Serial.Median, 1e-9)
	assert.Equal(t, Spread{20. / 18, 0.5, 2}, j.Serial)
	assert.Equal(t, InNoise, j.SerialVerdict)
	assert.Equal(t, InNoise, j.ParallelVerdict)
	assert.Equal(t, Met, j.AllocsVerdict)

	c.Goal = Goal{Ratio: 0.5, Plus: 12, Parallel: 2}
	j = c.Judge(results)
	assert.Equal(t, "c", j.Rival, "the fastest of all who are not ours")
	assert.Equal(t, Missed, j.SerialVerdict)
	assert.Equal(t, Met, j.ParallelVerdict)
	assert.Equal(t, Missed, j.AllocsVerdict)
}

func TestMeasureCountsWhatIsRight(t *testing.T) {
	work := func(wrong bool) Entrant {
		return Entrant{Name: "ours", Make: func(testing.TB, *Server) Work {
			return func(n int) int {
				time.Sleep(time.Duration(n) * time.Microsecond)
				if wrong {
					return 0
				}
				return n
			}
		}}
	}
	results := Measure(t, Contest{Entrants: []Entrant{work(false), work(true)}}, nil, Options{Runs: 2, Turns: 2, Turn: time.Millisecond})
	assert.Zero(t, results[0].Wrong)
	assert.EqualValues(t, 1, results[1].Wrong)
	assert.Len(t, results[0].Serial, 2)
	assert.Len(t, results[0].Parallel, 2)
}
