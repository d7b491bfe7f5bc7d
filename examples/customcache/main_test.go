package main

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThreeProcessesShareOneAllowanceAndOneCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, ""))
		assert.Equal(t, `process 1 opens the file
  healthy host  called: an answer
  healthy host  called: an answer
  dead host     called: the host is down
process 2 opens the file
  healthy host  called: an answer
  healthy host  not called: ask again in 1m0s
  dead host     called: the host is down
process 3 opens the file
  healthy host  not called: ask again in 1m0s
  healthy host  not called: ask again in 1m0s
  dead host     not called: ask again in 1m0s
`, out.String())
	})
}

func TestAFileThatIsKeptIsOneProcessPerRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	synctest.Test(t, func(t *testing.T) {
		var first, second, third strings.Builder
		require.NoError(t, run(t.Context(), &first, file))
		assert.NotContains(t, first.String(), "not called")
		time.Sleep(45 * time.Second)
		require.NoError(t, run(t.Context(), &second, file))
		assert.Contains(t, second.String(), "not called: ask again in 15s")
		time.Sleep(15 * time.Second)
		require.NoError(t, run(t.Context(), &third, file))
		assert.NotContains(t, third.String(), "healthy host  not called")
	})
}
