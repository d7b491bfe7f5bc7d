package boltcache_test

import (
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/examples/customcache/boltcache"
)

// Whatever is in the file, it is understood or it is a CorruptError. It is never a
// panic, and never an answer that a cache cannot give.
func FuzzContent(f *testing.F) {
	for _, content := range []string{
		"", "null", "[]", "{}", "garbage", "[null]", `[{"at":"x"}]`, `[{"at":1,"id":1,"weight":1}]`, "41", "9223372036854775807", "-0",
		`[{"at":9000000000000000,"id":1,"weight":1},{"at":1,"id":2,"weight":1}]`, // out of order
		`[{"at":9000000000000000,"id":1,"weight":-5}]`,
		`[{"at":9223372036854775807,"id":1,"weight":1}]`,
		`[{"at":9000000000000000,"id":1,"weight":9223372036854775807},{"at":9000000000000000,"id":2,"weight":9223372036854775807}]`,
	} {
		f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00" + content))
		f.Add([]byte("\x7f\xff\xff\xff\xff\xff\xff\xff" + content))
		f.Add([]byte(content))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, entry []byte) {
		path := filepath.Join(dir, "file")
		plant(t, path, map[string][]byte{"hk": entry, "vk": entry})
		c, err := boltcache.Open(path)
		require.NoError(t, err)
		defer c.Close()
		understood := func(err error) bool {
			_, corrupt := errors.AsType[*cache.CorruptError](err)
			corrupt = corrupt || errors.Is(err, cache.ErrNotInteger) || errors.Is(err, cache.ErrOverflow)
			require.True(t, err == nil || corrupt, "%v", err)
			return err == nil
		}
		ctx := t.Context()
		if n, err := c.Used(ctx, "k", time.Hour); understood(err) {
			assert.GreaterOrEqual(t, n, int64(0))
		}
		if at, ok, err := c.OldestHit(ctx, "k", time.UnixMicro(0)); understood(err) && ok {
			assert.False(t, at.Before(time.UnixMicro(0)))
		}
		for _, wait := range []time.Duration{0, math.MaxInt64} {
			g, err := c.Acquire(ctx, "k", cache.Request{Limit: 3, Window: time.Hour, Weight: 2, MaxWait: wait})
			if !understood(err) {
				continue
			}
			assert.Equal(t, g.Wait <= wait, g.OK)
			assert.GreaterOrEqual(t, g.Wait, time.Duration(0))
		}
		if n, err := c.CountHits(ctx, "k", time.UnixMicro(0)); understood(err) {
			assert.GreaterOrEqual(t, n, 0)
		}
		before, ok, err := c.Get(ctx, "k")
		require.NoError(t, err, "any bytes are a value")
		if _, err := c.Increment(ctx, "k", time.Hour); !understood(err) {
			after, _, err := c.Get(ctx, "k")
			require.NoError(t, err)
			assert.Equal(t, before, after)
			assert.True(t, ok)
		}
		require.NoError(t, c.Delete(ctx, "k"))
		g, err := c.Acquire(ctx, "k", cache.Request{Limit: 1, Window: time.Hour, Weight: 1})
		require.NoError(t, err)
		assert.True(t, g.OK, "deleting helps")
	})
}

// plant makes a file with entries as they are.
func plant(t *testing.T, path string, entries map[string][]byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("resilience"))
		for name, entry := range entries {
			err = errors.Join(err, b.Put([]byte(name), entry))
		}
		return err
	}))
	require.NoError(t, db.Close())
}
