package retry_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	longest      = time.Duration(math.MaxInt64)
	justUnderOne = 1 - 0x1p-53
)

var (
	attempts = []int{1, 2, 3, 35, 63, 64, 65, 1025, 10_000, math.MaxInt}
	randoms  = []float64{0, 0x1p-53, 0.25, 0.5, 0.999, justUnderOne}
)

func TestExponentialDoublesToItsMaximumAndStaysThere(t *testing.T) {
	b := retry.Exponential{Base: 100 * time.Millisecond, Max: 5 * time.Second, Factor: 2}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200}
	for attempt := 1; attempt <= 200; attempt++ {
		expect := 5 * time.Second
		if attempt <= len(want) {
			expect = want[attempt-1] * time.Millisecond
		}
		require.Equal(t, expect, b.Delay(attempt, 0, 0.7), "attempt %d", attempt)
	}
}

func TestExponentialWithAnyFactorGrowsToItsMaximumAndNeverWraps(t *testing.T) {
	for _, factor := range []float64{1, 1.0001, 1.5, 2, 10, 1e300, math.MaxFloat64} {
		for _, limit := range []time.Duration{0, 5 * time.Second, longest} {
			b := retry.Exponential{Base: 100 * time.Millisecond, Max: limit, Factor: factor}
			previous := time.Duration(0)
			for _, attempt := range attempts {
				d := b.Delay(attempt, previous, 0)
				require.GreaterOrEqual(t, d, b.Base, "%+v, attempt %d", b, attempt)
				require.GreaterOrEqual(t, d, previous, "%+v, attempt %d", b, attempt)
				if limit > 0 {
					require.LessOrEqual(t, d, limit, "%+v, attempt %d", b, attempt)
				}
				previous = d
			}
			switch {
			case factor == 1:
				assert.Equal(t, b.Base, previous, "a factor of 1 does not grow")
			case limit == 0:
				assert.Equal(t, longest, previous, "without a maximum it ends at the longest duration")
			default:
				assert.Equal(t, limit, previous)
			}
		}
	}
}

func TestExponentialTakesAFactorOfZeroAsTwo(t *testing.T) {
	two := retry.Exponential{Base: time.Second, Factor: 2}
	zero := retry.Exponential{Base: time.Second}
	for _, attempt := range attempts {
		assert.Equal(t, two.Delay(attempt, 0, 0), zero.Delay(attempt, 0, 0), "attempt %d", attempt)
	}
	assert.Equal(t, 10*time.Second, retry.Exponential{Base: 100 * time.Millisecond, Factor: 10}.Delay(3, 0, 0))
}

func TestExponentialSpreadsByItsJitterToEitherSide(t *testing.T) {
	b := retry.Exponential{Base: time.Second, Max: time.Minute, Jitter: 0.1}
	assert.Equal(t, 900*time.Millisecond, b.Delay(1, 0, 0))
	assert.Equal(t, time.Second, b.Delay(1, 0, 0.5))
	assert.InDelta(t, 1100*time.Millisecond, b.Delay(1, 0, justUnderOne), 1)
	assert.Equal(t, 1800*time.Millisecond, b.Delay(2, 0, 0))
	assert.InDelta(t, 2200*time.Millisecond, b.Delay(2, 0, justUnderOne), 1)
}

func TestExponentialNearItsMaximumIsCutOffAboveOnly(t *testing.T) {
	b := retry.Exponential{Base: 950 * time.Millisecond, Max: time.Second, Jitter: 0.1}
	assert.Equal(t, 855*time.Millisecond, b.Delay(1, 0, 0))
	assert.InDelta(t, time.Second, b.Delay(1, 0, justUnderOne), 1)
}

func TestDefaultBackoffGoesFromOneSecondToOneMinuteTenPercentApart(t *testing.T) {
	b := retry.DefaultBackoff()
	for attempt, want := range []time.Duration{1, 2, 4, 8, 16, 32} {
		assert.Equal(t, want*time.Second, b.Delay(attempt+1, 0, 0.5))
	}
	assert.Equal(t, 54*time.Second, b.Delay(7, 0, 0))
	assert.InDelta(t, 57*time.Second, b.Delay(7, 0, 0.5), 1)
	assert.InDelta(t, time.Minute, b.Delay(10_000, 0, justUnderOne), 1)
}

