package openai

import (
	"errors"
	"regexp"
	"strings"

	"github.com/resilience-toolkit/resilience/provider"
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
func (h hider) message(s string) string {
	s = h(s)
	if !strings.Contains(s, "***") {
		return s // the expression takes milliseconds for a long page
	}
	return masked.ReplaceAllString(s, "[key]")
}

// bytes is message for what is not a string.
func (h hider) bytes(b []byte) []byte { return []byte(h.message(string(b))) }

// completion returns c as it may be shown. The finish reason stays if it is one that
// means something.
func (h hider) completion(c provider.Completion) provider.Completion {
	for _, s := range []*string{&c.Text, &c.Reasoning, &c.Refusal, &c.Model} {
		*s = h(*s)
	}
	switch c.Finish {
	case provider.FinishStop, provider.FinishLength, provider.FinishRefused, provider.FinishFiltered:
	default:
		c.Finish = provider.Finish(h(string(c.Finish)))
	}
	return c
}

// error returns err, or one in its place if its text holds the key.
func (h hider) error(err error) error {
	if text := err.Error(); h(text) != text {
		return errors.New(h(text))
	}
	return err
}
