package boltcache_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the guide shows as a piece of this package is one.
func TestTheGuideQuotesThisPackage(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "write-a-cache.md"))
	require.NoError(t, err)
	quotes := regexp.MustCompile("(?s)```go\n// boltcache/(\\w+\\.go)\n(.*?)```").FindAllSubmatch(guide, -1)
	assert.Len(t, quotes, 8)
	for _, q := range quotes {
		code, err := os.ReadFile(string(q[1]))
		require.NoError(t, err)
		assert.Contains(t, string(code), string(q[2]))
	}
}
