package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
)

var line1 = lineID{series: "k", cost: 1}

// stand puts waiters with the slots 1, 2, 3, ... in line, due after so many seconds.
func stand(q *queue, due ...int) []*waiter {
	var all []*waiter
	for i, s := range due {
		all = append(all, q.join(line1, cache.Slot{At: int64(i + 1)}, time.Now().Add(time.Duration(s)*time.Second)))
	}
	return all
}

func TestTheHeadSleepsUntilItsSlotAndNoLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 1, 2)
		v, left := q.look(line1, all[0])
		assert.Equal(t, next, v)
		assert.Equal(t, time.Second, left)
		v, left = q.look(line1, all[1])
		assert.Equal(t, queued, v)
		assert.Zero(t, left)

		time.Sleep(time.Second - time.Nanosecond)
		v, left = q.look(line1, all[0])
		assert.Equal(t, next, v)
		assert.EqualValues(t, 1, left)
		time.Sleep(time.Nanosecond)
		v, _ = q.look(line1, all[0])
		assert.Equal(t, served, v)
		v, left = q.look(line1, all[1])
		assert.Equal(t, next, v)
		assert.Equal(t, time.Second, left)
	})
}

func TestWhoeverIsAtTheHeadLetsInAllWhoAreDueAndWakesNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 1, 1, 1, 2, 2)
		time.Sleep(time.Second)
		q.look(line1, all[0])
		for i, w := range all {
			assert.Len(t, w.wake, map[bool]int{true: 1}[i <= 3], "waiter %d", i)
		}
	})
}

func TestAnEmptyLineIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 1, 1, 2, 3)
		q.leave(line1, all[2])
		q.leave(line1, all[0])
		assert.Len(t, q.lines, 1)
		time.Sleep(time.Minute)
		q.look(line1, all[1])
		assert.Empty(t, q.lines)

		all = stand(&q, 1)
		assert.Equal(t, cache.Slot{At: 1}, q.leave(line1, all[0]))
		assert.Empty(t, q.lines)
	})
}

func TestLeavingTakesTheLastSlotAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 1, 2, 3, 4)
		assert.Equal(t, cache.Slot{At: 4}, q.leave(line1, all[1]))
		for _, w := range all {
			assert.Empty(t, w.wake, "nobody has to wake up for it")
		}
		assert.Equal(t, cache.Slot{At: 3}, q.leave(line1, all[0]))
		assert.Len(t, all[2].wake, 1, "it is at the head now")
		v, left := q.look(line1, all[2])
		assert.Equal(t, next, v)
		assert.Equal(t, time.Second, left)
	})
}

func TestWhoIsLetInAndLeavesMakesRoomForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 1, 1, 2, 3)
		time.Sleep(time.Second)
		q.look(line1, all[0])
		require.Equal(t, served, all[1].verdict)
		assert.Equal(t, cache.Slot{At: 4}, q.leave(line1, all[1]))
		v, _ := q.look(line1, all[2])
		assert.Equal(t, served, v, "in the place of the one that left")
		v, left := q.look(line1, all[3])
		assert.Equal(t, next, v)
		assert.Equal(t, time.Second, left)

		time.Sleep(time.Second)
		q.look(line1, all[3])
		assert.Equal(t, cache.Slot{At: 3}, q.leave(line1, all[3]), "nobody is left to take its slot")
	})
}

func TestASlotThatSeemsLateIsDueNoLaterThanTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 9, 8, 2)
		assert.Len(t, all[0].wake, 1, "it sleeps for too long")
		_, left := q.look(line1, all[0])
		assert.Equal(t, 2*time.Second, left)

		early := q.join(line1, cache.Slot{At: 0}, time.Now().Add(5*time.Second))
		v, left := q.look(line1, early)
		assert.Equal(t, next, v, "the first slot is the first one's")
		assert.Equal(t, 2*time.Second, left)
		v, _ = q.look(line1, all[0])
		assert.Equal(t, queued, v)
	})
}

// Slots that others have come with say nothing about their place: they have moved up.
func TestANewcomerIsBehindThoseWhoMovedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		all := stand(&q, 1, 2, 9)
		require.Equal(t, cache.Slot{At: 3}, q.leave(line1, all[0])) // the third one has the second slot now
		late := q.join(line1, cache.Slot{At: 2, ID: 1}, time.Now().Add(3*time.Second))
		time.Sleep(2 * time.Second)
		q.look(line1, all[1])
		assert.Equal(t, served, all[2].verdict)
		assert.Equal(t, queued, late.verdict)
	})
}
