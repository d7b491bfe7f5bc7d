package compliancetest_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// plain is the shortest cache that keeps the rules: two maps under one lock, and no
// optional capability.
type plain struct {
	mu     sync.Mutex
	closed bool
	values map[string]value
	series map[string]series
}

type value struct {
	text string
	ends time.Time // zero: never
}

type series struct {
	hits []int64 // microseconds, in order
	ends time.Time
}

var _ cache.Cache = (*plain)(nil)

func newPlain() *plain {
	return &plain{values: map[string]value{}, series: map[string]series{}}
}

func (p *plain) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// enter locks p for one call, unless the call may not be made.
func (p *plain) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return cache.ErrClosed
	}
	return nil
}

func over(ends time.Time) bool { return !ends.IsZero() && !time.Now().Before(ends) }

func ending(ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return time.Now().Add(ttl)
}

func (p *plain) lookUp(key string) (value, bool) {
	v, ok := p.values[key]
	if !ok || over(v.ends) {
		return value{}, false
	}
	return v, true
}

func (p *plain) Get(ctx context.Context, key string) (string, bool, error) {
	if err := p.enter(ctx); err != nil {
		return "", false, err
	}
	defer p.mu.Unlock()
	v, ok := p.lookUp(key)
	return v.text, ok, nil
}

var errTTL = errors.New("bad ttl")

func (p *plain) Set(ctx context.Context, key, text string, ttl time.Duration) error {
	if ttl < 0 {
		return errTTL
	}
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	p.values[key] = value{text, ending(ttl)}
	return nil
}

func (p *plain) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	if ttl < 0 {
		return 0, errTTL
	}
	if err := p.enter(ctx); err != nil {
		return 0, err
	}
	defer p.mu.Unlock()
	v, ok := p.lookUp(key)
	if !ok {
		v = value{"0", ending(ttl)}
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != v.text {
		return 0, cache.ErrNotInteger
	}
	if n == math.MaxInt64 {
		return 0, cache.ErrOverflow
	}
	v.text = strconv.FormatInt(n+1, 10)
	p.values[key] = v
	return n + 1, nil
}

func (p *plain) Delete(ctx context.Context, key string) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	delete(p.values, key)
	delete(p.series, key)
	return nil
}

func (p *plain) hits(key string) series {
	s := p.series[key]
	if over(s.ends) {
		return series{}
	}
	return s
}

func (p *plain) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	if ttl <= 0 {
		return errTTL
	}
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	s := p.hits(key)
	i, _ := slices.BinarySearch(s.hits, at.UnixMicro())
	s.hits = slices.Insert(s.hits, i, at.UnixMicro())
	if ends := ending(ttl); ends.After(s.ends) {
		s.ends = ends
	}
	p.series[key] = s
	return nil
}

func (p *plain) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	if err := p.enter(ctx); err != nil {
		return 0, err
	}
	defer p.mu.Unlock()
	s := p.hits(key)
	i, _ := slices.BinarySearch(s.hits, since.UnixMicro())
	if i > 0 {
		s.hits = s.hits[i:]
		p.series[key] = s
	}
	return len(s.hits), nil
}

func (p *plain) OldestHit(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
	if err := p.enter(ctx); err != nil {
		return time.Time{}, false, err
	}
	defer p.mu.Unlock()
	s := p.hits(key)
	i, _ := slices.BinarySearch(s.hits, since.UnixMicro())
	if i == len(s.hits) {
		return time.Time{}, false, nil
	}
	return time.UnixMicro(s.hits[i]), true, nil
}

// able is plain with every optional capability.
type able struct {
	*plain
	acquired map[string][]entry
	lastID   uint64
}

type entry struct {
	slot   cache.Slot
	weight int64
}

var (
	_ cache.CompareAndSwapper = (*able)(nil)
	_ cache.MultiGetter       = (*able)(nil)
	_ cache.Acquirer          = (*able)(nil)
)

func newAble() *able { return &able{plain: newPlain(), acquired: map[string][]entry{}} }

