package memory

// A series is hits in the order of their instants: in a ring that grows by doubling and,
// behind those, a few that are yet to be put there. Most calls need no more than what is
// here, and so not the ring, which is far away.
//
// A hit in the ring costs eight bytes, and eight more once there was a weight that is not
// one. From then on all are in the ring.
type series struct {
	n       int      // how many hits there are
	oldest  int64    // the first hit's instant, if there is one
	newest  int64    // the last hit's
	more    *details // nil if there are none
	next    uint64   // the ID of the next hit
	peak    int      // the most hits since the ring was last looked at
	ring    []int64  // the instants; its length is a power of two
	head    int      // where in the ring the first hit is
	pending int      // how many hits are not there yet, but in last
	last    [7]int64
}

// details are what few series have.
type details struct {
	gaps    gaps
	through []uint64 // a ring parallel to that of instants: the weight of all hits so far; nil while all were one
	before  uint64   // the weight of all hits before the first; of weights, differences count
}

func (s *series) at(i int) int64  { return *s.hit(i) }
func (s *series) inRing() int     { return s.n - s.pending }
func (s *series) place(i int) int { return (s.head + i) & (len(s.ring) - 1) }

// hit returns where the instant of the i-th hit is.
func (s *series) hit(i int) *int64 {
	if j := i - s.inRing(); j >= 0 {
		return &s.last[j]
	}
	return &s.ring[s.place(i)]
}

func (s *series) weighted() bool { return s.more != nil && s.more.through != nil }

// upTo returns the weight of all hits before the i-th of a weighted series.
func (s *series) upTo(i int) uint64 {
	if i == 0 {
		return s.more.before
	}
	return s.more.through[s.place(i-1)]
}

// from returns the weight of the hits from the i-th on.
func (s *series) from(i int) uint64 {
	if !s.weighted() {
		return uint64(s.n - i)
	}
	return s.upTo(s.n) - s.upTo(i)
}

// search returns the index of the first hit at or after the instant.
func (s *series) search(instant int64) int {
	return gallop(0, s.n, func(i int) bool { return s.at(i) < instant })
}

// slot returns the first instant, not before now and not before the last hit, at
// which there is room for a hit.
func (s *series) slot(now, window, limit, weight int64) int64 {
	room := uint64(limit - weight)
	s.tidy(now-window, window, room)
	if s.n == 0 {
		return now
	}
	slot := max(now, s.newest)
	if !s.weighted() {
		if uint64(s.n) > room {
			slot = max(slot, s.at(s.n-1-int(room))+window)
		}
		return slot
	}
	// The hits that will have left the window by then are in nobody's way, and without
	// them no sum overflows.
	first := s.search(slot - window + 1)
	free := gallop(first, s.n, func(i int) bool { return s.from(i) > room })
	if free > first {
		slot = max(slot, s.at(free-1)+window)
	}
	return slot
}

// push adds a hit that is not before any other, and returns its ID.
func (s *series) push(instant, weight int64) (id uint64) {
	if weight != 1 {
		s.weigh()
	}
	if s.pending == len(s.last) {
		s.settle()
	}
	s.last[s.pending] = instant
	s.pending++
	if s.n == 0 {
		s.oldest = instant
	}
	s.newest = instant
	s.n++
	s.peak = max(s.peak, s.n)
	s.next++
	if s.weighted() {
		s.settle()
		s.more.through[s.place(s.n-1)] = s.upTo(s.n-1) + uint64(weight)
	}
	return s.next - 1
}

// settle puts into the ring what is pending.
func (s *series) settle() {
	for s.n > len(s.ring) {
		s.resize(max(8, 2*len(s.ring)))
	}
	for i, instant := range s.last[:s.pending] {
		s.ring[s.place(s.inRing()+i)] = instant
	}
	s.pending = 0
}

// insert adds a hit of weight one where its instant belongs.
func (s *series) insert(instant int64) {
	s.push(instant, 1)
	for i := s.n - 1; i > 0 && s.at(i-1) > instant; i-- {
		*s.hit(i), *s.hit(i - 1) = s.at(i-1), instant
	}
	s.note()
}

