package cache_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/resilience-toolkit/resilience/cache"
)

// few strings of the bytes that a key gives a meaning, in every order.
func few() []string {
	few := []string{""}
	for i := 0; len(few) < 100; i++ {
		for _, b := range []string{"\x00", "\x01", "\x02", "a"} {
			few = append(few, few[i]+b)
		}
	}
	return few
}

func TestDifferentPairsGiveDifferentKeys(t *testing.T) {
	pairs := map[string][2]string{}
	for _, group := range few() {
		for _, part := range few() {
			key := cache.Key(group, part)
			pair, taken := pairs[key]
			if !assert.False(t, taken, "%q and %q", pair, [2]string{group, part}) {
				return
			}
			pairs[key] = [2]string{group, part}
		}
	}
}

func TestKeysShareAGroupIfAndOnlyIfTheyWereMadeOfOne(t *testing.T) {
	groups := map[string]string{}
	for _, group := range few() {
		common := cache.Group(cache.Key(group, ""))
		assert.Equal(t, common, cache.Group(cache.Key(group, "part")))
		assert.Equal(t, common, cache.Group(cache.Key(group, "\x00\x01")))
		other, taken := groups[common]
		assert.False(t, taken, "%q and %q", other, group)
		groups[common] = group
		assert.False(t, strings.Contains(common, "\x00"))
	}
}

func TestAKeyOfNoGroupIsItsOwn(t *testing.T) {
	for _, key := range []string{"", "k", "\x01\x02", "{k}"} {
		assert.Equal(t, key, cache.Group(key))
	}
	assert.Equal(t, "", cache.Group("\x00k"))
}

func FuzzDifferentPairsGiveDifferentKeys(f *testing.F) {
	f.Add("a\x00", "b", "a", "\x00b")
	f.Add("\x00", "", "\x01\x01", "")
	f.Fuzz(func(t *testing.T, group, part, otherGroup, otherPart string) {
		same := group == otherGroup && part == otherPart
		assert.Equal(t, same, cache.Key(group, part) == cache.Key(otherGroup, otherPart))
		assert.Equal(t, group == otherGroup, cache.Group(cache.Key(group, part)) == cache.Group(cache.Key(otherGroup, otherPart)))
	})
}
