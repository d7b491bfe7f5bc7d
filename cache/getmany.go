package cache

import (
	"context"
	"strings"
)

// A MultiGetter reads several values of one group in one step. It is an optional
// capability of a [KeyValue]; use [GetMany] to have it from any.
type MultiGetter interface {
	// GetMany fills entries, which is as long as keys, with what is at each key, all
	// read at one instant. The keys are of one group (see [Key]). After an error the
	// entries are not to be used.
	GetMany(ctx context.Context, keys []string, entries []Entry) error
}

// GetMany calls the method of kv if it has one, and otherwise gets one value after
// the other, so that they may be of different instants. It panics if entries is
// shorter than keys.
func GetMany(ctx context.Context, kv KeyValue, keys []string, entries []Entry) error {
	entries = entries[:len(keys):len(entries)]
	if m, ok := kv.(MultiGetter); ok {
		return m.GetMany(ctx, keys, entries)
	}
	for i, key := range keys {
		value, ok, err := kv.Get(ctx, key)
		if err != nil {
			return err
		}
		entries[i] = Entry{Value: value, Present: ok}
	}
	return nil
}

// Key returns the key of a part of a group. Keys of one group belong together: an
// implementation that spreads its keys over several servers keeps them on one, and
// can so read them in one step. Different pairs give different keys; group and part may
// hold any bytes.
func Key(group, part string) string {
	return groupEscaper.Replace(group) + "\x00" + part
}

// Group returns what the keys of one group have in common, for an implementation
// that places keys: all of key before its first zero byte, or the whole key if there is
// none.
func Group(key string) string {
	group, _, _ := strings.Cut(key, "\x00")
	return group
}

// groupEscaper keeps zero bytes out of a group, and different groups different.
var groupEscaper = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
