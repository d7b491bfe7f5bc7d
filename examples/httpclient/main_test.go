package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSDKIsServedThroughTheChain(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	assert.Equal(t, `Two failures, the first of which says when to come back:
    attempt 1 failed with 429, again in 50ms
    attempt 2 failed with 503, again in 20ms
    42 stars; requests: 3
What is not there is the caller's affair, and asked for once:
    the SDK's error, status 404; requests: 1
A POST is not sent twice; the SDK gets the response as always:
    the SDK's error, status 503; requests: 1
A host that stays down gets three requests, and then none:
    attempt 1 failed with 502, again in 10ms
    attempt 2 failed with 502, again in 20ms
    the SDK's error, status 502; requests: 3
    refused, the circuit is open; requests: 3
`, out.String())
}
