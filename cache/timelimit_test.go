package cache_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/resilience-toolkit/resilience/cache"
)

// limited says how long it takes at most.
type limited struct {
	values
	longest time.Duration
	ok      bool
}

func (l *limited) TimeLimit() (time.Duration, bool) { return l.longest, l.ok }

func TestACacheIsAskedForItsTimeLimitAndOtherwisePromisesNothing(t *testing.T) {
	for _, test := range []struct {
		kv      cache.KeyValue
		longest time.Duration
		ok      bool
	}{
		{&values{}, 0, false},
		{&limited{}, 0, false},
		{&limited{ok: true}, 0, true},
		{&limited{longest: time.Second, ok: true}, time.Second, true},
		{&limited{longest: -time.Second, ok: true}, 0, false},
		{&limited{longest: time.Second}, 0, false},
	} {
		longest, ok := cache.TimeLimit(test.kv)
		assert.Equal(t, test.longest, longest)
		assert.Equal(t, test.ok, ok)
	}
}
