package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The workers are this test again.
func TestMain(m *testing.M) {
	if isWorker() {
		if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTheFleetHasOneAllowanceAndOneCircuit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		require.Empty(t, os.Getenv("RESILIENCE_REQUIRE_REDIS"), "no redis-server")
		t.Skip(errNoRedis)
	}
	start := time.Now()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	assert.Less(t, time.Since(start), 30*time.Second)

	text := out.String()
	for n := range workers {
		for _, what := range []string{"sees the circuit open", "sees the circuit closed", "goes on alone", "is back"} {
			assert.Contains(t, text, fmt.Sprintf("worker %d %s", n+1, what))
		}
	}
	assert.Contains(t, text, "sees the circuit half-open")
	inVain := regexp.MustCompile(`while it was down, (\d+) requests`).FindStringSubmatch(text)
	require.NotNil(t, inVain, text)
	n, err := strconv.Atoi(inVain[1])
	require.NoError(t, err)
	// Five trip the circuit, a few were on their way, and then there are two or three probes.
	assert.Less(t, n, 5+8*workers+3, text)
	assert.Positive(t, n)
}
