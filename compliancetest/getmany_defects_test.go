package compliancetest_test

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/resilience-toolkit/resilience/cache"
)

type many = func(ctx context.Context, keys []string, entries []cache.Entry) error

// gotMany breaks GetMany by what it does to the good one.
func gotMany(change func(b *broken, good many) many) func(*broken) {
	return func(b *broken) { b.many = change(b, b.able.GetMany) }
}

var multiGetterDefects = []defect{
	{rule: "entries-are-in-the-order-of-the-keys", name: "they are in the order of the store", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			return good(ctx, slices.Sorted(slices.Values(keys)), entries)
		}
	})},
	{rule: "absent-keys-have-absent-entries", name: "they are left out", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			err := good(ctx, keys, entries)
			slices.SortStableFunc(entries, func(x, y cache.Entry) int {
				switch {
				case x.Present && !y.Present:
					return -1
				case y.Present && !x.Present:
					return 1
				}
				return 0
			})
			return err
		}
	})},
	{rule: "every-entry-is-filled", name: "absent ones are passed over", put: gotMany(func(b *broken, _ many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			for i, key := range keys {
				if v, ok, _ := b.able.Get(ctx, key); ok {
					entries[i] = cache.Present(v)
				}
			}
			return context.Cause(ctx)
		}
	})},
	{rule: "every-entry-is-filled", name: "the value of an absent one is passed over", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			old := slices.Clone(entries)
			err := good(ctx, keys, entries)
			for i := range entries {
				if !entries[i].Present {
					entries[i].Value = old[i].Value
				}
			}
			return err
		}
	})},
	{rule: "a-key-may-come-twice", name: "it is answered once", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			err := good(ctx, keys, entries)
			for i, key := range keys {
				if slices.Index(keys, key) < i {
					entries[i] = cache.Absent()
				}
			}
			return err
		}
	})},
	{rule: "one-key-or-none-will-do", name: "none is an error", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			if len(keys) == 0 {
				return errOops
			}
			return good(ctx, keys, entries)
		}
	})},
	{rule: "values-are-not-altered", name: "they are made valid text", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			err := good(ctx, keys, entries)
			for i := range entries {
				entries[i].Value = strings.ToValidUTF8(entries[i].Value, "?")
			}
			return err
		}
	})},
	{rule: "counters-are-decimal-strings", name: "they are not", put: gotMany(func(_ *broken, good many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			err := good(ctx, keys, entries)
			for i := range entries {
				if n, e := strconv.Atoi(entries[i].Value); e == nil {
					entries[i].Value = strconv.FormatInt(int64(n), 2)
				}
			}
			return err
		}
	})},
	{rule: "expired-is-absent", name: "what has expired is still shown", put: gotMany(func(b *broken, _ many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			for i, key := range keys {
				v, ok := b.values[key]
				entries[i] = cache.Entry{Value: v.text, Present: ok}
			}
			return context.Cause(ctx)
		}
	})},
	{rule: "all-are-of-one-instant", name: "one is read after the other", put: gotMany(func(b *broken, _ many) many {
		return func(ctx context.Context, keys []string, entries []cache.Entry) error {
			return cache.GetMany(ctx, pausing{b.able}, keys, entries)
		}
	})},
	{rule: "done-context-returns-its-cause", name: "the question is answered all the same", put: gotMany(func(_ *broken, good many) many {
		return func(_ context.Context, keys []string, entries []cache.Entry) error { return good(ctx, keys, entries) }
	})},
}
