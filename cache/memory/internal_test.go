package memory

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is tested here is what no answer shows: that what is kept to find things
// soon, or to need little memory, is right and small after any operations.

// all returns the nodes of a table.
func (t *table[V]) all() []*node[V] {
	return slices.AppendSeq(slices.Collect(maps.Values(t.nodes)), maps.Values(t.others))
}

// The hashes are such that many keys share one.
func TestATableIsAMapWithAHeapOfItsNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for hashes := range uint64(30) {
		var tbl table[int]
		want := map[string]*node[int]{}
		now := int64(0)
		for range 300 {
			i := rng.IntN(40)
			k := name{strconv.Itoa(i), uint64(i) % (hashes + 1)}
			deadline := now + 1 + rng.Int64N(100)
			if rng.IntN(10) == 0 {
				deadline = never
			}
			n := tbl.find(k)
			require.Same(t, want[k.key], n)
			switch op := rng.IntN(10); {
			case op < 3:
				want[k.key] = tbl.add(k, deadline)
			case op < 5 && n != nil:
				tbl.expire(n, deadline)
			case op < 6 && n != nil:
				n.extend(deadline)
			case op < 8 && n != nil:
				tbl.remove(n)
				delete(want, k.key)
			case op == 8:
				now += rng.Int64N(30)
			default:
				maps.DeleteFunc(want, func(_ string, n *node[int]) bool { return n.deadline <= now })
				tbl.reclaim(now, 1000)
			}
			require.Equal(t, len(want), tbl.len())
			for i, d := range tbl.queue {
				require.Equal(t, i, d.node.pos)
				require.Same(t, d.node, tbl.find(d.node.name))
				require.LessOrEqual(t, d.at, d.node.deadline, "looked at no later than it expires")
				require.LessOrEqual(t, tbl.queue[(i-1)/2].at, d.at)
			}
			for _, n := range tbl.all() {
				require.True(t, n.deadline == never || tbl.queue[n.pos].node == n)
			}
		}
	}
}

func TestATableGivesBackTheRoomOfManyKeys(t *testing.T) {
	var tbl table[int]
	const n = 10_000
	for i := range n {
		tbl.add(name{strconv.Itoa(i), uint64(i)}, int64(i))
	}
	tbl.reclaim(n-101, n)
	assert.Len(t, tbl.nodes, 100)
	assert.Less(t, tbl.peak, 1000)
	assert.Less(t, cap(tbl.queue), 1000)
	for i := n - 100; i < n; i++ {
		require.NotNil(t, tbl.get(name{strconv.Itoa(i), uint64(i)}, n-101))
	}
}

func TestGapsKnowTheIndexOfEveryIDAndStayFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		next := rng.Uint64N(1 << 60)
		var g gaps
		var ids []uint64  // that are there
		var dead []uint64 // that were
		for range 100 {
			switch op := rng.IntN(10); {
			case op < 4:
				ids = append(ids, next)
				next++
			case op < 8 && len(ids) > 1:
				i := len(ids) - 1
				if op < 6 {
					i = rng.IntN(len(ids))
				}
				g = g.add(ids[i])
				dead = append(dead, ids[i])
				ids = append(ids[:i], ids[i+1:]...)
			case len(ids) > 1:
				gone := rng.IntN(len(ids) - 1)
				dead = append(dead, ids[:gone]...)
				ids = ids[gone:]
				g = g.trim(next, len(ids))
				for k := 1; k < len(g); k++ {
					require.Greater(t, g[k].end, ids[0], "what is before the first hit is forgotten")
				}
			}
			for i, id := range ids {
				got, ok := g.index(id, next, len(ids))
				require.True(t, ok)
				require.Equal(t, i, got)
			}
			for _, id := range append(dead, 0, next, next+1) {
				_, ok := g.index(id, next, len(ids))
				require.False(t, ok)
			}
			for k := 1; k < len(g); k++ {
				require.Less(t, g[k-1].end, g[k].end)
				if k > 1 {
					require.Greater(t, g.start(k), g[k-1].end, "gaps that meet are one")
				}
			}
		}
	}
}

