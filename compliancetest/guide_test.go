package compliancetest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheGuideEndsWithEveryRule(t *testing.T) {
	guide, err := os.ReadFile("../docs/write-a-cache.md")
	require.NoError(t, err)

	var table strings.Builder
	group := ""
	for _, r := range suiteOf(nil, true).Rules() {
		of, rule, _ := strings.Cut(r.Name, "/")
		if of != group {
			fmt.Fprintf(&table, "\n### %s\n\n| Rule | Why |\n|---|---|\n", of)
			group = of
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", rule, r.Why)
	}
	_, rules, found := strings.Cut(string(guide), "are those of the subtests.\n")
	require.True(t, found)
	got := strings.Split(rules, "\n")
	for i, want := range strings.Split(table.String(), "\n") {
		require.Greater(t, len(got), i, "%s", want)
		require.Equal(t, want, got[i])
	}
}
