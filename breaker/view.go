package breaker

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A view is what one reading of a circuit found. Immutable.
type view struct {
	*phase
	seq      uint64         // views of a greater seq began to be read later
	at       time.Duration  // when it was read; kept for a staleness only
	outdated bool           // not to be used again, because something was written since
	free     bool           // closed, and nobody else can write: calls need no further look
	failures int64          // closed: how many are counted
	waiting  bool           // open: the timeout has not passed
	holders  []cache.Entry  // open: what is at each place
	corrupt  []error        // what could not be read, and was taken for absent
	room     [2]cache.Entry // for what is read of a closed circuit
}

// status is the view's state in the words of the outside.
func (v *view) status() State {
	switch {
	case !v.open:
		return Closed
	case v.waiting:
		return Open
	default:
		return HalfOpen
	}
}

// full reports whether all places for probes are taken.
func (v *view) full() bool {
	for i := range v.holders {
		if !v.taken(i) {
			return false
		}
	}
	return true
}

// taken reports whether a place is. What is there and names no holder takes none.
func (v *view) taken(i int) bool { return isHolder(v.holders[i]) }

func isHolder(e cache.Entry) bool { return e.Present && len(e.Value) >= idLength }

// read asks the store. It asks for what belongs to the phase p, so there is a second
// round trip only if the circuit is in another.
func (b *Breaker) read(ctx context.Context, p *phase) (*view, error) {
	for first := true; ; first = false {
		v := &view{phase: p, seq: b.seq.Add(1)}
		entries := slices.Grow(v.room[:0], len(p.keys))[:len(p.keys)]
		err := cache.GetMany(ctx, b.kv, p.keys, entries)
		if first && (err != nil || entries[0] != p.raw) {
			var cancel context.CancelFunc
			ctx, cancel = b.bounded(ctx) // perhaps there is more to ask, and a quick cache has no limit yet
			defer cancel()
		}
		if isCorrupt(err) {
			v.corrupt, err = b.salvage(ctx, p.keys, entries)
		}
		if err != nil {
			return nil, err
		}
		raw := entries[0]
		if !raw.Present {
			raw = cache.Absent() // whatever its value
		}
		if raw != p.raw {
			p = b.newPhase(raw)
			continue
		}
		if b.cfg.Staleness > 0 {
			v.at = b.now()
		}
		if p.open {
			v.waiting = entries[1] == marker
			v.holders = entries[2:]
			for i, e := range entries {
				if i == 1 && e.Present && e != marker || i > 1 && e.Present && !isHolder(e) {
					v.corrupt = append(v.corrupt, &cache.CorruptError{Op: "get", Key: p.keys[i], Err: errGarbage})
				}
			}
			return v, nil
		}
		v.free = b.owned != nil
		if e := entries[1]; e.Present {
			if v.failures, err = strconv.ParseInt(e.Value, 10, 64); err != nil || v.failures < 1 {
				v.failures = 1 // it is in the way of counting, so let a success replace it
			}
		}
		return v, nil
	}
}

// salvage reads what can be read, and takes the rest for absent.
func (b *Breaker) salvage(ctx context.Context, keys []string, entries []cache.Entry) (corrupt []error, err error) {
	for i, key := range keys {
		value, ok, err := b.kv.Get(ctx, key)
		switch {
		case isCorrupt(err):
			corrupt = append(corrupt, err)
			entries[i] = cache.Absent()
		case err != nil:
			return nil, err
		default:
			entries[i] = cache.Entry{Value: value, Present: ok}
		}
	}
	return corrupt, nil
}

// refresh reads, and makes what it finds the view of all callers unless they have a
// later one. It never returns what was read before it was called: after a write it
// shows what was written, or what followed. The phase is what is expected, or nil for
// no change.
func (b *Breaker) refresh(ctx context.Context, expected *phase) (*view, error) {
	if expected == nil {
		expected = b.view.Load().phase
	}
	v, err := b.read(ctx, expected)
	if err == nil {
		b.install(ctx, v)
	}
	return v, err
}

// install makes v the view of all callers unless they have a later one, and returns
// the later of both that can be used. What is new in it the observers are told.
func (b *Breaker) install(ctx context.Context, v *view) *view {
	b.mu.Lock()
	old := b.view.Load()
	if v.seq <= old.seq {
		b.mu.Unlock()
		if old.outdated {
			return v
		}
		return old
	}
	b.view.Store(v)
	if from, to := old.status(), v.status(); from != to && b.cfg.OnStateChange != nil {
		b.changes.add(ctx, Transition{Name: b.cfg.Name, From: from, To: to})
	}
	b.mu.Unlock()

	b.changes.deliver(&b.mu, b.cfg.OnStateChange)
	for _, err := range v.corrupt {
		b.tell(ctx, err)
	}
	if v.err != nil && !v.same(old.phase) {
		b.tell(ctx, &cache.CorruptError{Op: "get", Key: v.state(), Err: v.err})
	}
	return v
}

// forget has the next call read, whatever the staleness: something was written, or
// perhaps written, that the view does not show.
func (b *Breaker) forget() {
	b.mu.Lock()
	v := *b.view.Load()
	v.seq, v.outdated, v.free = b.seq.Add(1), true, false
	b.view.Store(&v)
	b.mu.Unlock()
}

// suspect takes a failure of the phase for counted that perhaps was, so that a success
// clears it.
func (b *Breaker) suspect(from *phase) {
	b.mu.Lock()
	v := *b.view.Load()
	if v.continues(from) {
		v.failures = max(v.failures, 1)
		b.view.Store(&v)
	}
	b.mu.Unlock()
}

// look returns what the circuit is now, or was within the staleness, and changes
// nothing. It never returns what was read before something that this process had
// written when look was called.
func (b *Breaker) look(ctx context.Context) (*view, error) {
	v := b.view.Load()
	if v.free || !v.outdated && b.holds(v) {
		return v, nil
	}
	if b.local {
		return b.read(ctx, v.phase)
	}
	for began, round := v.seq, 1; ; round++ {
		v, err := b.readTogether(ctx)
		if err != nil {
			return nil, err
		}
		last := b.view.Load()
		switch {
		case round == 1 && b.lapsed(v):
			// It began before the time that somebody was told to come back at.
		case last.seq <= v.seq:
			return v, nil
		case !last.outdated:
			return last, nil
		case v.seq >= began && round >= mostRounds:
			return v, nil // or nobody would be answered while there is always something written
		}
	}
}

// holds reports whether a view can do instead of a look.
func (b *Breaker) holds(v *view) bool {
	if b.owned != nil {
		return v.waiting && v.until > b.now()
	}
	if b.cfg.Staleness == 0 {
		return false
	}
	now, longest := b.now(), b.cfg.Staleness
	if v.status() == HalfOpen {
		longest = min(longest, b.wait(v)) // whoever comes back when told to is answered anew
	}
	return now-v.at < longest && !b.lapsed(v)
}

// lapsed reports whether a view shows an open circuit whose timeout has passed meanwhile.
func (b *Breaker) lapsed(v *view) bool { return v.waiting && v.until <= b.now() }
