package cache

import (
	"context"
	"time"
)

// An Entry is a value that may be absent. The zero Entry is an absent one.
type Entry struct {
	Value   string
	Present bool
}

// Present returns the entry of a value that is there.
func Present(value string) Entry { return Entry{Value: value, Present: true} }

// Absent returns the entry of a value that is not there.
func Absent() Entry { return Entry{} }

// A CompareAndSwapper changes a value only if it is still what the caller has
// seen, in one atomic step. It is an optional capability of a [KeyValue]; use
// [CompareAndSwap] to have it, or what can be had, from any.
type CompareAndSwapper interface {
	// CompareAndSwap puts new in the place of old at key and reports whether it did,
	// which is if and only if old is what was there. An absent old adds a value, an
	// absent new deletes it, and two that are equal renew the TTL. The ttl is new's, as
	// in Set; it is ignored for an absent new. A counter is compared as its decimal
	// string. A series of hits at key is left alone.
	CompareAndSwap(ctx context.Context, key string, old, new Entry, ttl time.Duration) (bool, error)
}

// CompareAndSwap calls the method of kv if it has one, and otherwise does the same
// with Get, Set and Delete. That is not atomic: of several callers who find the same
// old value at the same time each may be told that it swapped, and the last one's
// value stays. An absent new deletes a series at key too.
func CompareAndSwap(ctx context.Context, kv KeyValue, key string, old, new Entry, ttl time.Duration) (bool, error) {
	if c, ok := kv.(CompareAndSwapper); ok {
		return c.CompareAndSwap(ctx, key, old, new, ttl)
	}
	value, ok, err := kv.Get(ctx, key)
	if err != nil {
		return false, err
	}
	if ok != old.Present || ok && value != old.Value {
		return false, nil
	}
	switch {
	case new.Present:
		err = kv.Set(ctx, key, new.Value, ttl)
	case old.Present:
		err = kv.Delete(ctx, key)
	}
	return err == nil, err
}
