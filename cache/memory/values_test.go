package memory_test

import (
	"context"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// fresh returns a cache for one test.
func fresh(t *testing.T) *memory.Cache {
	c := memory.New()
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// read returns what is at key.
func read(t *testing.T, c *memory.Cache, key string) cache.Entry {
	t.Helper()
	value, ok, err := c.Get(t.Context(), key)
	require.NoError(t, err)
	return cache.Entry{Value: value, Present: ok}
}

func TestAnAbsentKeyIsAnAnswerAndAnEmptyValueIsAValue(t *testing.T) {
	c := fresh(t)
	assert.Equal(t, cache.Absent(), read(t, c, "k"))
	for _, value := range []string{"", "0", "false", "\x00\xff"} {
		require.NoError(t, c.Set(t.Context(), "k", value, 0))
		assert.Equal(t, cache.Present(value), read(t, c, "k"))
	}
}

func TestAnyBytesAreAKeyOfTheirOwn(t *testing.T) {
	c := fresh(t)
	keys := []string{"", "\x00", "a", "a\x00", "a\x00b", "{a}", "a\xff", "\xc3\x28", "\n"}
	for i, key := range keys {
		require.NoError(t, c.Set(t.Context(), key, strconv.Itoa(i), 0))
	}
	for i, key := range keys {
		assert.Equal(t, cache.Present(strconv.Itoa(i)), read(t, c, key), "%q", key)
	}
}

// A string made of bytes that change later is not a Go string, but there are servers
// that hand out such strings for speed.
func TestWhatIsStoredDoesNotChangeWithTheCallersBytes(t *testing.T) {
	c := fresh(t)
	bytes := []byte("key")
	key := unsafe.String(&bytes[0], len(bytes))
	require.NoError(t, c.Set(t.Context(), key, key, 0))
	_, err := c.CompareAndSwap(t.Context(), key+"2", cache.Absent(), cache.Present(key), 0)
	require.NoError(t, err)
	_, err = c.Increment(t.Context(), key+"3", 0)
	require.NoError(t, err)
	ask := cache.Request{Limit: 1, Window: time.Hour, Weight: 1}
	_, err = c.Acquire(t.Context(), key, ask)
	require.NoError(t, err)

	copy(bytes, "???")
	assert.Equal(t, cache.Present("key"), read(t, c, "key"))
	assert.Equal(t, cache.Present("key"), read(t, c, "key2"))
	assert.Equal(t, cache.Absent(), read(t, c, "???"))
	g, err := c.Acquire(t.Context(), "key", ask)
	require.NoError(t, err)
	assert.False(t, g.OK)
}

func TestAValueLivesForItsTTLAndNotLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		for _, ttl := range []time.Duration{1, time.Microsecond, 1500, time.Hour, 200 * 365 * 24 * time.Hour} {
			require.NoError(t, c.Set(t.Context(), "k", "v", ttl))
			assert.True(t, read(t, c, "k").Present)
			time.Sleep(ttl - 1)
			assert.True(t, read(t, c, "k").Present, "%v", ttl)
			time.Sleep(time.Nanosecond)
			assert.False(t, read(t, c, "k").Present, "%v", ttl)
		}
	})
}

func TestATTLThatCannotRunOutIsNoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		time.Sleep(time.Hour)
		require.NoError(t, c.Set(t.Context(), "longest", "v", math.MaxInt64))
		require.NoError(t, c.Set(t.Context(), "none", "v", 0))
		time.Sleep(100 * 365 * 24 * time.Hour)
		assert.True(t, read(t, c, "longest").Present)
		assert.True(t, read(t, c, "none").Present)
	})
}

func TestSetReplacesTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		set := func(ttl time.Duration) { require.NoError(t, c.Set(t.Context(), "k", "v", ttl)) }
		set(time.Hour)
		set(time.Second) // shorter
		time.Sleep(time.Second)
		assert.False(t, read(t, c, "k").Present)

		set(time.Second)
		set(time.Hour) // longer
		time.Sleep(time.Hour - 1)
		assert.True(t, read(t, c, "k").Present)
		set(0) // none
		time.Sleep(time.Hour)
		assert.True(t, read(t, c, "k").Present)
		set(time.Second) // one again
		time.Sleep(time.Second)
		assert.False(t, read(t, c, "k").Present)
	})
}

func TestACounterExpiresUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		increment := func() int64 {
			n, err := c.Increment(t.Context(), "k", time.Second)
			require.NoError(t, err)
			return n
		}
		for i := range 10 {
			assert.EqualValues(t, i+1, increment())
			time.Sleep(100 * time.Millisecond)
		}
		assert.EqualValues(t, 1, increment(), "the TTL is the first increment's")
	})
}

func TestACounterIsItsDecimalString(t *testing.T) {
	c := fresh(t)
	for range 1234 {
		_, err := c.Increment(t.Context(), "k", 0)
		require.NoError(t, err)
	}
	assert.Equal(t, cache.Present("1234"), read(t, c, "k"))

	require.NoError(t, c.Set(t.Context(), "k", "-2", 0))
	for _, want := range []int64{-1, 0, 1} {
		n, err := c.Increment(t.Context(), "k", 0)
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}

	require.NoError(t, c.Set(t.Context(), "k", "-9223372036854775808", 0))
	n, err := c.Increment(t.Context(), "k", 0)
	require.NoError(t, err)
	assert.EqualValues(t, -9223372036854775807, n)
}

func TestNoIncrementIsLost(t *testing.T) {
	c := fresh(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				_, err := c.Increment(t.Context(), "k", time.Hour)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, cache.Present("8000"), read(t, c, "k"))
}

func TestWhatIsNotAnIntegerIsLeftAsItIs(t *testing.T) {
	c := fresh(t)
	refuses := func(value string, want error) {
		t.Helper()
		require.NoError(t, c.Set(t.Context(), "k", value, 0))
		n, err := c.Increment(t.Context(), "k", 0)
		assert.Zero(t, n)
		require.ErrorIs(t, err, want, "%q", value)
		var corrupt *cache.CorruptError
		require.ErrorAs(t, err, &corrupt)
		assert.Equal(t, cache.CorruptError{Op: "increment", Key: "k", Err: want}, *corrupt)
		assert.Equal(t, cache.Present(value), read(t, c, "k"))
	}
	for _, value := range []string{
		"", "-", "a", "1.0", "1e3", "+1", " 1", "1 ", "1\n", "01", "00", "-0", "-01", "0x10", "1_000", "١",
		"9223372036854775808", "-9223372036854775809", "99999999999999999999999999",
	} {
		refuses(value, cache.ErrNotInteger)
	}
	refuses("9223372036854775807", cache.ErrOverflow)
}

func TestOneOfManySwapsAnEntry(t *testing.T) {
	c := fresh(t)
	for _, old := range []cache.Entry{cache.Absent(), cache.Present("old")} {
		require.NoError(t, c.Delete(t.Context(), "k"))
		if old.Present {
			require.NoError(t, c.Set(t.Context(), "k", old.Value, 0))
		}
		var swaps sync.Map
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				mine := strconv.Itoa(i)
				ok, err := c.CompareAndSwap(t.Context(), "k", old, cache.Present(mine), time.Hour)
				assert.NoError(t, err)
				if ok {
					swaps.Store(mine, true)
				}
			})
		}
		wg.Wait()
		var winners []string
		swaps.Range(func(k, _ any) bool { winners = append(winners, k.(string)); return true })
		require.Len(t, winners, 1)
		assert.Equal(t, cache.Present(winners[0]), read(t, c, "k"))
	}
}

func TestSwappingEqualEntriesRenewsTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		swap := func(old, new cache.Entry, ttl time.Duration) bool {
			ok, err := c.CompareAndSwap(t.Context(), "k", old, new, ttl)
			require.NoError(t, err)
			return ok
		}
		v := cache.Present("v")
		assert.True(t, swap(cache.Absent(), cache.Absent(), 0))
		assert.False(t, swap(v, v, 0))
		assert.True(t, swap(cache.Absent(), v, time.Second))
		time.Sleep(time.Second - 1)
		assert.True(t, swap(v, v, time.Second))
		time.Sleep(time.Second - 1)
		assert.Equal(t, v, read(t, c, "k"))
		assert.False(t, swap(cache.Absent(), v, time.Hour), "what did not swap renews nothing")
		assert.False(t, swap(cache.Present("w"), v, time.Hour))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, cache.Absent(), read(t, c, "k"))
		assert.True(t, swap(cache.Entry{Value: "of no meaning"}, v, 0))
		assert.True(t, swap(v, cache.Absent(), -1), "the TTL of an absent entry is ignored")
		assert.Equal(t, cache.Absent(), read(t, c, "k"))
	})
}