// families makes one backoff of each kind.
func families(base, limit time.Duration) []retry.Backoff {
	return []retry.Backoff{
		retry.Constant(base),
		retry.Exponential{Base: base, Max: limit},
		retry.Exponential{Base: base, Max: limit, Factor: 1, Jitter: 0.1},
		retry.Exponential{Base: base, Max: limit, Factor: 10, Jitter: 1},
		retry.FullJitter{Base: base, Max: limit},
		retry.EqualJitter{Base: base, Max: limit},
		retry.Decorrelated{Base: base, Max: limit},
	}
}

func TestDelaysLieBetweenZeroAndTheMaximumWhateverTheInput(t *testing.T) {
	for _, base := range []time.Duration{0, 1, 9, time.Millisecond, 500 * time.Millisecond, time.Hour, longest / 2, longest} {
		for _, limit := range []time.Duration{0, base, 10 * time.Second, longest} {
			if limit != 0 && limit < base {
				continue
			}
			for _, b := range families(base, limit) {
				for _, attempt := range append([]int{math.MinInt, -1, 0}, attempts...) {
					for _, previous := range []time.Duration{math.MinInt64, -1, 0, base, 10 * time.Second, longest} {
						for _, random := range append([]float64{-1, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1)}, randoms...) {
							d := b.Delay(attempt, previous, random)
							if d < 0 || limit > 0 && d > limit {
								require.Fail(t, "out of range", "%#v.Delay(%d, %d, %v) is %d", b, attempt, previous, random, d)
							}
						}
					}
				}
			}
		}
	}
}

func TestABaseOfZeroNeverWaits(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Second, longest} {
		for _, b := range families(0, limit) {
			for _, attempt := range attempts {
				for _, random := range randoms {
					assert.Zero(t, b.Delay(attempt, 0, random), "%#v, attempt %d, random %v", b, attempt, random)
				}
			}
		}
	}
}

func TestDelaysTooSmallToSpreadAreNotSpread(t *testing.T) {
	for _, base := range []time.Duration{1, 9} {
		b := retry.Exponential{Base: base, Max: base, Jitter: 0.1}
		for _, random := range randoms {
			assert.Equal(t, base, b.Delay(1, 0, random), "10 %% of %d ns is less than a nanosecond", base)
		}
	}
}

func TestCallsPinnedAtTheMaximumAreStillSpreadApart(t *testing.T) {
	const limit = 10 * time.Second
	for _, b := range []retry.Backoff{
		retry.Exponential{Base: time.Second, Max: limit, Jitter: 0.1},
		retry.Exponential{Base: time.Second, Max: limit, Jitter: 1},
		retry.FullJitter{Base: time.Second, Max: limit},
		retry.EqualJitter{Base: time.Second, Max: limit},
		retry.Decorrelated{Base: time.Second, Max: limit},
	} {
		for _, attempt := range []int{20, 10_000} {
			t.Run(fmt.Sprintf("%T/%d", b, attempt), func(t *testing.T) {
				seen := map[time.Duration]bool{}
				for i := range 100 {
					d := b.Delay(attempt, limit, float64(i)/100)
					assert.LessOrEqual(t, d, limit)
					seen[d] = true
				}
				assert.Len(t, seen, 100)
			})
		}
	}
}

func TestFullJitterReachesFromZeroToTheBound(t *testing.T) {
	b := retry.FullJitter{Base: time.Second, Max: 4 * time.Second}
	for attempt, bound := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		assert.Zero(t, b.Delay(attempt+1, 0, 0))
		assert.Equal(t, bound/4, b.Delay(attempt+1, 0, 0.25))
		assert.InDelta(t, bound, b.Delay(attempt+1, 0, justUnderOne), 1)
	}
}

func TestEqualJitterReachesFromHalfTheBoundToTheBound(t *testing.T) {
	b := retry.EqualJitter{Base: time.Second, Max: 4 * time.Second}
	for attempt, bound := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		assert.Equal(t, bound/2, b.Delay(attempt+1, 0, 0))
		assert.Equal(t, bound*3/4, b.Delay(attempt+1, 0, 0.5))
		assert.InDelta(t, bound, b.Delay(attempt+1, 0, justUnderOne), 1)
	}
}