func TestASeriesGivesBackTheRoomOfABurst(t *testing.T) {
	var s series
	now := int64(0)
	for range 100_000 {
		s.push(now, 2)
	}
	for range 3 { // one hit per window
		now += 10
		s.discard(now - 9)
		s.push(now, 1)
	}
	assert.LessOrEqual(t, len(s.ring), 16)
	assert.Len(t, s.more.through, len(s.ring))
}

func TestTheRoomOfABurstIsGivenBackWithinAFewWindows(t *testing.T) {
	const window = 1000
	var s series
	for range 1 << 17 {
		s.slot(0, window, 1<<40, 1)
		s.push(0, 1)
	}
	for i := range int64(5 * 100) { // a hundred hits per window
		now := window + i*window/100
		s.slot(now, window, 1<<40, 1)
		s.push(now, 1)
	}
	assert.LessOrEqual(t, len(s.ring), 1024)
}

// Whichever of its hits are in the ring, and whichever are not there yet.
func TestASeriesIsTheListOfItsHits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 200 {
		var s series
		var want []int64
		now := int64(0)
		for range 300 {
			now += rng.Int64N(3)
			switch op := rng.IntN(20); {
			case op < 12:
				weight := int64(1)
				if round%4 == 0 && rng.IntN(50) == 0 {
					weight = 2
				}
				at := max(now, s.newest)
				s.push(at, weight)
				want = append(want, at)
			case op < 14:
				at := now - rng.Int64N(20)
				s.insert(at)
				i := len(want)
				for i > 0 && want[i-1] > at {
					i--
				}
				want = slices.Insert(want, i, at)
			case op < 18 && s.n > 0:
				i := s.n - 1 - min(rng.IntN(4)*rng.IntN(4), s.n-1)
				if s.more == nil || len(s.more.gaps) == 0 { // where IDs follow from places
					s.remove(i, s.next-uint64(s.n-i))
					want = slices.Delete(want, i, i+1)
				}
			default:
				before := now - rng.Int64N(60)
				s.discard(before)
				want = slices.DeleteFunc(want, func(at int64) bool { return at < before })
			}
			require.Equal(t, len(want), s.n)
			for i, at := range want {
				require.Equal(t, at, s.at(i))
			}
			if s.n > 0 {
				require.Equal(t, []int64{want[0], want[len(want)-1]}, []int64{s.oldest, s.newest})
			}
			require.Equal(t, len(want)-s.inRing(), s.pending)
			require.LessOrEqual(t, s.inRing(), len(s.ring))
		}
	}
}

// What has left the window is not discarded by each call, but soon enough: the ring is
// no longer than the hits of two windows make it, or those of one if it would have to grow.
func TestHitsThatHaveLeftTheWindowDoNotPileUp(t *testing.T) {
	const window = 1000
	for _, gap := range []int64{1, 10, 15, 100, 400, 1000, 1500, 5000} {
		var s series
		for i := range int64(20_000) {
			now := i * gap
			require.Equal(t, now, s.slot(now, window, 1<<40, 1))
			s.push(now, 1)
			inWindow := (window + gap - 1) / gap
			require.LessOrEqual(t, int64(s.n), 2*inWindow+1)
			require.LessOrEqual(t, int64(len(s.ring)), max(2, 2*(inWindow+1)))
		}
	}
}

func TestGivingBackTheLastSlotAllocatesNothingHoweverManyThereAre(t *testing.T) {
	var s series
	for i := range int64(100_000) {
		s.push(i, 1)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		id := s.push(100_000, 1)
		i, ok := s.find(100_000, id)
		require.True(t, ok)
		s.remove(i, id)
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
	assert.LessOrEqual(t, len(s.more.gaps), 2)
}

func TestASeriesForgetsItsOldGaps(t *testing.T) {
	for name, window := range map[string]int64{"never empty": 10, "empty every time": 1} {
		var s series
		for now := range int64(10_000) {
			s.discard(now - window + 1)
			s.push(now, 1)
			id := s.push(now, 1)
			i, ok := s.find(now, id)
			require.True(t, ok)
			s.remove(i, id)
			require.EqualValues(t, min(now+1, window), s.n)
			require.LessOrEqual(t, len(s.more.gaps), s.n+1, name)
		}
	}
}
