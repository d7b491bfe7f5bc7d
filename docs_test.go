package resilience_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// The chain of the README is the one of the example, which is compiled and run.
func TestTheREADMEsChainIsTheExamples(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(read(t, "README.md"), "## A chain in ten lines\n\n```go\n")
	require.True(t, ok)
	chain, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	example := read(t, "example_chain_test.go")
	lines := 0
	for line := range strings.SplitSeq(strings.TrimSpace(chain), "\n") {
		if line != "" {
			lines++
			assert.Contains(t, example, "\t"+line+"\n")
		}
	}
	assert.Equal(t, 10, lines, "ten lines")
}

func TestContinuousIntegrationRunsTheREADMEsTestCommand(t *testing.T) {
	t.Parallel()
	assert.Contains(t, read(t, "README.md"), "\nmake test ")
	assert.Regexp(t, `(?m)^make test$`, read(t, ".ci/run"))
}

// Links between documents, and from them to folders and files, lead somewhere.
func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	documents, links := 0, 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".md") {
			return nil
		}
		documents++
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, file), "`"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(file), m[1]))
			assert.NoError(t, err, "%s links to %s", file, m[1])
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, documents, 10)
	assert.Greater(t, links, 30)
}