// note takes down the first and the last instant.
func (s *series) note() { s.oldest, s.newest = s.at(0), s.at(s.n-1) }

// tidy discards the hits up to an instant, which have left the window, if there is a
// reason to: they stand where the next one belongs, or are a window older than they need
// be. To do it each time would be to look at the far end of the ring each time, which is
// seldom near.
func (s *series) tidy(left, window int64, room uint64) {
	if uint64(s.n) > room || s.oldest <= left-window || s.full() || s.weighted() {
		s.discard(left + 1)
	}
}

// full reports whether the ring has to grow for the next hit.
func (s *series) full() bool { return s.pending == len(s.last) && s.n > len(s.ring) }

// discard forgets the hits before the instant.
func (s *series) discard(before int64) {
	if s.n == 0 || s.oldest >= before {
		return
	}
	gone := s.search(before)
	if gone == s.n {
		s.clear()
	} else {
		if s.weighted() {
			s.more.before = s.upTo(gone)
		}
		if over := gone - s.inRing(); over > 0 {
			copy(s.last[:], s.last[over:s.pending])
			s.pending -= over
		} else {
			s.head = s.place(gone)
		}
		s.n -= gone
		s.note()
		if s.more != nil {
			s.more.gaps = s.more.gaps.trim(s.next, s.n)
		}
	}
	s.shrink()
}

// find returns the index of a hit.
func (s *series) find(instant int64, id uint64) (i int, ok bool) {
	var g gaps
	if s.more != nil {
		g = s.more.gaps
	}
	i, ok = g.index(id, s.next, s.n)
	return i, ok && s.at(i) == instant
}

// remove removes the i-th hit, whose ID this is.
func (s *series) remove(i int, id uint64) {
	if s.n == 1 {
		s.clear()
		return
	}
	if s.more == nil {
		s.more = new(details)
	}
	s.more.gaps = s.more.gaps.add(id)
	if s.weighted() {
		weight := s.upTo(i+1) - s.upTo(i)
		for j := i; j < s.n-1; j++ {
			s.more.through[s.place(j)] = s.upTo(j+2) - weight
		}
	}
	for j := i; j < s.n-1; j++ {
		*s.hit(j) = s.at(j + 1)
	}
	if s.pending > 0 {
		s.pending--
	}
	s.n--
	s.note()
}

// clear removes all hits.
func (s *series) clear() {
	s.head, s.n, s.pending = 0, 0, 0
	if s.more != nil {
		s.more.gaps = nil
	}
}

// weigh makes a series of weights out of one whose weights are all one.
func (s *series) weigh() {
	if s.weighted() {
		return
	}
	if s.more == nil {
		s.more = new(details)
	}
	s.settle()
	s.more.through = make([]uint64, len(s.ring))
	for i := range s.n {
		s.more.through[s.place(i)] = uint64(i) + 1
	}
}

// shrink makes the ring small again if it is far too large, and was already when it was
// last looked at, and has been in between.
func (s *series) shrink() {
	const worthwhile = 16
	if len(s.ring) < worthwhile || s.n > len(s.ring)/8 {
		return
	}
	if s.peak <= len(s.ring)/4 {
		size := len(s.ring) / 2
		for size >= worthwhile && s.peak <= size/4 {
			size /= 2
		}
		s.resize(size)
	}
	s.peak = s.n
}

// resize moves the hits to rings of another size.
func (s *series) resize(size int) {
	s.ring = unroll(s.ring, s.head, s.inRing(), size)
	if s.weighted() {
		s.more.through = unroll(s.more.through, s.head, s.inRing(), size)
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

// gallop returns the first index in [lo, hi) for which skip is false, or hi; it is
// false from some index on. The cost grows with the logarithm of the distance from
// lo, where the answer most often is.
func gallop(lo, hi int, skip func(int) bool) int {
	for step := 1; lo < hi; step *= 2 {
		probe := min(lo+step, hi) - 1
		if !skip(probe) {
			hi = probe
			break
		}
		lo = probe + 1
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if skip(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
