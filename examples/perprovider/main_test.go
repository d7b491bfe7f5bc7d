package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSecondHostTakesOverWhileTheFirstOnesCircuitIsOpen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	assert.Regexp(t, `(?s)north: answers.*`+ // well at first
		`north: 503 Service Unavailable \(2 attempts\) .*`+ // then down
		`north: circuit open, again in \d\.\ds +-> "an answer from the south".*`+
		`north: answers +-> "an answer from the north".*`+ // and back
		`every question had an answer`, out.String())
}
