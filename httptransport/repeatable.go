package httptransport

import "net/http"

// Repeatable is the default of [Config.Repeatable]: it reports whether sending the
// request twice means no more than sending it once. That is so for the idempotent
// methods of RFC 9110, section 9.2.2 (GET, HEAD, OPTIONS, TRACE, PUT and DELETE),
// and for a request with a header Idempotency-Key or X-Idempotency-Key. As in
// [http.Transport], a key with a nil value is enough, and is not sent.
func Repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	_, key := req.Header["Idempotency-Key"]
	_, xkey := req.Header["X-Idempotency-Key"]
	return key || xkey
}

// bodyRepeatable reports whether there is no body, or it can be had again.
func bodyRepeatable(req *http.Request) bool { return !hasBody(req) || req.GetBody != nil }

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }
