package cache

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// AcquirerOf returns c itself if it is an [Acquirer], and otherwise one over its
// plain methods: it reads the clock of this process, counts, and records, one caller
// of a key at a time.
//
// So every caller who uses the one returned Acquirer gets what the interface promises,
// with these differences:
//
//   - Between two of them over the same store, in one process or in several, the
//     steps of one can fall between those of the other: up to one hit more for each of
//     the others may then get in. Their clocks have to agree, too, and what one
//     gave back the others go on counting. How many hits there are at one and the same
//     microsecond is not always known; then a wait is longer than it need be, and never
//     shorter.
//   - The plain methods cannot take a hit back. A slot that is given back before its
//     instant goes to the next caller instead, and if none comes, it counts.
//   - A hit of weight n is n hits at one instant, and is n calls of RecordHit. A
//     failure between them leaves those that were made.
//   - Used discards what is older than its window, because CountHits may.
//   - A slot now costs one count and one record, a slot later one look at the oldest
//     hit as well, and a refusal one count and one look. Where callers wait, hits of
//     others cost a look at each instant of the window.
//
// Steps of the wall clock while the process runs make no difference. Memory is held
// for keys in use and, where callers may wait or hits have weights, for the hits of one
// window and of the waits.
func AcquirerOf(c HitWindow) Acquirer {
	if a, ok := c.(Acquirer); ok {
		return a
	}
	return &plain{hits: c, start: time.Now(), ledgers: map[string]*ledger{}}
}

// plain is an Acquirer over the plain methods.
type plain struct {
	hits   HitWindow
	start  time.Time // wall and monotonic: everything else is time since then
	lastID atomic.Uint64

	mu      sync.Mutex
	ledgers map[string]*ledger
	sweepAt int // at how many ledgers to look for dead ones
}

// A ledger is what is known here about one series. Whoever has put the token into
// the gate may use the rest; the gate is a channel, for its wait ends with a context.
type ledger struct {
	gate  chan struct{}
	users int   // who holds or wants the gate; guarded by plain.mu
	until int64 // when the last hit of the record leaves the window
	record
}

// A record is of what was recorded from here. It is begun by a hit that could have
// waited or has a weight, for then it matters which hits leave together, and is kept until
// a window has passed after its last one. It is all there is in the series if its weight
// is what the store counts.
type record struct {
	hits   []hit // in order of their instants
	weight int64 // of all of them
	free   int   // how many of them are free
}

type hit struct {
	at     int64
	id     uint64
	weight int64
	free   bool // given back
}

// Acquire implements [Acquirer].
func (p *plain) Acquire(ctx context.Context, key string, r Request) (Grant, error) {
	if err := r.Validate(); err != nil {
		return Grant{}, err
	}
	l, err := p.enter(ctx, key)
	if err != nil {
		return Grant{}, err
	}
	defer p.leave(key, l)

	now, window := p.now(), micros(r.Window)
	count, err := p.count(ctx, key, l, now, window)
	if err != nil {
		return Grant{}, err
	}
	at, spare, err := p.find(ctx, key, l, r, count, now, window)
	if err != nil {
		return Grant{}, err
	}
	wait := at - now
	if wait > r.MaxWait.Microseconds() {
		return Grant{Wait: duration(wait)}, nil
	}
	slot := Slot{At: at, ID: p.lastID.Add(1)}
	if spare >= 0 {
		l.reuse(spare, slot.ID, r.Weight)
		return Grant{OK: true, Wait: duration(wait), Slot: slot}, nil
	}
	for range r.Weight {
		if err := p.hits.RecordHit(ctx, key, time.UnixMicro(at), duration(wait+2*window)); err != nil {
			return Grant{}, err
		}
	}
	if r.MaxWait > 0 || r.Weight > 1 || len(l.hits) > 0 {
		l.add(hit{at: at, id: slot.ID, weight: r.Weight})
		l.until = l.hits[len(l.hits)-1].at + window
	}
	return Grant{OK: true, Wait: duration(wait), Slot: slot}, nil
}

// GiveBack implements [Acquirer].
func (p *plain) GiveBack(ctx context.Context, key string, s Slot) error {
	l, err := p.enter(ctx, key)
	if err != nil {
		return err
	}
	defer p.leave(key, l)
	for i := l.from(s.At); i < len(l.hits) && l.hits[i].at == s.At; i++ {
		if h := &l.hits[i]; h.id == s.ID && !h.free {
			h.free = true
			l.free++
		}
	}
	return nil
}

// Used implements [Acquirer].
func (p *plain) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	if window < time.Microsecond {
		return 0, &ArgumentError{Op: "used", Field: "window", Value: window, Want: "at least 1µs"}
	}
	l, err := p.enter(ctx, key)
	if err != nil {
		return 0, err
	}
	defer p.leave(key, l)
	now := p.now()
	count, err := p.count(ctx, key, l, now, micros(window))
	if err != nil || l.free == 0 {
		return count, err
	}
	for _, h := range l.hits[l.from(now):] {
		if h.free {
			count -= h.weight
		}
	}
	return count, nil
}

// count returns how many hits the window ending now holds, those of the future
// included, and brings the ledger up to date with it.
func (p *plain) count(ctx context.Context, key string, l *ledger, now, window int64) (int64, error) {
	l.forget(now - window)
	n, err := p.hits.CountHits(ctx, key, time.UnixMicro(now-window+1))
	if err != nil {
		return 0, err
	}
	if int64(n) < l.weight { // somebody has deleted the series
		l.record = record{}
	}
	return int64(n), nil
}

// find returns the instant of the next slot, and the place of the hit that was given back
// there, or -1 if there is none.
func (p *plain) find(ctx context.Context, key string, l *ledger, r Request, count, now, window int64) (int64, int, error) {
	at, err := p.next(ctx, key, l, r, count, now, window)
	if err != nil {
		return 0, 0, err
	}
	spare := l.spare(now, at, r.Weight)
	if spare < 0 {
		return at, spare, nil
	}
	there, err := p.holds(ctx, key, l.hits[spare].at)
	switch {
	case err != nil:
		return 0, 0, err
	case there:
		return l.hits[spare].at, spare, nil
	}
	// Somebody has deleted the series, and begun another.
	l.record = record{}
	at, err = p.next(ctx, key, l, r, count, now, window)
	return at, -1, err
}

// next returns the instant of the next slot to come free: the first one at which what
// is left in the window makes room. It is never before the last hit, for that one had to
// wait for fewer to leave.
func (p *plain) next(ctx context.Context, key string, l *ledger, r Request, count, now, window int64) (int64, error) {
	excess := count + r.Weight - r.Limit
	since := now - window + 1
	if excess <= 0 {
		return now, nil
	}
	if l.weight == count {
		there, err := p.holds(ctx, key, l.hits[0].at)
		switch {
		case err != nil:
			return 0, err
		case there:
			return l.leaves(r.Limit-r.Weight) + window, nil
		}
		l.record = record{} // somebody has deleted the series, and others have begun one
	}
	if excess == 1 {
		// The first one to leave is enough. One that has vanished since it was counted
		// says nothing, and so the whole window has to pass.
		oldest, ok, err := p.hits.OldestHit(ctx, key, time.UnixMicro(since))
		if err != nil || !ok {
			return now + window, err
		}
		return oldest.UnixMicro() + window, nil
	}
	all, err := p.look(ctx, key, l, count, since, now)
	if err != nil {
		return 0, err
	}
	return all.leaves(r.Limit-r.Weight) + window, nil
}

// holds reports whether there is a hit at an instant.
func (p *plain) holds(ctx context.Context, key string, at int64) (bool, error) {
	oldest, ok, err := p.hits.OldestHit(ctx, key, time.UnixMicro(at))
	return ok && oldest.UnixMicro() == at, err
}

