package cache_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/resilience-toolkit/resilience/cache"
)

func TestErrorsSayWhatHappenedAndUnwrapToTheirCause(t *testing.T) {
	cause := errors.New("connection reset")
	for want, err := range map[string]error{
		"cache: get: store unavailable: connection reset":                       &cache.UnavailableError{Op: "get", Err: cause},
		"cache: get \"a\\x00b\": stored state cannot be used: connection reset": &cache.CorruptError{Op: "get", Key: "a\x00b", Err: cause},
	} {
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, cause)
	}
	assert.EqualError(t, &cache.ArgumentError{Op: "set", Field: "ttl", Value: -1, Want: "zero or more"},
		"cache: set: ttl is -1, want zero or more")
}

func TestAFailureIsNeverMistakenForAnotherKind(t *testing.T) {
	unavailable := error(&cache.UnavailableError{Op: "get", Err: errors.New("gone")})
	corrupt := error(&cache.CorruptError{Op: "increment", Err: cache.ErrNotInteger})
	_, is := errors.AsType[*cache.CorruptError](unavailable)
	assert.False(t, is)
	_, is = errors.AsType[*cache.UnavailableError](corrupt)
	assert.False(t, is)
	assert.NotErrorIs(t, corrupt, cache.ErrOverflow)
	assert.ErrorIs(t, corrupt, cache.ErrNotInteger)
	for _, err := range []error{cache.ErrNotInteger, cache.ErrOverflow} {
		assert.NotErrorIs(t, err, cache.ErrClosed)
	}
}
