package openai

import (
	"errors"
	"regexp"
	"strings"
)

// A hider takes the key out of what a host sends back, which may repeat it. It is a
// function because a field of a struct gets into a log with the struct.
type hider func(s string) string

func hide(key string) hider {
	if key == "" {
		return func(s string) string { return s }
	}
	return func(s string) string { return strings.ReplaceAll(s, key, "[key]") }
}

// Hosts repeat a key they do not accept with its middle masked, too.
var masked = regexp.MustCompile(`[A-Za-z0-9_-]+\*{3,}[A-Za-z0-9_-]*`)

// message returns what a host says about an error, without anything like a key.
func (h hider) message(s string) string { return masked.ReplaceAllString(h(s), "[key]") }

// error returns err, or one in its place if its text holds the key.
func (h hider) error(err error) error {
	if text := err.Error(); h(text) != text {
		return errors.New(h(text))
	}
	return err
}
