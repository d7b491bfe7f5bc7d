// Package boltcache is a [cache.Cache] in a file, by way of the embedded store
// bbolt: allowances and circuits that outlive the process, with no server to run.
//
// It is an example of a cache of one's own, and a whole one: it passes the suites
// of compliancetest and is meant to be copied and changed. One process at a time can
// open a file. A write is on the disk when it returns, which takes as long as the disk
// takes: it is for calls that cost more than that, such as one to a model.
//
// Times to live and slots are measured by the wall clock of the moment the file was
// opened, and from there by the monotonic one, so a step of the clock while the process
// runs makes no difference.
//
// # Errors
//
// A context that is done gives its cause, a closed cache [cache.ErrClosed], what
// cannot be understood a [cache.CorruptError], and any failure of the file an
// [cache.UnavailableError].
package boltcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/resilience-toolkit/resilience/cache"
)

// A Cache keeps its state in one file. It comes from [Open]; the zero Cache is not
// usable. All methods may be called by any number of goroutines at once.
type Cache struct {
	db      *bbolt.DB
	start   time.Time
	writing chan struct{} // holds a token while a write is under way
	swept   []byte        // where the last sweep stopped; for whoever holds the token
}

// bucket holds everything: the value of a key under "v" and the key, its series of
// hits under "h" and the key. So the two share a key without meeting, and what bbolt does
// not allow, an empty key, does not come up.
var bucket = []byte("resilience")

// Open opens the file, and makes it if it is not there. It waits no longer than a
// second for another process to close it. Close the cache when done.
func Open(path string) (*Cache, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return nil, &cache.UnavailableError{Op: "open", Err: err}
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		return nil, &cache.UnavailableError{Op: "open", Err: errors.Join(err, db.Close())}
	}
	return &Cache{db: db, start: time.Now(), writing: make(chan struct{}, 1)}, nil
}

// Close closes the file once the calls under way have ended. Closing again does
// nothing.
func (c *Cache) Close() error { return c.db.Close() }

// A view is one transaction: everything seen and done in it is of one instant.
type view struct {
	*bbolt.Bucket
	now int64 // in microseconds
}

// read runs f in a transaction that changes nothing.
func (c *Cache) read(ctx context.Context, op string, f func(view) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return failure(op, c.db.View(func(tx *bbolt.Tx) error { return f(c.view(tx)) }))
}

// write runs f in a transaction of its own, which an error undoes.
func (c *Cache) write(ctx context.Context, op string, f func(view) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// bbolt has one writer at a time and would wait for it whatever the context says.
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return failure(op, c.db.Update(func(tx *bbolt.Tx) error {
		v := c.view(tx)
		if err := f(v); err != nil {
			return err
		}
		return c.sweep(v)
	}))
}

func (c *Cache) view(tx *bbolt.Tx) view {
	return view{tx.Bucket(bucket), c.start.Add(time.Since(c.start)).UnixMicro()}
}

// errUnchanged ends a write that has found nothing to do, and saves the disk the work.
var errUnchanged = errors.New("boltcache: nothing to write")

// failure tells answers, which are returned as they are, from failures of the store.
func failure(op string, err error) error {
	var argument *cache.ArgumentError
	var corrupt *cache.CorruptError
	switch {
	case err == nil || errors.Is(err, errUnchanged):
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return cache.ErrClosed
	case errors.Is(err, cache.ErrNotInteger), errors.Is(err, cache.ErrOverflow),
		errors.As(err, &argument), errors.As(err, &corrupt):
		return err
	case errors.Is(err, bolterrors.ErrKeyTooLarge):
		return &cache.ArgumentError{Op: op, Field: "key", Value: "too long", Want: "at most 32 KiB"}
	default:
		return &cache.UnavailableError{Op: op, Err: err}
	}
}

// An entry is eight bytes that say when it expires, in microseconds and with 0 for
// never, and then what is kept until then.

// get returns the content of an entry and when it expires, and whether there is one.
func (v view) get(kind byte, key string) (content []byte, ends int64, ok bool) {
	entry := v.Get(name(kind, key))
	if len(entry) < 8 {
		return nil, 0, false
	}
	ends = int64(binary.BigEndian.Uint64(entry))
	if v.over(ends) {
		return nil, 0, false
	}
	return entry[8:], ends, true
}

func (v view) put(kind byte, key string, content []byte, ends int64) error {
	entry := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(content)), uint64(ends))
	return v.Put(name(kind, key), append(entry, content...))
}

func (v view) over(ends int64) bool { return ends != 0 && ends <= v.now }

// after returns when a TTL that begins now ends.
func (v view) after(ttl time.Duration) int64 {
	if ttl == 0 {
		return 0
	}
	return v.now + micros(ttl)
}

func name(kind byte, key string) []byte { return append([]byte{kind}, key...) }

// micros returns d in microseconds, rounded up: a TTL of a nanosecond is not zero.
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

// sweep removes what has expired among the next few entries, so that keys which
// nobody asks about again do not fill the file. Each write makes at most one entry, and
// two are looked at, so it keeps up.
func (c *Cache) sweep(v view) error {
	var expired [][]byte
	cursor := v.Cursor()
	key, entry := cursor.Seek(c.swept)
	for range 2 {
		if key == nil { // past the last one, so begin again
			c.swept = nil
			break
		}
		if len(entry) >= 8 && v.over(int64(binary.BigEndian.Uint64(entry))) {
			expired = append(expired, bytes.Clone(key))
		}
		key, entry = cursor.Next()
		c.swept = bytes.Clone(key)
	}
	for _, key := range expired {
		if err := v.Bucket.Delete(key); err != nil {
			return err
		}
	}
	return nil
}
