package redis

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
)

// slot is the hash slot by the rules of the cluster specification: CRC16 (XMODEM) of what
// stands between the first opening brace and the first closing one after it, unless there
// is nothing between, and otherwise of the whole key.
func slot(key string) uint16 {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

func TestSlotIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 0x31C3, slot("123456789"))
	require.Equal(t, slot("{user1000}.following"), slot("{user1000}.followers"))
}

func oddKeys() []string {
	rng := rand.New(rand.NewPCG(1, 1))
	list := []string{"", "{", "}", "{}", "}{", "{a}", "a{b}c", "%", "%7D", "%25", " ", "a b", "日本", "\xff\xfe", "\x01", "a\x01b", ":v", "}:v", "a:v"}
	const letters = "{}%:\x00\x01ab \xc3"
	for range 1000 {
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		list = append(list, string(b))
	}
	return list
}

func TestKeysOfOneCallShareASlotAndAGroup(t *testing.T) {
	t.Parallel()
	c := &Cache{prefix: defaultPrefix}
	for _, group := range oddKeys() {
		a, b := cache.Key(group, "state"), cache.Key(group, "}{\x00")
		want := slot(c.key(a, kindValue))
		for _, key := range []string{c.key(a, kindHits), c.operation(a, idText(newID())), c.key(b, kindValue), c.operation(b, idText(newID()))} {
			require.Equal(t, want, slot(key), "%q", key)
		}
	}
}

func TestDifferentKeysStayDifferent(t *testing.T) {
	t.Parallel()
	c := &Cache{prefix: defaultPrefix}
	seen := map[string]string{}
	var all []string
	odd := oddKeys()
	for i, key := range odd {
		all = append(all, key, cache.Key(key, odd[len(odd)-1-i]))
	}
	for _, key := range all {
		for _, kind := range []string{kindValue, kindHits, kindOperation} {
			name := c.key(key, kind)
			if before, ok := seen[name]; ok {
				require.Equal(t, before, kind+key, name)
			}
			seen[name] = kind + key
		}
	}
}

func TestKeysSpreadOverTheSlots(t *testing.T) {
	t.Parallel()
	c := &Cache{prefix: defaultPrefix}
	slots := map[uint16]bool{}
	for _, key := range oddKeys() {
		slots[slot(c.key(key, kindHits))] = true
	}
	assert.Greater(t, len(slots), 300, "no tag that all have in common")
}

func TestIdentifiersInTextAreShortAndSortLikeNumbers(t *testing.T) {
	t.Parallel()
	last := idText(0)
	for _, id := range []uint64{1, 63, 64, 1 << 32, 1<<62 - 1, 1 << 62, 1<<64 - 1} {
		text := idText(id)
		require.Len(t, text, idLen)
		require.Greater(t, text, last)
		require.Less(t, text, "~", "heavier hits sort behind")
		last = text
	}
	a, b := newID(), newID()
	require.Greater(t, b, a)
}
