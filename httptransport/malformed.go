package httptransport

import (
	"net/http"
	"strings"
)

// malformed reports whether a request cannot be sent by anybody, so that what the base
// makes of it says nothing about the host: it names no host, or its header or trailer is
// none by RFC 9110, sections 5.1 and 5.5. A token that was read from a file, with the
// end of its line, is the usual case.
func malformed(req *http.Request) bool {
	return req.URL == nil || req.URL.Host == "" || req.Header == nil ||
		malformedFields(req.Header) || malformedFields(req.Trailer)
}

func malformedFields(h http.Header) bool {
	for name, values := range h {
		if name == "" || strings.ContainsFunc(name, notInToken) {
			return true
		}
		for _, value := range values {
			if strings.ContainsFunc(value, isControl) {
				return true
			}
		}
	}
	return false
}

func notInToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	default:
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
