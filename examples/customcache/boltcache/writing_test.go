package boltcache

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoCallOutlastsItsContextForAnothersWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		c, err := Open(path)
		require.NoError(t, err)
		defer c.Close()
		c.writing <- struct{}{} // somebody's write takes its time

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		assert.ErrorIs(t, c.Set(ctx, "a", "a", 0), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
	})
}
