package ratelimit_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

func TestAdmittingAllocatesNothingAndRefusingOnlyItsError(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	op := func(context.Context) error { return nil }

	wide := limiter(t, 1<<20, time.Hour, ratelimit.Config{})
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
		for range 300 { // room for the hits of the measurement
			_ = wide.Acquire(ctx, keys[i])
		}
	}
	i := 0
	next := func() string { i++; return keys[i%len(keys)] }
	one := wide.For("0")
	by := wide.By(func(context.Context) string { return next() })
	// Memory for the hits themselves grows by doubling, and averages to less than one.
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = one.Do(ctx, op) }), "For")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = by.Do(ctx, op) }), "By")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = wide.Acquire(ctx, next()) }), "Acquire")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = wide.Remaining(ctx, next()) }), "Remaining")

	deadline, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	patient := limiter(t, 1<<20, time.Hour, ratelimit.Config{MaxWait: time.Minute}).For("k")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = patient.Do(deadline, op) }), "with a deadline")

	shared := limiter(t, 1<<20, time.Hour, ratelimit.Config{Cache: memory.New()}).For("k")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = shared.Do(ctx, op) }), "over a borrowed cache")

	full := limiter(t, 1, time.Hour, ratelimit.Config{}).For("k")
	_ = full.Do(ctx, op)
	assert.EqualValues(t, 1, testing.AllocsPerRun(1000, func() { _ = full.Do(ctx, op) }), "refused")
}
