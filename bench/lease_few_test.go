package bench

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Where leasing would pay: few workers, each with a large part of the limit, and a window
// that is long beside the life of a block.
func TestLeasesOfFewWorkersInALongWindowByTheNumbers(t *testing.T) {
	const workers, limit, window, length = 10, 60_000, time.Minute, 3 * time.Minute
	for _, load := range []struct {
		name  string
		pause time.Duration // 100 calls per second and worker are the limit
	}{{"half the limit asked for", 20 * time.Millisecond}, {"twice the limit asked for", 5 * time.Millisecond}} {
		for _, l := range []leasing{
			{block: 1, life: time.Microsecond},
			{block: 20, life: time.Second},
			{block: 100, life: 3 * time.Second},
		} {
			synctest.Test(t, func(t *testing.T) {
				l.limit, l.window, l.widened = limit, window, true
				got := l.run(t, workers, load.pause, length)
				assert.LessOrEqual(t, got.most(window), limit)
				t.Logf("%-26s block %3d, life %5v: %5.0f calls/s, at most %5d in a window, %.3f questions per call",
					load.name, l.block, l.life, float64(len(got.spent))/length.Seconds(), got.most(window),
					float64(got.asked)/float64(len(got.spent)))
			})
		}
	}
}
