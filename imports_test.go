package resilience_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/resilience-toolkit/resilience"

// What each package of the main module may import besides the standard library. A
// name without a dot is a package of this module, "." is its root. Every entry must be
// needed: one that no file uses any more fails the test, as does a package that has no
// row.
var mayImport = map[string][]string{
	".":              {},
	"cache":          {},
	"cache/memory":   {"cache"},
	"cache/failover": {"cache"},
	"cache/redis":    {"cache", "github.com/redis/go-redis/v9", "github.com/redis/go-redis/v9/maintnotifications", "golang.org/x/sync/semaphore"},
	"retry":          {"."},
	"ratelimit":      {".", "cache", "cache/memory"},
	"breaker":        {".", "cache", "cache/memory"},
	"timeout":        {"."},
	"httptransport":  {".", "breaker", "retry"},
	"provider":       {".", "breaker", "github.com/google/jsonschema-go/jsonschema"},
	"provider/fake":  {".", "provider"},
	"compliancetest": {".", "cache", "provider"},

	"internal/redistest": {},
}

// Who alone may import what, in the main module and in the examples, tests included. The
// folders below a named one are meant too.
var confined = []struct {
	imported string // by prefix
	to       []string
}{
	{module + "/examples", []string{"examples"}},
	{"github.com/redis/go-redis/v9", []string{"cache/redis"}},
	{module + "/provider", []string{"provider", "compliancetest", "examples"}},
}

type source struct {
	dir     string // slash-separated, relative to the root
	name    string
	test    bool
	nested  bool // in a module of its own
	imports []string
}

// sources reads the import clauses of every Go file, by text: importing the packages
// would find only what this build happens to link.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	nested := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		dir := path.Dir(file)
		if d.IsDir() {
			if file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			nested[file] = file != "." && (err == nil || nested[dir])
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{dir: dir, name: file, test: strings.HasSuffix(file, "_test.go"), nested: nested[dir]}
		for _, i := range parsed.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, p)
		}
		all = append(all, s)
		return nil
	})
	require.NoError(t, err)
	return all
}

func TestEachPackageImportsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	used := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if s.test || s.nested || s.dir == "examples" || strings.HasPrefix(s.dir, "examples/") {
			continue
		}
		allowed, known := mayImport[s.dir]
		if !assert.True(t, known, "%s: package %s has no row in mayImport", s.name, s.dir) {
			continue
		}
		if used[s.dir] == nil {
			used[s.dir] = map[string]bool{}
		}
		for _, p := range s.imports {
			if !strings.Contains(strings.Split(p, "/")[0], ".") {
				continue // the standard library
			}
			name := p
			if rest, ok := strings.CutPrefix(p, module); ok {
				if name = strings.TrimPrefix(rest, "/"); name == "" {
					name = "."
				}
			}
			used[s.dir][name] = true
			assert.Contains(t, allowed, name, "%s may not import %s", s.name, p)
		}
	}
	for dir, allowed := range mayImport {
		if !assert.Contains(t, used, dir, "the row of %s matches no file", dir) {
			continue
		}
		for _, name := range allowed {
			assert.True(t, used[dir][name], "%s may import %s, but no longer does", dir, name)
		}
	}
}

func TestConfinedImportsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for _, row := range confined {
		within := func(dir string) bool {
			return slices.ContainsFunc(row.to, func(to string) bool { return dir == to || strings.HasPrefix(dir, to+"/") })
		}
		found := map[string]bool{}
		for _, s := range all {
			if s.nested && !strings.HasPrefix(s.dir, "examples/") {
				continue // benchmarks of peers, property tests, tools
			}
			for _, p := range s.imports {
				if p != row.imported && !strings.HasPrefix(p, row.imported+"/") {
					continue
				}
				assert.True(t, within(s.dir), "%s imports %s, which is confined to %v", s.name, p, row.to)
				for _, to := range row.to {
					found[to] = found[to] || s.dir == to || strings.HasPrefix(s.dir, to+"/")
				}
			}
		}
		for _, to := range row.to {
			assert.True(t, found[to], "%s may import %s, but no longer does", to, row.imported)
		}
	}
}

// The two tests above search for what should not be there, and would pass if they
// searched nothing.
func TestTheImportTestsReadTheWholeRepository(t *testing.T) {
	t.Parallel()
	var dirs []string
	nested := 0
	for _, s := range sources(t) {
		dirs = append(dirs, s.dir)
		if s.nested {
			nested++
		}
	}
	for _, dir := range []string{".", "cache", "cache/memory", "retry"} {
		assert.Contains(t, dirs, dir)
	}
	assert.Positive(t, nested, "no module of its own was found")
}