func (a *able) CompareAndSwap(ctx context.Context, key string, old, new cache.Entry, ttl time.Duration) (bool, error) {
	if ttl < 0 && new.Present {
		return false, errTTL
	}
	if err := a.enter(ctx); err != nil {
		return false, err
	}
	defer a.mu.Unlock()
	v, ok := a.lookUp(key)
	if ok != old.Present || ok && v.text != old.Value {
		return false, nil
	}
	if new.Present {
		a.values[key] = value{new.Value, ending(ttl)}
	} else {
		delete(a.values, key)
	}
	return true, nil
}

func (a *able) GetMany(ctx context.Context, keys []string, entries []cache.Entry) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer a.mu.Unlock()
	for i, key := range keys {
		v, ok := a.lookUp(key)
		entries[i] = cache.Entry{Value: v.text, Present: ok}
	}
	return nil
}

func (a *able) Delete(ctx context.Context, key string) error {
	if err := a.plain.Delete(ctx, key); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.acquired, key)
	return nil
}

func (a *able) TimeLimit() (time.Duration, bool) { return 0, true }

func (a *able) Acquire(ctx context.Context, key string, r cache.Request) (cache.Grant, error) {
	return a.acquire(ctx, key, r, slotFor)
}

// acquire asks find for the instant, so that a defect need only be written there.
func (a *able) acquire(ctx context.Context, key string, r cache.Request,
	find func(hits []entry, now int64, r cache.Request) int64,
) (cache.Grant, error) {
	if err := r.Validate(); err != nil {
		return cache.Grant{}, err
	}
	if err := a.enter(ctx); err != nil {
		return cache.Grant{}, err
	}
	defer a.mu.Unlock()
	now := time.Now().UnixMicro()
	at := find(a.acquired[key], now, r)
	wait := time.Duration(math.MaxInt64)
	if us := at - now; us < math.MaxInt64/1000 {
		wait = time.Duration(us) * time.Microsecond
	}
	if wait > r.MaxWait {
		return cache.Grant{Wait: wait}, nil
	}
	slot := a.record(key, at, r.Weight)
	return cache.Grant{OK: true, Wait: wait, Slot: slot}, nil
}

func (a *able) record(key string, at, weight int64) cache.Slot {
	a.lastID++
	slot := cache.Slot{At: at, ID: a.lastID}
	hits := append(a.acquired[key], entry{slot, weight})
	slices.SortFunc(hits, func(x, y entry) int { return x.slot.Compare(y.slot) })
	a.acquired[key] = hits
	return slot
}

// micros is d in whole microseconds, rounded up.
func micros(d time.Duration) int64 {
	us := d.Microseconds()
	if d%time.Microsecond != 0 {
		us++
	}
	return us
}

// slotFor goes from hit to hit until those that are less than a window old leave room.
func slotFor(hits []entry, now int64, r cache.Request) int64 {
	if len(hits) > 0 {
		now = max(now, hits[len(hits)-1].slot.At)
	}
	window := micros(r.Window)
	hits = slices.DeleteFunc(slices.Clone(hits), func(h entry) bool { return h.slot.At <= now-window })
	at, used := now, weight(hits)
	for _, h := range hits {
		if used <= r.Limit-r.Weight {
			break
		}
		at = h.slot.At + window
		used -= h.weight
	}
	return at
}

func weight(hits []entry) (sum int64) {
	for _, h := range hits {
		sum += h.weight
	}
	return sum
}

func (a *able) GiveBack(ctx context.Context, key string, s cache.Slot) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer a.mu.Unlock()
	a.acquired[key] = slices.DeleteFunc(a.acquired[key], func(e entry) bool { return e.slot == s })
	return nil
}

func (a *able) Used(ctx context.Context, key string, window time.Duration) (int64, error) {
	if err := a.enter(ctx); err != nil {
		return 0, err
	}
	defer a.mu.Unlock()
	since := time.Now().UnixMicro() - micros(window)
	return weight(slices.DeleteFunc(slices.Clone(a.acquired[key]), func(h entry) bool { return h.slot.At <= since })), nil
}
