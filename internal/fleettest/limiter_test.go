package fleettest_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/internal/redistest"
)

func TestProcessesShareOneAllowanceExactly(t *testing.T) {
	s := redistest.Start(t)
	all := start(t, 4, job{Do: "limit", URL: s.URL(), Limit: 100, Window: time.Minute, Limiters: 5, Goroutines: 100})
	release(all)
	sum := collect(t, all)
	assert.Equal(t, 100, sum.Admitted)
	assert.Equal(t, 1900, sum.Refused)
	assert.Zero(t, sum.Outages)
}

func TestNoSpanOfAWindowHoldsMoreUnderFire(t *testing.T) {
	s := redistest.Start(t)
	const limit, window, windows = 50, time.Second, 5
	all := start(t, 4, job{Do: "limit", URL: s.URL(), Limit: limit, Window: window, Limiters: 1, Goroutines: 8, For: windows * window})
	release(all)
	sum := collect(t, all)
	assert.Zero(t, sum.Outages)
	assert.Equal(t, sum.Admitted, len(sum.Slots))
	assert.LessOrEqual(t, mostIn(sum.Slots, window), limit)
	assert.GreaterOrEqual(t, sum.Admitted, windows*limit, "and what is allowed is given")
}

func TestWaitersOfAllProcessesAreServedInOrderOfArrival(t *testing.T) {
	s := redistest.Start(t)
	const processes, each, limit, window = 4, 10, 4, 200 * time.Millisecond
	all := start(t, processes, job{Do: "wait", URL: s.URL(), Limit: limit, Window: window, MaxWait: time.Minute, Goroutines: each})
	before := s.Calls("time")
	release(all)
	sum := collect(t, all)
	require.Equal(t, processes*each, sum.Admitted)
	// The script reads the clock once, for one or for several that ask together.
	asked := s.Calls("time") - before
	assert.Positive(t, asked)
	assert.LessOrEqual(t, asked, int64(processes*each), "nobody has asked twice")
	assert.LessOrEqual(t, mostIn(sum.Slots, window), limit)

	// Those of one batch have asked at one instant.
	slices.SortFunc(sum.Slots, func(a, b slot) int { return cmp.Or(cmp.Compare(a.Asked, b.Asked), cmp.Compare(a.At, b.At)) })
	assert.True(t, slices.IsSortedFunc(sum.Slots, func(a, b slot) int { return cmp.Compare(a.At, b.At) }),
		"who came first has the earlier slot")
	for _, w := range sum.Slots {
		// The server is on this machine and has the same clock.
		assert.GreaterOrEqual(t, w.Done, w.At, "nobody goes ahead of their slot")
		assert.Less(t, w.Done, w.At+time.Second.Microseconds(), "nor long after it")
	}
	for i, a := range sum.Slots {
		for _, b := range sum.Slots[i+1:] {
			if b.At-a.At >= (window / 2).Microseconds() {
				assert.Less(t, a.Done, b.Done, "and so they go ahead in that order")
			}
		}
	}
}
