package cache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
)

// values is a KeyValue without any capability, with a log of what it was asked.
type values struct {
	cache.KeyValue // what is not written here is not called
	m              map[string]string
	log            []string
	ttl            time.Duration // that was last given
	err            error         // that Set and Delete return
	getErr         error
}

func (v *values) Get(_ context.Context, key string) (string, bool, error) {
	v.log = append(v.log, "get "+key)
	value, ok := v.m[key]
	return value, ok, v.getErr
}

func (v *values) Set(_ context.Context, key, value string, ttl time.Duration) error {
	v.log, v.ttl = append(v.log, "set "+key), ttl
	if v.err == nil {
		v.m[key] = value
	}
	return v.err
}

func (v *values) Delete(_ context.Context, key string) error {
	v.log = append(v.log, "delete "+key)
	if v.err == nil {
		delete(v.m, key)
	}
	return v.err
}

// capable has the capabilities, and an answer of its own for each.
type capable struct {
	values
	swapped bool
	entry   cache.Entry
}

func (c *capable) CompareAndSwap(context.Context, string, cache.Entry, cache.Entry, time.Duration) (bool, error) {
	return c.swapped, c.err
}

func (c *capable) GetMany(_ context.Context, keys []string, entries []cache.Entry) error {
	for i := range keys {
		entries[i] = c.entry
	}
	return c.err
}

func TestSwappingOverPlainMethodsFollowsTheRules(t *testing.T) {
	absent, a, b := cache.Absent(), cache.Present("a"), cache.Present("b")
	for _, test := range []struct {
		name     string
		there    cache.Entry
		old, new cache.Entry
		swapped  bool
		after    cache.Entry
		log      []string
	}{
		{"add", absent, absent, a, true, a, []string{"get k", "set k"}},
		{"replace", a, a, b, true, b, []string{"get k", "set k"}},
		{"renew", a, a, a, true, a, []string{"get k", "set k"}},
		{"delete", a, a, absent, true, absent, []string{"get k", "delete k"}},
		{"nothing by nothing", absent, absent, absent, true, absent, []string{"get k"}},
		{"nothing, but with a value of no meaning", absent, cache.Entry{Value: "x"}, a, true, a, []string{"get k", "set k"}},
		{"another is there", b, a, absent, false, b, []string{"get k"}},
		{"something is there", b, absent, a, false, b, []string{"get k"}},
		{"an empty value is there", cache.Present(""), absent, a, false, cache.Present(""), []string{"get k"}},
		{"nothing is there", absent, a, b, false, absent, []string{"get k"}},
		{"nothing is there, not even an empty value", absent, cache.Present(""), b, false, absent, []string{"get k"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := &values{m: map[string]string{}}
			if test.there.Present {
				v.m["k"] = test.there.Value
			}
			swapped, err := cache.CompareAndSwap(t.Context(), v, "k", test.old, test.new, time.Minute)
			require.NoError(t, err)
			assert.Equal(t, test.swapped, swapped)
			value, ok := v.m["k"]
			assert.Equal(t, test.after, cache.Entry{Value: value, Present: ok})
			assert.Equal(t, test.log, v.log)
			if v.ttl != 0 {
				assert.Equal(t, time.Minute, v.ttl)
			}
		})
	}
}

func TestSwappingOverPlainMethodsPassesErrorsOn(t *testing.T) {
	down := errors.New("down")
	for _, test := range []struct {
		name     string
		v        values
		old, new cache.Entry
	}{
		{"get", values{getErr: down}, cache.Absent(), cache.Absent()},
		{"set", values{err: down}, cache.Absent(), cache.Present("a")},
		{"delete", values{err: down, m: map[string]string{"k": "a"}}, cache.Present("a"), cache.Absent()},
	} {
		swapped, err := cache.CompareAndSwap(t.Context(), &test.v, "k", test.old, test.new, 0)
		assert.Equal(t, down, err, test.name)
		assert.False(t, swapped, test.name)
	}
}

func TestACacheThatCanSwapIsAskedTo(t *testing.T) {
	down := errors.New("down")
	c := &capable{swapped: true, values: values{err: down}}
	swapped, err := cache.CompareAndSwap(t.Context(), c, "k", cache.Absent(), cache.Present("a"), 0)
	assert.True(t, swapped)
	assert.Equal(t, down, err)
	assert.Empty(t, c.log)
}

func TestGettingManyOverPlainMethodsFillsEveryEntry(t *testing.T) {
	v := &values{m: map[string]string{"a": "1", "b": ""}}
	stale := cache.Present("stale")
	entries := []cache.Entry{stale, stale, stale, stale}
	require.NoError(t, cache.GetMany(t.Context(), v, []string{"a", "x", "b"}, entries))
	assert.Equal(t, []cache.Entry{cache.Present("1"), cache.Absent(), cache.Present(""), stale}, entries)

	require.NoError(t, cache.GetMany(t.Context(), v, nil, nil))
	assert.Panics(t, func() { _ = cache.GetMany(t.Context(), v, []string{"a"}, nil) })
	assert.Panics(t, func() { _ = cache.GetMany(t.Context(), v, []string{"a"}, entries[:0]) }, "what lies behind is not the caller's")

	v.getErr = errors.New("down")
	assert.Equal(t, v.getErr, cache.GetMany(t.Context(), v, []string{"a"}, entries))
}

func TestACacheThatCanGetManyIsAskedTo(t *testing.T) {
	c := &capable{entry: cache.Present("own"), values: values{err: errors.New("down")}}
	entries := make([]cache.Entry, 2)
	assert.Equal(t, c.err, cache.GetMany(t.Context(), c, []string{"a", "b"}, entries))
	assert.Equal(t, []cache.Entry{c.entry, c.entry}, entries)
	assert.Empty(t, c.log)
}
