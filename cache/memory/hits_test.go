package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

var noon = time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)

func record(t *testing.T, c *memory.Cache, ttl time.Duration, at ...time.Time) {
	t.Helper()
	for _, at := range at {
		require.NoError(t, c.RecordHit(t.Context(), "k", at, ttl))
	}
}

func countSince(t *testing.T, c *memory.Cache, since time.Time) int {
	t.Helper()
	n, err := c.CountHits(t.Context(), "k", since)
	require.NoError(t, err)
	return n
}

func TestHitsOfOneInstantAreAllCounted(t *testing.T) {
	c := fresh(t)
	for range 1000 {
		record(t, c, time.Hour, noon)
	}
	assert.Equal(t, 1000, countSince(t, c, noon))
}

func TestAHitAtTheBoundaryIsInside(t *testing.T) {
	c := fresh(t)
	record(t, c, time.Hour, noon)
	assert.Equal(t, 1, countSince(t, c, noon.Add(-time.Microsecond)))
	assert.Equal(t, 1, countSince(t, c, noon))
	assert.Equal(t, 1, countSince(t, c, noon.Add(time.Microsecond-1)), "a part of a microsecond is cut off")
	assert.Equal(t, 0, countSince(t, c, noon.Add(time.Microsecond)))

	record(t, c, time.Hour, noon.Add(time.Microsecond-1))
	at, ok, err := c.OldestHit(t.Context(), "k", noon)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.True(t, at.Equal(noon))
}

func TestHitsComeInAnyOrder(t *testing.T) {
	c := fresh(t)
	instant := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	const n = 50
	for i := range n { // 0 49 1 48 ..., which grows the ring with hits in its middle
		j := i / 2
		if i%2 == 1 {
			j = n - 1 - j
		}
		record(t, c, time.Hour, instant(j))
	}
	for i := range n {
		at, ok, err := c.OldestHit(t.Context(), "k", instant(i).Add(-time.Millisecond))
		require.NoError(t, err)
		require.True(t, ok)
		assert.True(t, at.Equal(instant(i)), "%v", at)
	}
	for i := range n {
		require.Equal(t, n-i, countSince(t, c, instant(i)))
	}
	_, ok, err := c.OldestHit(t.Context(), "k", instant(n))
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestAskingForTheOldestHitDiscardsNothing(t *testing.T) {
	c := fresh(t)
	record(t, c, time.Hour, noon, noon.Add(time.Second))
	_, _, err := c.OldestHit(t.Context(), "k", noon.Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, 2, countSince(t, c, noon))
}

func TestAHitExtendsTheLifeOfItsSeriesAndNeverShortensIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		record(t, c, time.Hour, noon)
		record(t, c, time.Second, noon)
		time.Sleep(time.Hour - 1)
		assert.Equal(t, 2, countSince(t, c, noon))
		record(t, c, time.Second, noon)
		time.Sleep(time.Second - 1)
		assert.Equal(t, 3, countSince(t, c, noon))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, 0, countSince(t, c, noon))
		record(t, c, 1, noon)
		assert.Equal(t, 1, countSince(t, c, noon), "the least TTL is not none")
	})
}

func TestASeriesNeedsATTL(t *testing.T) {
	c := fresh(t)
	for _, ttl := range []time.Duration{0, -1} {
		var bad *cache.ArgumentError
		require.ErrorAs(t, c.RecordHit(t.Context(), "k", noon, ttl), &bad)
		assert.Equal(t, cache.ArgumentError{Op: "record hit", Field: "ttl", Value: ttl, Want: "above zero"}, *bad)
	}
	assert.Equal(t, 0, countSince(t, c, noon))
}

func TestAValueAndASeriesShareAKeyAndDeleteClearsBoth(t *testing.T) {
	c := fresh(t)
	record(t, c, time.Hour, noon)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0))
	assert.Equal(t, 1, countSince(t, c, noon))
	assert.Equal(t, cache.Present("v"), read(t, c, "k"))
	assert.Equal(t, 2, c.Len())

	require.NoError(t, c.Delete(t.Context(), "k"))
	assert.Equal(t, 0, countSince(t, c, noon))
	assert.Equal(t, cache.Absent(), read(t, c, "k"))
	assert.Zero(t, c.Len())
	require.NoError(t, c.Delete(t.Context(), "k"))
}
