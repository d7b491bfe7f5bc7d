package ratelimit

import (
	"context"

	"github.com/resilience-toolkit/resilience"
)

// A Policy takes a slot of a limiter before each run of an operation. It comes from
// [Limiter.For] or [Limiter.By], and may be used by any number of goroutines at once.
type Policy struct {
	resilience.Sequential[Policy]

	limiter *Limiter
	key     string
	series  string
	keyOf   func(context.Context) string // in place of key and series
	cost    int
}

var _ resilience.Policy = Policy{}

// For returns the policy of one key.
func (l *Limiter) For(key string) Policy {
	return Policy{limiter: l, key: key, series: l.series(key), cost: 1}
}

// By returns a policy that takes the key from the call's context. It panics if keyOf
// is nil.
func (l *Limiter) By(keyOf func(ctx context.Context) string) Policy {
	if keyOf == nil {
		panic("ratelimit: By: keyOf is nil")
	}
	return Policy{limiter: l, keyOf: keyOf, cost: 1}
}

// Cost returns the same policy for calls that count as n instead of 1. What
// [Limiter.AcquireN] says of its n holds for each call.
func (p Policy) Cost(n int) Policy {
	p.cost = n
	return p
}

// Do implements [resilience.Policy]: it runs op once there is room for it, and
// returns op's error as it is.
func (p Policy) Do(ctx context.Context, op func(context.Context) error) error {
	key, series := p.key, p.series
	if p.keyOf != nil {
		key = p.keyOf(ctx)
		series = p.limiter.series(key)
	}
	if err := p.limiter.acquire(ctx, key, series, p.cost); err != nil {
		return err
	}
	return op(ctx)
}
