package failover

import (
	"context"
	"time"
)

// A found is what two methods of the port return before the error.
type found[T any] struct {
	v  T
	ok bool
}

type nothing = struct{}

// Get implements [cache.KeyValue].
func (s *store) Get(ctx context.Context, key string) (string, bool, error) {
	f, err := do(ctx, s, func(c side) (f found[string], err error) {
		f.v, f.ok, err = c.Get(ctx, key)
		return f, err
	})
	return f.v, f.ok, err
}

// Set implements [cache.KeyValue].
func (s *store) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	_, err := do(ctx, s, func(c side) (nothing, error) {
		return nothing{}, c.Set(ctx, key, value, ttl)
	})
	return err
}

// Increment implements [cache.KeyValue].
func (s *store) Increment(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	return do(ctx, s, func(c side) (int64, error) { return c.Increment(ctx, key, ttl) })
}

// Delete implements [cache.KeyValue].
func (s *store) Delete(ctx context.Context, key string) error {
	_, err := do(ctx, s, func(c side) (nothing, error) { return nothing{}, c.Delete(ctx, key) })
	return err
}

// RecordHit implements [cache.HitWindow].
func (s *store) RecordHit(ctx context.Context, key string, at time.Time, ttl time.Duration) error {
	_, err := do(ctx, s, func(c side) (nothing, error) {
		return nothing{}, c.RecordHit(ctx, key, at, ttl)
	})
	return err
}

// CountHits implements [cache.HitWindow].
func (s *store) CountHits(ctx context.Context, key string, since time.Time) (int, error) {
	return do(ctx, s, func(c side) (int, error) { return c.CountHits(ctx, key, since) })
}

// OldestHit implements [cache.HitWindow].
func (s *store) OldestHit(ctx context.Context, key string, since time.Time) (time.Time, bool, error) {
	f, err := do(ctx, s, func(c side) (f found[time.Time], err error) {
		f.v, f.ok, err = c.OldestHit(ctx, key, since)
		return f, err
	})
	return f.v, f.ok, err
}
