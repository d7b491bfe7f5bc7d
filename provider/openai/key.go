package openai

import (
	"regexp"
	"strings"
)

// A key is a credential that must not get into an error or a log.
type key string

// Hosts repeat a key they do not accept, in whole or with its middle masked.
var masked = regexp.MustCompile(`[A-Za-z0-9_-]+\*{3,}[A-Za-z0-9_-]*`)

// hide returns s without the key.
func (k key) hide(s string) string {
	if k != "" {
		s = strings.ReplaceAll(s, string(k), "[key]")
	}
	return masked.ReplaceAllString(s, "[key]")
}

func (k key) hideBytes(b []byte) []byte { return []byte(k.hide(string(b))) }
