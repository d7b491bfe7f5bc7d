package boltcache_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/compliancetest"
	"github.com/resilience-toolkit/resilience/examples/customcache/boltcache"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

func TestCompliance(t *testing.T) {
	dir, n := t.TempDir(), 0
	compliancetest.Cache(compliancetest.Harness[*boltcache.Cache]{
		New: func() (*boltcache.Cache, error) {
			n++
			return boltcache.Open(filepath.Join(dir, strconv.Itoa(n)))
		},
		Close:  (*boltcache.Cache).Close,
		Bubble: true, // it lives in this process and reads its clock
	}).Run(t)
}

func open(t *testing.T, path string) *boltcache.Cache {
	t.Helper()
	c, err := boltcache.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestAnAllowanceOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		// Each round is a process: it opens the file, and all it knows is in there.
		ask := func() error {
			store, err := boltcache.Open(path)
			require.NoError(t, err)
			defer store.Close()
			allowance, err := ratelimit.New(2, time.Minute, ratelimit.Config{Cache: store})
			require.NoError(t, err)
			return allowance.Acquire(t.Context(), "tenant")
		}
		require.NoError(t, ask())
		time.Sleep(20 * time.Second)
		require.NoError(t, ask())
		err := ask()
		require.ErrorIs(t, err, resilience.ErrRejected)
		wait, ok := resilience.RetryAfter(err)
		require.True(t, ok)
		assert.Equal(t, 40*time.Second, wait)
		time.Sleep(wait)
		assert.NoError(t, ask())
	})
}

func TestACircuitOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		down, calls := errors.New("host is down"), 0
		ask := func() error {
			store, err := boltcache.Open(path)
			require.NoError(t, err)
			defer store.Close()
			circuit, err := breaker.New(breaker.Config{Cache: store, FailureThreshold: 2, RecoveryTimeout: time.Minute})
			require.NoError(t, err)
			defer circuit.Close()
			return circuit.Do(t.Context(), func(context.Context) error { calls++; return down })
		}
		require.ErrorIs(t, ask(), down)
		require.ErrorIs(t, ask(), down)
		require.ErrorIs(t, ask(), resilience.ErrRejected)
		assert.Equal(t, 2, calls)
		time.Sleep(time.Minute)
		require.ErrorIs(t, ask(), down, "a probe")
	})
}

// In real time, for virtual time stands still while code runs.
func TestALimiterOverItIsExact(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "file"))
	allowance, err := ratelimit.New(50, time.Hour, ratelimit.Config{Cache: store})
	require.NoError(t, err)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 3 {
				if allowance.Acquire(t.Context(), "tenant") == nil {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 50, admitted.Load())
}

func TestWhatHasExpiredIsRemovedByTheTrafficOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	entries := func() (n int) {
		db, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, db.View(func(tx *bbolt.Tx) error {
			n = tx.Bucket([]byte("resilience")).Stats().KeyN
			return nil
		}))
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		store, err := boltcache.Open(path)
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, store.Set(t.Context(), fmt.Sprint("once ", i), "", time.Second))
			require.NoError(t, store.RecordHit(t.Context(), fmt.Sprint("once ", i), time.Now(), time.Second))
		}
		time.Sleep(time.Second)
		for range 60 {
			require.NoError(t, store.Set(t.Context(), "busy", "", time.Hour))
		}
		require.NoError(t, store.Close())
		assert.Equal(t, 1, entries())
	})
}

func TestGarbageInTheFileIsNotAnAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	c, err := boltcache.Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("resilience")).Put([]byte("ha"), []byte("\x00\x00\x00\x00\x00\x00\x00\x00garbage"))
	}))
	require.NoError(t, db.Close())

	c = open(t, path)
	_, err = c.CountHits(t.Context(), "a", time.Now())
	corrupt, ok := errors.AsType[*cache.CorruptError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, "a", corrupt.Key)
	_, err = c.Acquire(t.Context(), "a", cache.Request{Limit: 1, Window: time.Second, Weight: 1})
	assert.ErrorAs(t, err, &corrupt)
}

func TestTheStoreOfAnotherIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		c, err := boltcache.Open(path)
		require.NoError(t, err)
		defer c.Close()
		_, err = boltcache.Open(path)
		_, ok := errors.AsType[*cache.UnavailableError](err)
		assert.True(t, ok, "%v", err)
	})
}
