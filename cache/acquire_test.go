package cache_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
)

func TestARequestNamesItsFirstFieldOutOfRange(t *testing.T) {
	good := cache.Request{Limit: 10, Window: time.Second, Weight: 10, MaxWait: 0}
	for _, test := range []struct {
		field  string
		value  any
		change func(*cache.Request)
	}{
		{"Limit", int64(0), func(r *cache.Request) { r.Limit = 0 }},
		{"Limit", int64(-1), func(r *cache.Request) { r.Limit = -1 }},
		{"Limit", int64(math.MinInt64), func(r *cache.Request) { *r = cache.Request{Limit: math.MinInt64} }},
		{"Window", time.Duration(0), func(r *cache.Request) { r.Window = 0 }},
		{"Window", time.Duration(999), func(r *cache.Request) { r.Window = 999 }},
		{"Window", -time.Second, func(r *cache.Request) { r.Window = -time.Second }},
		{"Weight", int64(0), func(r *cache.Request) { r.Weight = 0 }},
		{"Weight", int64(-1), func(r *cache.Request) { r.Weight = -1 }},
		{"Weight", int64(11), func(r *cache.Request) { r.Weight = 11 }},
		{"MaxWait", time.Duration(-1), func(r *cache.Request) { r.MaxWait = -1 }},
	} {
		r := good
		test.change(&r)
		var bad *cache.ArgumentError
		require.ErrorAs(t, r.Validate(), &bad)
		assert.Equal(t, "acquire", bad.Op)
		assert.Equal(t, test.field, bad.Field)
		assert.Equal(t, test.value, bad.Value)
		assert.NotEmpty(t, bad.Want)
	}
}

func TestARequestAtTheEndsOfItsRangesIsGood(t *testing.T) {
	for _, r := range []cache.Request{
		{Limit: 1, Window: time.Microsecond, Weight: 1},
		{Limit: math.MaxInt64, Window: math.MaxInt64, Weight: math.MaxInt64, MaxWait: math.MaxInt64},
	} {
		assert.NoError(t, r.Validate())
	}
}

func TestSlotsAreOrderedByInstantAndThenByID(t *testing.T) {
	slots := []cache.Slot{
		{At: math.MinInt64, ID: math.MaxUint64},
		{At: -1, ID: 5},
		{}, // before every slot of its instant
		{ID: 1},
		{ID: math.MaxUint64},
		{At: 1},
		{At: math.MaxInt64},
	}
	assert.True(t, slices.IsSortedFunc(slots, cache.Slot.Compare))
	for i, s := range slots {
		for j, u := range slots {
			want := 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = +1
			}
			assert.Equal(t, want, s.Compare(u), "%v %v", s, u)
		}
	}
}
