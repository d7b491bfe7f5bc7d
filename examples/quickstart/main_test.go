package main

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDayCanBeReadAndEndsInTime(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	assert.Less(t, time.Since(start), 15*time.Second)

	text := out.String()
	assert.Regexp(t, `(?s)the circuit opens.*the circuit is half open.*the circuit closes`, text)
	row := func(what string) (with, without int) {
		m := regexp.MustCompile(what + ` +(\d+) +(\d+)`).FindStringSubmatch(text)
		require.NotNil(t, m, "no row %q in\n%s", what, text)
		with, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		without, err = strconv.Atoi(m[2])
		require.NoError(t, err)
		return with, without
	}
	with, without := row("of them in vain")
	assert.Positive(t, with)
	assert.Less(t, with, without/2, "the chain spares the host")
	with, without = row("times it was knocked over")
	assert.Zero(t, with)
	assert.Positive(t, without)
	answered, _ := row("calls answered")
	assert.Positive(t, answered)
	limited, _ := row("refused by the limiter")
	broken, _ := row("refused by the circuit")
	assert.Positive(t, limited)
	assert.Positive(t, broken)
}
