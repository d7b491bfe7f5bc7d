package memory_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
)

func TestTheHotPathsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		ctx := t.Context()
		const keys = 64
		names := make([]string, keys)
		for i := range names {
			names[i] = "tenant/" + strconv.Itoa(i)
		}
		full := per(3, 1000*time.Hour) // which is longer than this test
		for range 3 {
			_, err := c.Acquire(ctx, "full", full)
			require.NoError(t, err)
		}
		require.NoError(t, c.Set(ctx, "value", "v", 0))
		require.NoError(t, c.RecordHit(ctx, "series", noon, full.Window))
		entries := make([]cache.Entry, 1)

		i := 0
		for name, call := range map[string]func(){
			"Acquire, admitted": func() {
				i++
				if i%(10*keys) == 0 { // ten at a time at each key, half of them then gone
					time.Sleep(time.Second / 2)
				}
				c.Acquire(ctx, names[i%keys], per(20, time.Second))
			},
			"Acquire, a burst in every window": func() {
				time.Sleep(time.Second)
				for range 40 {
					c.Acquire(ctx, "burst", per(1000, time.Second))
				}
			},
			"Acquire, weights in every window": func() {
				time.Sleep(time.Second)
				for weight := range int64(40) {
					c.Acquire(ctx, "weights", weighing(per(1000, time.Second), 1+weight))
				}
			},
			"Acquire, refused": func() { c.Acquire(ctx, "full", full) },
			"Acquire and GiveBack": func() {
				g, _ := c.Acquire(ctx, "full", waiting(full, 2*full.Window))
				c.GiveBack(ctx, "full", g.Slot)
			},
			"Used":        func() { c.Used(ctx, "full", full.Window) },
			"Get":         func() { c.Get(ctx, "value") },
			"Get, absent": func() { c.Get(ctx, "absent") },
			"GetMany":     func() { c.GetMany(ctx, []string{"value"}, entries) },
			"CountHits":   func() { c.CountHits(ctx, "series", noon) },
			"OldestHit":   func() { c.OldestHit(ctx, "series", noon) },
			"Delete":      func() { c.Delete(ctx, "absent") },
		} {
			for range 2000 {
				call()
			}
			assert.Zero(t, testing.AllocsPerRun(2000, call), name)
		}
	})
}