func TestTheValuesOfAGroupAreOfOneInstant(t *testing.T) {
	c := fresh(t)
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = cache.Key("g", strconv.Itoa(i))
		require.NoError(t, c.Set(t.Context(), keys[i], "0", 0))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 1000 {
			for _, key := range keys { // so that at no instant one is behind a later one
				_ = c.Set(context.Background(), key, strconv.Itoa(i), 0)
			}
		}
	}()
	entries := make([]cache.Entry, len(keys))
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		require.NoError(t, c.GetMany(t.Context(), keys, entries))
		first, err := strconv.Atoi(entries[0].Value)
		require.NoError(t, err)
		step := 0
		for _, e := range entries {
			if e.Value != strconv.Itoa(first-step) {
				step++
			}
			require.Equal(t, strconv.Itoa(first-step), e.Value)
			require.LessOrEqual(t, step, 1)
		}
	}
}

func TestManyValuesOfDifferentGroups(t *testing.T) {
	c := fresh(t)
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
		if i%2 == 0 {
			require.NoError(t, c.Set(t.Context(), keys[i], keys[i], 0))
		}
	}
	entries := make([]cache.Entry, len(keys)+1)
	for i := range entries {
		entries[i] = cache.Present("stale")
	}
	require.NoError(t, c.GetMany(t.Context(), keys, entries))
	for i, key := range keys {
		assert.Equal(t, read(t, c, key), entries[i])
	}
	assert.Equal(t, cache.Present("stale"), entries[len(keys)])
	assert.Panics(t, func() { _ = c.GetMany(t.Context(), keys, entries[:len(keys)-1]) })
}

func TestANegativeTTLIsAnError(t *testing.T) {
	c := fresh(t)
	require.NoError(t, c.Set(t.Context(), "k", "1", 0))
	for op, call := range map[string]func() error{
		"set":       func() error { return c.Set(t.Context(), "k", "v", -1) },
		"increment": func() error { _, err := c.Increment(t.Context(), "k", -1); return err },
		"compare and swap": func() error {
			_, err := c.CompareAndSwap(t.Context(), "k", cache.Present("1"), cache.Present("v"), -1)
			return err
		},
	} {
		var bad *cache.ArgumentError
		require.ErrorAs(t, call(), &bad, op)
		assert.Equal(t, cache.ArgumentError{Op: op, Field: "ttl", Value: time.Duration(-1), Want: "zero or more"}, *bad)
	}
	assert.Equal(t, cache.Present("1"), read(t, c, "k"))
}

func FuzzIncrementTakesOnlyCanonicalIntegers(f *testing.F) {
	for _, value := range []string{"", "0", "-0", "1", "-1", "01", "+1", "1e3", "9223372036854775806", "9223372036854775807", "9223372036854775808"} {
		f.Add(value)
	}
	canonical := regexp.MustCompile(`\A(0|-?[1-9][0-9]*)\z`)
	f.Fuzz(func(t *testing.T, value string) {
		c := memory.New()
		defer c.Close()
		require.NoError(t, c.Set(t.Context(), "k", value, 0))
		sum, err := c.Increment(t.Context(), "k", 0)
		want, ok := new(big.Int).SetString(value, 10)
		switch {
		case !ok || !canonical.MatchString(value) || !want.IsInt64():
			require.ErrorIs(t, err, cache.ErrNotInteger)
		case want.Int64() == math.MaxInt64:
			require.ErrorIs(t, err, cache.ErrOverflow)
		default:
			require.NoError(t, err)
			require.Equal(t, want.Int64()+1, sum)
			value = strconv.FormatInt(sum, 10)
		}
		require.Equal(t, cache.Present(value), read(t, c, "k"))
	})
}
