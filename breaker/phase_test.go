package breaker

import (
	"math"
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
