package boltcache

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A hit is one entry of a series. Series are kept as JSON, in order: a limit is
// seldom so high that it matters beside the write to the disk, and it can be read.
type hit struct {
	At     int64  `json:"at"` // in microseconds
	ID     uint64 `json:"id"`
	Weight int64  `json:"weight"`
}

func (h hit) slot() cache.Slot { return cache.Slot{At: h.At, ID: h.ID} }

func (v view) series(op, key string) (hits []hit, ends int64, err error) {
	content, ends, ok := v.get('h', key)
	if !ok {
		return nil, 0, nil
	}
	err = json.Unmarshal(content, &hits)
	if err == nil {
		err = sound(hits)
	}
	if err != nil {
		return nil, 0, &cache.CorruptError{Op: op, Key: key, Err: err}
	}
	return hits, ends, nil
}

// sound says what is wrong with a series that nobody here has written.
func sound(hits []hit) error {
	for i, h := range hits {
		switch {
		case h.Weight < 1:
			return fmt.Errorf("boltcache: hit %d weighs %d", i, h.Weight)
		case h.At > math.MaxInt64/2:
			return fmt.Errorf("boltcache: hit %d is at %d, which is too far ahead", i, h.At)
		case i > 0 && h.At < hits[i-1].At:
			return fmt.Errorf("boltcache: hit %d is before the one before it", i)
		}
	}
	return nil
}

func (v view) putSeries(key string, hits []hit, ends int64) error {
	content, err := json.Marshal(hits)
	if err != nil {
		return err
	}
	return v.put('h', key, content, ends)
}

// add puts a new hit in its place among the others. Its ID is greater than that of any
// hit before.
func (v view) add(hits []hit, at, weight int64) ([]hit, hit, error) {
	id, err := v.NextSequence()
	if err != nil {
		return nil, hit{}, err
	}
	h := hit{At: at, ID: id, Weight: weight}
	return slices.Insert(hits, from(hits, at+1), h), h, nil
}

// from returns the place of the first hit at or after an instant.
func from(hits []hit, at int64) int {
	i, _ := slices.BinarySearchFunc(hits, at, func(h hit, at int64) int { return cmp.Compare(h.At, at) })
	return i
}

// RecordHit implements [cache.HitWindow].
func (c *Cache) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	if err := checkTTL("record hit", ttl, 1); err != nil {
		return err
	}
	return c.write(ctx, "record hit", func(v view) error {
		hits, ends, err := v.series("record hit", key)
		if err != nil {
			return err
		}
		if hits, _, err = v.add(hits, at.UnixMicro(), 1); err != nil {
			return err
		}
		return v.putSeries(key, hits, max(ends, v.after(ttl)))
	})
}

// CountHits implements [cache.HitWindow].
func (c *Cache) CountHits(ctx context.Context, key string, since time.Time) (n int, err error) {
	older := 0
	err = c.read(ctx, "count hits", func(v view) error {
		hits, _, err := v.series("count hits", key)
		older = from(hits, since.UnixMicro())
		n = len(hits) - older
		return err
	})
	if err != nil || older == 0 {
		return n, err
	}
	err = c.write(ctx, "count hits", func(v view) error {
		hits, ends, err := v.series("count hits", key)
		if err != nil {
			return err
		}
		hits = hits[from(hits, since.UnixMicro()):]
		n = len(hits)
		return v.putSeries(key, hits, ends)
	})
	return n, err
}

// OldestHit implements [cache.HitWindow].
func (c *Cache) OldestHit(ctx context.Context, key string, since time.Time) (at time.Time, ok bool, err error) {
	err = c.read(ctx, "oldest hit", func(v view) error {
		hits, _, err := v.series("oldest hit", key)
		if i := from(hits, since.UnixMicro()); i < len(hits) {
			at, ok = time.UnixMicro(hits[i].At), true
		}
		return err
	})
	return at, ok, err
}
