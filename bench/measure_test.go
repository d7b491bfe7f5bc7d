package bench

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/resilience-toolkit/resilience/internal/redistest"
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
	synctest.Test(t, func(t *testing.T) {
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
	})
}

func TestAServerSaysWhatItWorksAndHolds(t *testing.T) {
	server := redistest.Start(t)
	entrants := ServerCosts()
	for _, e := range entrants[:3] {
		c := ServerCost(t, server, e.Make(t, server), 2_000, "evalsha")
		t.Log(e.Name, c)
		assert.Positive(t, c.Script, e.Name)
		assert.Greater(t, c.Busy, c.Script/2, e.Name)
		assert.Positive(t, c.Thread, e.Name)
	}
	few, many := RedisBytes(t, server)
	assert.Greater(t, few.Key, few.Hit)
	assert.Greater(t, many.Hit, few.Hit, "a long series is kept less compactly")
	memory := MemoryBytes()
	assert.Less(t, memory.Key, few.Key+200)
	assert.InDelta(t, 8, memory.Hit, 9, "a ring is between full and half empty")
}
