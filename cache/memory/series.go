package memory

// A series is hits in the order of their instants, in a ring that grows by doubling.
// A hit costs eight bytes while every weight is one and no slot was given back, and
// 24 from then on until the series is empty again.
type series struct {
	ring []int64  // the instants; its length is a power of two
	head int      // where in the ring the first hit is
	n    int      // how many hits there are
	peak int      // the most hits since the ring was last found too large
	next uint64   // the ID of the next hit
	more *details // nil while weights are all one and IDs without gaps
}

// details is what is known of the hits besides their instants.
type details struct {
	ring   []detail // parallel to the ring of instants
	before uint64   // the weight of all hits before the first
}

type detail struct {
	id      uint64
	through uint64 // the weight of all hits so far, this one included; differences count
}

func (s *series) at(i int) int64  { return s.ring[s.place(i)] }
func (s *series) last() int64     { return s.at(s.n - 1) }
func (s *series) place(i int) int { return (s.head + i) & (len(s.ring) - 1) }
func (s *series) first() uint64   { return s.next - uint64(s.n) } // the first hit's ID while there are no gaps

// from returns the weight of the hits from the i-th on.
func (s *series) from(i int) uint64 {
	switch {
	case i == s.n:
		return 0
	case s.more == nil:
		return uint64(s.n - i)
	}
	return s.more.ring[s.place(s.n-1)].through - s.upTo(i)
}

// upTo returns the weight of all hits before the i-th.
func (s *series) upTo(i int) uint64 {
	if i == 0 {
		return s.more.before
	}
	return s.more.ring[s.place(i-1)].through
}

// search returns the index of the first hit at or after the instant. It gallops from
// the front, where the answer is most often found.
func (s *series) search(instant int64) int {
	return gallop(0, s.n, func(i int) bool { return s.at(i) < instant })
}

// slot returns the first instant, not before now and not before the last hit, at
// which there is room for a hit. What has left the window by now must have been
// discarded.
func (s *series) slot(now, window, limit, weight int64) int64 {
	if s.n == 0 {
		return now
	}
	slot := max(now, s.last())
	room := uint64(limit - weight)
	if s.more == nil {
		if uint64(s.n) > room {
			slot = max(slot, s.at(s.n-int(room)-1)+window)
		}
		return slot
	}
	// Hits that have left the window by the last one are not in anybody's way, and
	// without them no sum overflows.
	first := s.search(slot - window + 1)
	blocking := gallop(first, s.n, func(i int) bool { return s.from(i) > room })
	if blocking > first {
		slot = max(slot, s.at(blocking-1)+window)
	}
	return slot
}

// push adds a hit that is not before any other, and returns its ID.
func (s *series) push(instant, weight int64) (id uint64) {
	if s.n == len(s.ring) {
		s.resize(max(1, 2*len(s.ring)))
	}
	if weight != 1 {
		s.detail()
	}
	id = s.next
	if s.more != nil {
		through := s.upTo(s.n)
		s.more.ring[s.place(s.n)] = detail{id, through + uint64(weight)}
	}
	s.ring[s.place(s.n)] = instant
	s.n++
	s.next++
	s.peak = max(s.peak, s.n)
	return id
}

// insert adds a hit of weight one in the order of instants.
func (s *series) insert(instant int64) {
	s.push(instant, 1)
	for i := s.n - 1; i > 0 && s.at(i-1) > instant; i-- {
		s.ring[s.place(i)], s.ring[s.place(i-1)] = s.at(i-1), instant
	}
}

// discard forgets the hits before the instant.
func (s *series) discard(before int64) {
	if s.n == 0 || s.at(0) >= before {
		return
	}
	gone := s.search(before)
	if gone == s.n {
		s.clear()
	} else {
		if s.more != nil {
			s.more.before = s.upTo(gone)
		}
		s.head = s.place(gone)
		s.n -= gone
	}
	s.shrink()
}

// find returns the index of a hit.
func (s *series) find(instant int64, id uint64) (i int, ok bool) {
	if s.more == nil {
		if id < s.first() || id >= s.next {
			return 0, false
		}
		i = int(id - s.first())
	} else {
		i = gallop(0, s.n, func(i int) bool { return s.more.ring[s.place(i)].id < id })
		if i == s.n || s.more.ring[s.place(i)].id != id {
			return 0, false
		}
	}
	return i, s.at(i) == instant
}

// remove removes the i-th hit.
func (s *series) remove(i int) {
	if s.n == 1 {
		s.clear()
		return
	}
	s.detail()
	weight := s.upTo(i+1) - s.upTo(i)
	for ; i < s.n-1; i++ {
		here, next := s.place(i), s.place(i+1)
		s.ring[here] = s.ring[next]
		s.more.ring[here] = s.more.ring[next]
		s.more.ring[here].through -= weight
	}
	s.n--
}

// clear removes all hits.
func (s *series) clear() {
	s.head, s.n, s.more = 0, 0, nil
}

// detail makes the details.
func (s *series) detail() {
	if s.more != nil {
		return
	}
	s.more = &details{ring: make([]detail, len(s.ring))}
	for i := range s.n {
		s.more.ring[s.place(i)] = detail{s.first() + uint64(i), uint64(i) + 1}
	}
}

// shrink halves the ring when it has been far too large for a while: ever since the
// last time that it seemed so.
func (s *series) shrink() {
	const worthwhile = 16
	if len(s.ring) < worthwhile || s.n > len(s.ring)/8 {
		return
	}
	if s.peak <= len(s.ring)/4 {
		s.resize(len(s.ring) / 2)
	}
	s.peak = s.n
}

// resize moves the hits to rings of another size.
func (s *series) resize(size int) {
	s.ring = unroll(s.ring, s.head, s.n, size)
	if s.more != nil {
		s.more.ring = unroll(s.more.ring, s.head, s.n, size)
	}
	s.head = 0
}

// unroll copies n elements of a ring, from head on, to the front of a new one.
func unroll[E any](ring []E, head, n, size int) []E {
	to := make([]E, size)
	k := copy(to[:n], ring[head:])
	copy(to[k:n], ring)
	return to
}

// gallop returns the first index in [lo, hi) for which before is false, or hi. It
// is false from some index on. The cost grows with the logarithm of the distance
// from lo.
func gallop(lo, hi int, before func(int) bool) int {
	for step := 1; lo < hi; step *= 2 {
		probe := min(lo+step, hi) - 1
		if !before(probe) {
			hi = probe
			break
		}
		lo = probe + 1
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if before(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