// look returns the series as far as it can be seen: all its instants. How many hits are
// at one of them is known only for those of the ledger; all that cannot be placed is
// taken to be at the last one, and so to leave late.
func (p *plain) look(ctx context.Context, key string, l *ledger, count, since, now int64) (record, error) {
	var all record
	late := now
	for {
		oldest, ok, err := p.hits.OldestHit(ctx, key, time.UnixMicro(since))
		if err != nil {
			return record{}, err
		}
		if !ok {
			break
		}
		at := oldest.UnixMicro()
		seen := int64(0)
		for i := l.from(at); i < len(l.hits) && l.hits[i].at == at; i++ {
			seen += l.hits[i].weight
		}
		all.add(hit{at: at, weight: max(1, seen)})
		late, since = at, at+1
	}
	if rest := count - all.weight; rest > 0 {
		all.add(hit{at: late, weight: rest})
	}
	return all, nil
}

// enter returns the ledger of a key, for this caller alone.
func (p *plain) enter(ctx context.Context, key string) (*ledger, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	l := p.ledgers[key]
	if l == nil {
		l = &ledger{gate: make(chan struct{}, 1)}
		p.ledgers[key] = l
	}
	l.users++
	p.mu.Unlock()
	select {
	case l.gate <- struct{}{}:
		return l, nil
	case <-ctx.Done():
		p.drop(key, l)
		return nil, context.Cause(ctx)
	}
}

func (p *plain) leave(key string, l *ledger) {
	<-l.gate
	p.drop(key, l)
}

// drop lets go of a ledger. The last one to do so removes it, unless there is
// something in it, and now and then removes those of others in which nothing counts any
// more.
func (p *plain) drop(key string, l *ledger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
	if l.users > 0 {
		return
	}
	if len(l.hits) == 0 {
		delete(p.ledgers, key)
		return
	}
	if len(p.ledgers) < p.sweepAt {
		return
	}
	now := p.now()
	for key, l := range p.ledgers {
		if l.users == 0 && l.until <= now {
			delete(p.ledgers, key)
		}
	}
	p.sweepAt = max(64, 2*len(p.ledgers))
}

func (p *plain) now() int64 { return p.start.UnixMicro() + time.Since(p.start).Microseconds() }

// forget drops the hits up to an instant.
func (r *record) forget(upTo int64) {
	i := 0
	for ; i < len(r.hits) && r.hits[i].at <= upTo; i++ {
		r.weight -= r.hits[i].weight
		if r.hits[i].free {
			r.free--
		}
	}
	if r.hits = r.hits[i:]; len(r.hits) == 0 {
		r.hits = nil
	}
}

// from returns the place of the first hit at or after an instant.
func (r *record) from(at int64) int {
	return sort.Search(len(r.hits), func(i int) bool { return r.hits[i].at >= at })
}

// add puts in a hit, after those of its instant.
func (r *record) add(h hit) {
	i := len(r.hits)
	for i > 0 && r.hits[i-1].at > h.at {
		i--
	}
	r.hits = slices.Insert(r.hits, i, h)
	r.weight += h.weight
}

// leaves returns the instant of the last hit that has to leave so that no more than
// room of them stay.
func (r *record) leaves(room int64) int64 {
	i := len(r.hits) - 1
	for ; i > 0 && r.hits[i].weight <= room; i-- {
		room -= r.hits[i].weight
	}
	return r.hits[i].at
}

// spare returns the place of the first hit from now on, and until an instant, that
// was given back and is heavy enough, or -1 if there is none.
func (r *record) spare(now, until, weight int64) int {
	if r.free == 0 {
		return -1
	}
	for i := r.from(now); i < len(r.hits) && r.hits[i].at <= until; i++ {
		if r.hits[i].free && r.hits[i].weight >= weight {
			return i
		}
	}
	return -1
}

// reuse gives a part of a hit that was given back to another caller.
func (r *record) reuse(i int, id uint64, weight int64) {
	h := &r.hits[i]
	if h.weight == weight {
		h.id, h.free = id, false
		r.free--
		return
	}
	h.weight -= weight
	r.hits = slices.Insert(r.hits, i+1, hit{at: h.at, id: id, weight: weight})
}

// micros returns d in microseconds, rounded up.
func micros(d time.Duration) int64 {
	us := d.Microseconds()
	if d%time.Microsecond != 0 {
		us++
	}
	return us
}

// duration returns microseconds as a duration, or the longest one.
func duration(us int64) time.Duration {
	if us > math.MaxInt64/int64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
