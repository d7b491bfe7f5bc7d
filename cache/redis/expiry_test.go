package redis_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// expiryOf returns the least and the most, in microseconds of the server's clock, that a
// series' expiry can be, or no bounds for a series that is gone.
func expiryOf(t *testing.T, s *redistest.Server, series string) (least, most int64, there bool) {
	t.Helper()
	before := serverTime(s)
	ttl := s.Do("PTTL", series).(int64)
	after := serverTime(s)
	if ttl == -2 {
		return 0, 0, false
	}
	require.GreaterOrEqual(t, ttl, int64(0), "it lives for ever")
	return (before/1000 + ttl) * 1000, (after/1000 + ttl) * 1000, true
}

// Whatever is taken and given back, and however far ahead: a series is there until its last
// hit has left the window, and not much longer. What has left is not kept for long either,
// where nobody waits.
func TestASeriesIsKeptUntilItsLastHitHasLeftAndAnEighthOfAWindowLonger(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n, window := range []time.Duration{
		time.Microsecond, 7 * time.Microsecond, 900 * time.Microsecond, 5 * time.Millisecond,
		40 * time.Millisecond, time.Second, time.Hour,
	} {
		for kind := range 4 {
			heavy, waits := kind&1 != 0, kind&2 != 0
			c := open(t, s.URL())
			key := fmt.Sprint(n, kind)
			r := cache.Request{Limit: 40, Weight: 1, Window: window}
			width := window.Microseconds()
			var m model
			var farthest int64 // of all slots, those that were given back included
			series := ""
			for range 120 {
				if heavy && rng.IntN(3) == 0 {
					r.Weight = 1 + rng.Int64N(4)
				}
				if waits {
					r.MaxWait = time.Duration(rng.IntN(3)) * min(window, time.Second)
				}
				g, err := c.Acquire(bg, key, r)
				require.NoError(t, err)
				if g.OK {
					m = append(m, hit{g.Slot, r.Weight})
					farthest = max(farthest, g.Slot.At)
					now := g.Slot.At - g.Wait.Microseconds()
					kept := 0
					for _, h := range m {
						if h.slot.At > now-width-max(1, width/8) {
							kept++
						}
					}
					if series == "" || series == "none" {
						series = seriesOf(s, key)
					}
					if !waits {
						require.LessOrEqual(t, s.Do("ZCARD", series), int64(kept))
					}
				}
				for len(m) > 0 && rng.IntN(3) == 0 {
					i := rng.IntN(len(m))
					if rng.IntN(2) == 0 {
						i = len(m) - 1
					}
					require.NoError(t, c.GiveBack(bg, key, m[i].slot))
					m = append(m[:i], m[i+1:]...)
				}
				if len(m) == 0 {
					continue
				}
				last := m[len(m)-1].slot.At
				least, most, there := expiryOf(t, s, series)
				if !there {
					require.LessOrEqual(t, last+width, serverTime(s), "it is gone too early")
					continue
				}
				require.GreaterOrEqual(t, most, last+width, "it goes too early")
				require.LessOrEqual(t, least, farthest+width+max(1, width/8)+1000, "it stays too long")
				if rng.IntN(10) == 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(min(window, 10*time.Millisecond)) + 1)))
				}
			}
		}
	}
}

func TestTheHitsOfAnEighthOfAWindowSetOneExpiry(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	for _, weight := range []int64{1, 3} {
		before := s.Calls("pexpireat")
		for range 100 {
			g, err := c.Acquire(bg, strconv.FormatInt(weight, 10), cache.Request{Limit: 1000, Weight: weight, Window: time.Hour})
			require.NoError(t, err)
			require.True(t, g.OK)
		}
		sets := s.Calls("pexpireat") - before
		require.Positive(t, sets)
		require.LessOrEqual(t, sets, int64(2), "they may have met the end of one eighth")
	}
}
