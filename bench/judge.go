package bench

import "slices"

// A Spread is the median of several runs, the least and the most.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf returns the spread of some values.
func SpreadOf(values []float64) Spread {
	return Spread{Median(values), slices.Min(values), slices.Max(values)}
}

// A Judgement says how the first entrant stands beside the one that its goal names.
type Judgement struct {
	Rival            string
	Serial, Parallel Spread // its time divided by the rival's, in the same run
	SerialVerdict    Verdict
	ParallelVerdict  Verdict
	Allocs           float64
	AllocsVerdict    Verdict
	TripsVerdict     Verdict
	// Its time beyond the rival's, in ns, where the goal allows for some.
	SerialMore, ParallelMore Spread
}

// A Verdict says whether a goal was reached.
type Verdict string

// Differences that are noise on a machine with other things to do are told apart.
const (
	Met     Verdict = "met"
	InNoise Verdict = "missed, within the noise"
	Missed  Verdict = "missed"

	serialNoise   = 1.15
	parallelNoise = 1.5
)

// Judge compares the first of the results of a contest with its goal.
func (c Contest) Judge(results []Result) Judgement {
	ours, rival := results[0], results[c.rival(results)]
	j := Judgement{
		Rival:    rival.Name,
		Serial:   SpreadOf(ratios(ours.Serial, rival.Serial)),
		Parallel: SpreadOf(ratios(ours.Parallel, rival.Parallel)),
		Allocs:   ours.Allocs,
	}
	goal := c.Goal
	j.SerialMore = SpreadOf(differences(ours.Serial, rival.Serial))
	j.ParallelMore = SpreadOf(differences(ours.Parallel, rival.Parallel))
	j.SerialVerdict = judge(Median(ours.Serial), Median(rival.Serial)*goal.Ratio+goal.Plus, serialNoise)
	parallel := goal.Ratio
	if goal.Parallel > 0 {
		parallel = goal.Parallel
	}
	j.ParallelVerdict = judge(Median(ours.Parallel), Median(rival.Parallel)*parallel+goal.Plus, parallelNoise)
	// What the runtime allocates meanwhile is not ours.
	j.AllocsVerdict = judge(ours.Allocs, goal.Allocs+0.05, 1)
	j.TripsVerdict = judge(ours.Trips, goal.Trips+0.02, 1)
	if goal.Ratio == 0 {
		j.SerialVerdict = Met
	}
	if goal.Ratio == 0 && goal.Parallel == 0 {
		j.ParallelVerdict = Met
	}
	return j
}

func judge(got, want, noise float64) Verdict {
	switch {
	case got <= want:
		return Met
	case got <= want*noise:
		return InNoise
	default:
		return Missed
	}
}

// rival returns which entrant the first one is measured against: the fastest of those
// that the goal names, or of all that are not ours.
func (c Contest) rival(results []Result) int {
	rival := -1
	for i, e := range c.Entrants {
		named := slices.Contains(c.Goal.Rivals, e.Name) || len(c.Goal.Rivals) == 0 && !e.Ours()
		if named && (rival < 0 || Median(results[i].Serial) < Median(results[rival].Serial)) {
			rival = i
		}
	}
	if rival < 0 {
		panic("bench: nobody to compare with in " + c.Name)
	}
	return rival
}

// differences subtracts run by run.
func differences(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range list {
		list[i] = a[i] - b[i]
	}
	return list
}

// ratios divides run by run.
func ratios(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range list {
		list[i] = a[i] / b[i]
	}
	return list
}
