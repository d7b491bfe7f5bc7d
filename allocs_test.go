package resilience_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The race detector allocates, so tests that count allocations skip themselves under it
// and are run once more without it, by their names. One that does not carry the word
// would never be run at all, and neither would any other that skips itself there.
func TestWhatCountsAllocationsIsRunByItsName(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	assert.Contains(t, string(makefile), "test -run 'Alloc' ./...")
	found := 0
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), "AllocsPerRun") && !strings.Contains(string(text), "raceEnabled") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			skips := uses(f, "raceEnabled") && uses(f, "Skip")
			if !uses(f, "AllocsPerRun") && !skips {
				continue
			}
			found++
			assert.Contains(t, f.Name.Name, "Alloc", "%s: %s is not run with the race detector", file, f.Name.Name)
			assert.True(t, skips, "%s: %s counts what the race detector allocates", file, f.Name.Name)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, found, 5, "this test has read nothing")
}

// uses reports whether a function mentions a name.
func uses(f *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}
