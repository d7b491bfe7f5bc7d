package breaker

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, e := range []entry{
		{era: origin, run: newID()},
		{era: newID(), run: newID()},
		{open: true, era: newID(), timeout: 1},
		{open: true, era: newID(), timeout: math.MaxInt64},
	} {
		got, err := parse(e.String())
		require.NoError(t, err)
		assert.Equal(t, e, got)
	}
}

func TestAPhaseIsOfOneGroup(t *testing.T) {
	b, err := New(Config{Name: "a\x00b", Probes: 3})
	require.NoError(t, err)
	for _, raw := range []cache.Entry{
		cache.Absent(), cache.Present(""), cache.Present("v1 closed a b"), cache.Present("v1 open a 1"),
	} {
		p := b.newPhase(raw)
		for _, key := range p.keys {
			assert.Equal(t, cache.Group(p.keys[0]), cache.Group(key))
		}
	}
}

// A decision that others share is the store's: what was read decides, and no clock of
// this process. A clock is read for hints, for a staleness, and where nobody shares.
func TestTheClockIsReadForNothingThatIsShared(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	readers := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && (x.Name == "b" && s.Sel.Name == "now" ||
					x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Since" || s.Sel.Name == "Until")) {
					readers[f.Name.Name] = true
				}
				return true
			})
		}
	}
	assert.Equal(t, map[string]bool{
		"New": true, "now": true, // where it begins
		"newPhase": true, "wait": true, // for the hint of a refusal
		"read": true, "holds": true, "lapsed": true, // for the staleness
		"admit": true, // of a private circuit that is open
	}, readers)
}

// FuzzParse: whatever is stored, it is understood or refused, and what is understood
// says again what it said.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "v1", "v1 closed 0 0", "v1 open 7 30000000000", "v1 open 7 30000000000 more of it", "v1 open 7 -1",
		"v1 open 7 9223372036854775808", "v2 open 7 1", "v1 ajar 7 1", "v1 closed  7", "v1 closed 7 ", "v1  closed 7 7",
		`{"state":"open"}`, "\x00\xff", "v1 closed " + strings.Repeat("x", 1000) + " y",
	} {
		f.Add(s)
	}
	b, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parse(s)
		p := b.newPhase(cache.Present(s))
		require.Equal(t, cache.Present(s), p.raw)
		require.Equal(t, err, p.err)
		if err != nil {
			require.False(t, p.open, "it must not stop any call")
			return
		}
		require.Equal(t, e.open, p.open)
		require.NotEmpty(t, e.era)
		if e.open {
			require.Greater(t, e.timeout, time.Duration(0))
		} else {
			require.NotEmpty(t, e.run)
		}
		again, err := parse(e.String())
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}
