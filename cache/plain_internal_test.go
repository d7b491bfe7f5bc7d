package cache

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhoeverStopsWaitingForAKeyHoldsItNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := AcquirerOf(empty{}).(*plain)
		held, err := p.enter(t.Context(), "k")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Used(ctx, "k", time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		p.leave("k", held)
		require.Empty(t, p.ledgers)
	})
}

func TestAKeyInUseIsNotSweptAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := AcquirerOf(empty{full: true}).(*plain)
		request := Request{Limit: 1, Window: time.Second, Weight: 1, MaxWait: time.Hour}
		held, err := p.enter(t.Context(), "k")
		require.NoError(t, err)
		for i := range 200 {
			_, err := p.Acquire(t.Context(), strconv.Itoa(i), request)
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		require.Same(t, held, p.ledgers["k"])
		p.leave("k", held)
	})
}

// empty holds no hits, and so is full of room.
type empty struct{ full bool }

func (e empty) RecordHit(context.Context, string, time.Time, time.Duration) error { return nil }
func (e empty) CountHits(context.Context, string, time.Time) (int, error) {
	if e.full {
		return 1, nil
	}
	return 0, nil
}

func (e empty) OldestHit(context.Context, string, time.Time) (time.Time, bool, error) {
	return time.Time{}, false, nil
}

func TestNothingIsHeldForKeysAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := AcquirerOf(empty{}).(*plain)
		for i := range 10_000 {
			_, err := p.Acquire(t.Context(), strconv.Itoa(i), Request{Limit: 1, Window: time.Second, Weight: 1})
			require.NoError(t, err)
			require.Empty(t, p.ledgers)
		}

		p = AcquirerOf(empty{full: true}).(*plain)
		most := 0
		for i := range 10_000 { // each waits for a second; ten are within one window
			g, err := p.Acquire(t.Context(), strconv.Itoa(i), Request{Limit: 1, Window: time.Second, Weight: 1, MaxWait: time.Hour})
			require.NoError(t, err)
			require.Positive(t, g.Wait)
			most = max(most, len(p.ledgers))
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, most, 64)
	})
}
