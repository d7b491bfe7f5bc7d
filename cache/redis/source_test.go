package redis_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The clock of the host has no part in what is decided: no file of this package reads it
// but the one that names errors, and every script that needs an instant asks the server.
func TestNoClockOfTheHostIsReadOnAnyPathToADecision(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	read := map[string]int{}
	sources := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		sources++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" {
				switch call.Sel.Name {
				case "Now", "Since", "Until":
					read[name]++
				}
			}
			return true
		})
	}
	assert.Equal(t, map[string]int{"errors.go": 1}, read)
	assert.GreaterOrEqual(t, sources, 8, "a search through nothing finds nothing")

	for _, name := range []string{"acquire.lua", "used.lua"} {
		text, err := os.ReadFile(filepath.Join("lua", name))
		require.NoError(t, err)
		assert.Contains(t, string(text), "redis.call('TIME')", name)
	}
}
