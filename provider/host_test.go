package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
)

func TestAStatusSaysWhatWentWrong(t *testing.T) {
	for status, want := range map[int]struct {
		kind      provider.Kind
		transient bool
	}{
		400: {provider.InvalidRequest, false},
		401: {provider.Unauthenticated, false},
		402: {provider.QuotaExhausted, false},
		403: {provider.Forbidden, false},
		404: {provider.NotFound, false},
		405: {provider.InvalidRequest, false},
		408: {provider.TimedOut, true},
		409: {provider.Conflict, true},
		413: {provider.TooLong, false},
		422: {provider.InvalidRequest, false},
		425: {provider.Conflict, true},
		429: {provider.RateLimited, true},
		500: {provider.Unavailable, true},
		501: {provider.Unavailable, false},
		502: {provider.Unavailable, true},
		503: {provider.Overloaded, true},
		504: {provider.TimedOut, true},
		529: {provider.Overloaded, true},
		599: {provider.Unavailable, true},
		302: {"", false},
	} {
		err := provider.StatusError(status)
		assert.Equal(t, want.kind, err.Kind, status)
		assert.Equal(t, want.transient, err.Transient, status)
		assert.Equal(t, status, err.Status)
		assert.Equal(t, want.transient, provider.Retryable(fmt.Errorf("twice: %w", fmt.Errorf("wrapped: %w", err))), status)
		if want.kind != "" {
			assert.ErrorIs(t, fmt.Errorf("wrapped: %w", err), want.kind)
		}
		assert.NotErrorIs(t, err, provider.Kind("another"))
		assert.NotErrorIs(t, err, provider.ErrCompletion)
	}
}

func TestAHostErrorCarriesItsHint(t *testing.T) {
	err := provider.StatusError(429)
	_, ok := resilience.RetryAfter(err)
	assert.False(t, ok)
	err.Hint = 30 * time.Second
	hint, ok := resilience.RetryAfter(fmt.Errorf("a: %w", fmt.Errorf("b: %w", err)))
	assert.True(t, ok)
	assert.Equal(t, 30*time.Second, hint)
}

func TestAHostErrorSpeaksForItself(t *testing.T) {
	err := &provider.HostError{Kind: provider.NotFound, Status: 404, Message: "no such model", Err: io.EOF}
	assert.EqualError(t, err, "provider: the host knows no such model or address (status 404): no such model")
	assert.ErrorIs(t, err, io.EOF)
	assert.EqualError(t, &provider.HostError{}, "provider: the call failed")
}

func TestRetryableTellsWhatMayFareBetter(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":              {nil, false},
		"broken connection":    {&provider.HostError{Kind: provider.Disconnected, Transient: true, Err: io.ErrUnexpectedEOF}, true},
		"exhausted quota":      {&provider.HostError{Kind: provider.QuotaExhausted, Status: 429}, false},
		"empty completion":     {&provider.EmptyCompletionError{}, false},
		"truncated completion": {&provider.TruncatedCompletionError{}, false},
		"refused completion":   {&provider.RefusedCompletionError{Err: provider.StatusError(503)}, false},
		"malformed completion": {&provider.MalformedCompletionError{Err: io.EOF}, false},
		"blank text":           {&provider.RequestError{Field: "Text"}, false},
		"a refusal":            {resilience.ErrRejected, false},
		"an attempt's timeout": {context.DeadlineExceeded, true},
		"the caller left":      {context.Canceled, false},
		"anybody's error":      {errors.New("?"), false},
		"both at once":         {errors.Join(resilience.ErrRejected, provider.StatusError(503)), false},
	} {
		assert.Equal(t, test.want, provider.Retryable(test.err), name)
		if test.err != nil {
			assert.Equal(t, test.want, provider.Retryable(fmt.Errorf("wrapped: %w", test.err)), name)
		}
	}
}

func TestTheFamiliesDoNotMix(t *testing.T) {
	for _, err := range []error{
		&provider.EmptyCompletionError{}, &provider.TruncatedCompletionError{}, &provider.RefusedCompletionError{},
		&provider.MalformedCompletionError{Err: io.EOF},
	} {
		require.ErrorIs(t, fmt.Errorf("wrapped: %w", err), provider.ErrCompletion)
		require.NotErrorIs(t, err, resilience.ErrRejected)
		_, isHost := errors.AsType[*provider.HostError](err)
		require.False(t, isHost)
	}
}
