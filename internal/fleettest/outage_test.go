package fleettest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// Whatever is done to the servers in the middle of traffic, callers see at most that the
// store is away, in time; healthy calls are made; nothing panics or stays behind; and from
// some instant on the limit holds as ever.
func TestTrafficGoesOnWhateverBecomesOfTheServer(t *testing.T) {
	const limit, window = 40, 500 * time.Millisecond
	// Each starts servers, and returns their address and what to do to them. That returns
	// the instant from which on the limit must hold, or zero for all the time.
	type disturb func() time.Time
	for name, prepare := range map[string]func(t *testing.T) (string, disturb){
		"killed, and restarted empty": func(t *testing.T) (string, disturb) {
			s := redistest.Start(t)
			return s.URL(), func() time.Time {
				s.Kill()
				time.Sleep(300 * time.Millisecond)
				s.Restart()
				// What is recorded from now on is recorded in one place again.
				return time.Now()
			}
		},
		"hanging": func(t *testing.T) (string, disturb) {
			s := redistest.Start(t)
			return s.URL(), func() time.Time {
				s.Pause()
				time.Sleep(time.Second)
				s.Resume()
				return time.Time{}
			}
		},
		"scripts flushed": func(t *testing.T) (string, disturb) {
			s := redistest.Start(t)
			return s.URL(), func() time.Time {
				for range 20 {
					s.Do("SCRIPT", "FLUSH")
					time.Sleep(20 * time.Millisecond)
				}
				return time.Time{}
			}
		},
		"master killed, replica promoted": func(t *testing.T) (string, disturb) {
			g := redistest.Sentinel(t)
			return "redis+sentinel://" + strings.Join(g.Addrs(), ",") + "?master_name=" + g.Name, func() time.Time {
				g.Servers[0].Kill()
				require.Eventually(t, func() bool { return g.Master() == g.Servers[1] }, 20*time.Second, 10*time.Millisecond)
				// A replica may lack the last hits of its master, so they count until they leave.
				return time.Now().Add(window)
			}
		},
		"cluster slots moved": func(t *testing.T) (string, disturb) {
			c := redistest.Cluster(t)
			return "redis+cluster://" + strings.Join(c.Addrs(), ","), func() time.Time {
				for _, s := range c.Servers {
					for _, key := range s.Do("KEYS", "*").([]any) {
						slot := c.Slot(key.(string))
						owner := c.Owner(slot)
						c.Move(slot, owner, (owner+1)%3)
					}
				}
				return time.Time{}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, disturb := prepare(t)
			all := start(t, 4, job{
				Do: "traffic", URL: url, Limit: limit, Window: window, Goroutines: 4,
				Breaker: breakerConfig{Threshold: 5, Recovery: time.Second, Lease: time.Second},
			})
			release(all)
			for _, w := range all {
				w.expect("going")
			}
			time.Sleep(2 * window)
			from := disturb()
			time.Sleep(6 * window)
			release(all)
			end := time.Now()
			sum := collect(t, all)
			t.Logf("%d admitted, %d refused, %d times away", sum.Admitted, sum.Refused, sum.Outages)
			if name == "scripts flushed" || name == "cluster slots moved" {
				assert.Less(t, 20*sum.Outages, sum.Admitted+sum.Refused, "the store has been there all the time")
			}
			later := slices.DeleteFunc(slices.Clone(sum.Slots), func(s slot) bool { return s.At < from.UnixMicro() })
			assert.LessOrEqual(t, mostIn(later, window), limit)
			last := slices.DeleteFunc(later, func(s slot) bool { return s.At < end.Add(-2*window).UnixMicro() })
			assert.NotEmpty(t, last, "the limiter admits again")
		})
	}
}
