package httptransport

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// HostOf returns the host that the request goes to: in lower case, with the port if
// that is not the scheme's own. It is the same for http://Example.com:80/a and
// http://example.com/b. The Host header, which may say anything, plays no part.
// Names are compared as they are spelled: one that ends in a dot is another, and so
// is the xn-- form of one in Unicode.
func HostOf(req *http.Request) string {
	host := strings.ToLower(req.URL.Host)
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return host // no port
	}
	switch scheme := strings.ToLower(req.URL.Scheme); {
	case port == "", scheme == "http" && port == "80", scheme == "https" && port == "443":
		if strings.Contains(name, ":") {
			return "[" + name + "]"
		}
		return name
	}
	return host
}

// Host returns the [HostOf] of the request that ctx belongs to, and "" if there is
// none. It is a key for a limiter, whose callers then have an allowance per host:
//
//	allowance.By(httptransport.Host)
func Host(ctx context.Context) string {
	req := RequestFrom(ctx)
	if req == nil {
		return ""
	}
	return HostOf(req)
}
