package redis

import (
	"strings"

	"github.com/resilience-toolkit/resilience/cache"
)

// What a key of the server holds.
const (
	kindValue     = "v" // a value or a counter
	kindHits      = "h" // a series of hits
	kindOperation = "o" // that an operation has been done, and its result
)

// key returns the server's key of one kind for a key of the port. Different keys give
// different ones, and those of one group have their hash tag in common: what stands
// between the first opening brace and the closing brace after it. A tag must not be
// empty, or the whole key would count instead.
func (c *Cache) key(key, kind string) string {
	group := cache.Group(key)
	tag, rest := encode(group), ""
	if len(group) < len(key) {
		rest = key[len(group)+1:]
		return c.prefix + "{" + tag + "}:" + kind + ":" + rest
	}
	return c.prefix + "{" + tag + "}:" + kind
}

// operation returns the server's key for an operation on a key of the port.
func (c *Cache) operation(key string, id string) string {
	return c.prefix + "{" + encode(cache.Group(key)) + "}:" + kindOperation + ":" + id
}

// encode makes any group a hash tag. A percent sign alone, which no escape leaves behind,
// stands for the empty one.
func encode(group string) string {
	if group == "" {
		return "%"
	}
	if !strings.ContainsAny(group, "}%") {
		return group
	}
	return tagEscaper.Replace(group)
}

var tagEscaper = strings.NewReplacer("%", "%25", "}", "%7D")