func TestDecorrelatedReachesFromTheBaseToThreeTimesThePreviousDelay(t *testing.T) {
	b := retry.Decorrelated{Base: time.Second, Max: 10 * time.Second}
	assert.Equal(t, time.Second, b.Delay(1, 0, 0))
	assert.Equal(t, 2*time.Second, b.Delay(1, 0, 0.5))
	assert.InDelta(t, 3*time.Second, b.Delay(1, 0, justUnderOne), 1)
	assert.Equal(t, time.Second, b.Delay(2, 3*time.Second, 0))
	assert.InDelta(t, 9*time.Second, b.Delay(2, 3*time.Second, justUnderOne), 1)
	assert.InDelta(t, 10*time.Second, b.Delay(3, 9*time.Second, justUnderOne), 1)
	assert.InDelta(t, longest, retry.Decorrelated{Base: 1}.Delay(99, longest, justUnderOne), 2048)
}

func TestConstantWaitsTheSameEveryTime(t *testing.T) {
	for _, attempt := range attempts {
		for _, random := range randoms {
			assert.Equal(t, time.Second, retry.Constant(time.Second).Delay(attempt, time.Hour, random))
		}
	}
}

func TestBackoffsAreComparableValues(t *testing.T) {
	for _, b := range families(time.Second, time.Minute) {
		assert.True(t, b == b, "%#v", b)
	}
	assert.True(t, retry.Backoff(retry.Exponential{Base: 1}) == retry.Backoff(retry.Exponential{Base: 1}))
}

func FuzzDelaysStayInRange(f *testing.F) {
	f.Add(int64(100*time.Millisecond), int64(5*time.Second), 2.0, 0.1, 200, int64(0), 0.5)
	f.Add(int64(1), int64(0), 1.0, 0.0, math.MaxInt, int64(math.MaxInt64), justUnderOne)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 10.0, 1.0, 10_000, int64(-1), 0.0)
	f.Add(int64(0), int64(9), math.MaxFloat64, 1.0, 64, int64(9), math.NaN())
	f.Add(int64(9), int64(9), 1e-300, 0.1, 35, int64(0), 1.0)
	f.Fuzz(func(t *testing.T, base, limit int64, factor, jitter float64, attempt int, previous int64, random float64) {
		for _, b := range []retry.Backoff{
			retry.Constant(base),
			retry.Exponential{Base: time.Duration(base), Max: time.Duration(limit), Factor: factor, Jitter: jitter},
			retry.FullJitter{Base: time.Duration(base), Max: time.Duration(limit)},
			retry.EqualJitter{Base: time.Duration(base), Max: time.Duration(limit)},
			retry.Decorrelated{Base: time.Duration(base), Max: time.Duration(limit)},
		} {
			if _, err := retry.New(never, retry.Config{Backoff: b}); err != nil {
				continue
			}
			low, high := time.Duration(0), longest
			if limit > 0 {
				high = time.Duration(limit)
			}
			switch b.(type) {
			case retry.Constant:
				low, high = time.Duration(base), time.Duration(base)
			case retry.Decorrelated:
				low = time.Duration(base)
			case retry.EqualJitter:
				low = time.Duration(base) / 2
			case retry.Exponential:
				// Of what is never less than Base; rounded in float64.
				low = time.Duration(float64(base) * (1 - jitter) * (1 - 0x1p-50))
			}
			if attempt < 1 {
				low = 0 // there is no such attempt
			}
			d := b.Delay(attempt, time.Duration(previous), random)
			if d < low-1 || d < 0 || d > high {
				t.Fatalf("%#v.Delay(%d, %d, %v) is %d, want between %d and %d", b, attempt, previous, random, d, low, high)
			}
			if again := b.Delay(attempt, time.Duration(previous), random); again != d {
				t.Fatalf("%#v: the same input gave %d and %d", b, d, again)
			}
		}
	})
}

func FuzzExponentialNeverShrinks(f *testing.F) {
	f.Add(int64(100*time.Millisecond), int64(5*time.Second), 2.0, 6)
	f.Add(int64(1), int64(0), 1.0000001, 10_000)
	f.Add(int64(math.MaxInt64), int64(0), math.MaxFloat64, math.MaxInt-1)
	f.Fuzz(func(t *testing.T, base, limit int64, factor float64, attempt int) {
		b := retry.Exponential{Base: time.Duration(base), Max: time.Duration(limit), Factor: factor}
		if _, err := retry.New(never, retry.Config{Backoff: b}); err != nil || attempt == math.MaxInt {
			t.Skip()
		}
		if d, next := b.Delay(attempt, 0, 0), b.Delay(attempt+1, 0, 0); next < d {
			t.Fatalf("%#v: %d after attempt %d, but %d after the next", b, d, attempt, next)
		}
	})
}

func never(error) bool { return false }
