package compliancetest_test

import (
	"context"
	"errors"

	"github.com/resilience-toolkit/resilience/cache"
)

var closeDefects = []defect{
	{rule: "closed-says-so", name: "there is nothing any more", put: func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			v, ok, err := b.able.Get(ctx, key)
			if errors.Is(err, cache.ErrClosed) {
				err = nil
			}
			return v, ok, err
		}
	}},
	{rule: "closing-twice-is-safe", name: "the second time is an error", put: func(b *broken) {
		b.close = func() error {
			if b.closed {
				return errOops
			}
			return b.able.Close()
		}
	}},
	{rule: "closing-twice-is-safe", name: "the second time opens it", put: func(b *broken) {
		b.close = func() error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.closed = !b.closed
			return nil
		}
	}},
	{rule: "closing-during-calls-is-safe", name: "calls under way see the store go", put: func(b *broken) {
		b.get = func(ctx context.Context, key string) (string, bool, error) {
			v, ok, err := b.able.Get(ctx, key)
			if errors.Is(err, cache.ErrClosed) {
				err = errOops
			}
			return v, ok, err
		}
	}},
	{rule: "closing-during-calls-is-safe", name: "it is never closed", put: func(b *broken) {
		b.close = func() error { return nil }
	}},
}
