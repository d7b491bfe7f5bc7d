package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/openai/openai-go/v3"

	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/provider"
)

// hostError judges a response whose status is no success. The body is the part that
// was read of it.
func hostError(req *http.Request, res *http.Response, body []byte, hide hider) error {
	w := parseError(body)
	if w.message == "" && len(w.object) == 0 {
		w.message = string(body) // a page, or a line of text
	}
	if to := res.Header.Get("Location"); w.message == "" && to != "" {
		w.message = "the host refers to " + redactedURL(to)
	}
	return judge(provider.StatusError(res.StatusCode), w, vendorError(w.object, req, res, body, hide), hide)
}

// errorInside judges a response whose status is a success, and returns nil if there is
// no error object in it or in its first choice. What else is there does not count: the
// host says that something went wrong.
func errorInside(req *http.Request, res *http.Response, body []byte, hide hider) error {
	var envelope struct {
		Error   json.RawMessage
		Choices []*struct{ Error json.RawMessage }
	}
	_ = json.Unmarshal(body, &envelope) // a part of another type is left out, the rest is there
	inner := envelope.Error
	if nothing(inner) && len(envelope.Choices) > 0 && envelope.Choices[0] != nil {
		inner = envelope.Choices[0].Error
	}
	if nothing(inner) {
		return nil
	}
	body = []byte(`{"error":` + string(inner) + "}")
	w := parseError(body)
	e := provider.StatusError(w.status)
	if w.status == 0 {
		e.Kind, e.Transient = provider.Unavailable, true // it accepted the request and then failed
	}
	e.Status = res.StatusCode
	return judge(e, w, vendorError(w.object, req, res, body, hide), hide)
}

// nothing reports whether a host that always sends the field means that there is no
// error.
func nothing(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}":
		return true
	}
	return false
}

// wireError is what an error object says, whichever way the host spells it. The key has
// not been taken out of it, for a short one may be a part of the host's own words.
type wireError struct {
	object  json.RawMessage
	codes   []string // the code, the type, the code inside and the status, as far as there are any
	message string
	status  int // the status that a numeric code stands for
	flagged bool
}

// parseError finds the error object in {"error": {...}}, in a list of one of those, in
// {"error": "text"}, in {"detail": "text"}, or in the object itself.
func parseError(body []byte) wireError {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error  json.RawMessage
		Detail json.RawMessage
	}
	if json.Unmarshal(body, &outer) != nil {
		return wireError{}
	}
	w := wireError{object: body}
	switch {
	case len(outer.Error) > 0 && outer.Error[0] == '{':
		w.object = outer.Error
	case len(outer.Error) > 0:
		w.message = text(outer.Error)
	case len(outer.Detail) > 0:
		w.message = text(outer.Detail)
	}
	var e struct {
		Code, Type, Message, Status json.RawMessage
		InnerError                  struct{ Code json.RawMessage }
		Metadata                    struct {
			FlaggedInput json.RawMessage `json:"flagged_input"`
		}
	}
	_ = json.Unmarshal(w.object, &e) // a part of another type is left out, the rest is there
	_ = json.Unmarshal(e.Code, &w.status)
	if w.status < 400 || w.status > 599 {
		w.status = 0
	}
	for _, raw := range []json.RawMessage{e.Code, e.Type, e.InnerError.Code, e.Status} {
		if s := text(raw); s != "" {
			w.codes = append(w.codes, s)
		}
	}
	if w.message == "" {
		w.message = text(e.Message)
	}
	w.flagged = len(e.Metadata.FlaggedInput) > 0
	return w
}

// text returns a JSON string as it is and everything else but null as its JSON.
func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

func (w wireError) is(codes ...string) bool {
	return slices.ContainsFunc(w.codes, func(c string) bool { return slices.Contains(codes, strings.ToLower(c)) })
}

// Hosts that have no code for it say it in these words.
var tooLong = regexp.MustCompile(`(?i)context (length|window|size)|available context|maximum model length|prompt is too long|too large to process`)

// judge refines what the status says by what this vendor's codes mean, most telling
// first.
func judge(e *provider.HostError, w wireError, vendor *openai.Error, hide hider) error {
	if w.is("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt") || w.flagged {
		return &provider.RefusedCompletionError{
			Completion: provider.Completion{Finish: provider.FinishFiltered, Refusal: hide.message(w.message)},
			Err:        vendor,
		}
	}
	e.Err = vendor
	e.Message = provider.Snippet(oneLine(hide.message(w.message)))
	if len(w.codes) > 0 {
		e.Code = hide.message(w.codes[0])
	}
	vague := e.Kind == provider.InvalidRequest || e.Kind == provider.Unavailable
	switch {
	case w.is("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "insufficient_user_quota", "exceeded_current_quota_error"):
		e.Kind, e.Transient = provider.QuotaExhausted, false
	case w.is("context_length_exceeded", "context_window_exceeded", "exceed_context_size_error", "string_above_max_length", "request_too_large"),
		e.Kind == provider.RateLimited && strings.HasPrefix(w.message, "Request too large"), // above a whole minute's allowance
		vague && tooLong.MatchString(w.message):
		e.Kind, e.Transient = provider.TooLong, false
	case w.is("invalid_api_key", "authentication_error"):
		e.Kind, e.Transient = provider.Unauthenticated, false
	case w.is("model_not_found"):
		e.Kind, e.Transient = provider.NotFound, false
	case vague && w.is("rate_limit_exceeded", "rate_limit_error", "resource_exhausted"):
		e.Kind, e.Transient = provider.RateLimited, true
	case (vague || e.Kind == provider.RateLimited) && w.is("overloaded_error", "engine_overloaded", "engine_overloaded_error"):
		e.Kind, e.Transient = provider.Overloaded, true // a 429 may say so too, and it is not the caller's rate
	case vague && w.is("invalid_request_error") && vendor.StatusCode < 300:
		e.Kind, e.Transient = provider.InvalidRequest, false
	}
	switch vendor.Response.Header.Get("X-Should-Retry") {
	case "false":
		e.Transient = false
	case "true":
		e.Transient = e.Kind != provider.QuotaExhausted && e.Kind != provider.TooLong
	}
	if e.Transient {
		e.Hint = httptransport.RetryAfter(vendor.Response)
	}
	return e
}

// oneLine returns s as it may stand in a log: in one line, and nothing in it that a
// terminal would act on.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// vendorError returns what the SDK would have: its own error type, filled in as far as
// the body allows, but without any credential.
func vendorError(object json.RawMessage, req *http.Request, res *http.Response, body []byte, hide hider) *openai.Error {
	v := &openai.Error{}
	object, body = hide.bytes(object), hide.bytes(body)
	if len(object) > 0 && object[0] == '{' {
		_ = v.UnmarshalJSON(object) // what does not fit stays in the body
		for _, s := range []*string{&v.Message, &v.Code, &v.Type, &v.Param} {
			*s = hide.message(*s) // once more, for JSON can spell a key in more ways than one
		}
	}
	clean := req.Clone(context.Background()) // the call and its context are over when somebody looks
	clean.Body = nil
	for name := range clean.Header {
		if !slices.Contains(harmless, name) {
			clean.Header.Del(name)
		}
	}
	answer := *res
	answer.Header = res.Header.Clone()
	for _, values := range answer.Header {
		for i := range values {
			values[i] = hide(values[i])
		}
	}
	answer.Request = clean
	answer.Body = io.NopCloser(bytes.NewReader(body))
	v.StatusCode, v.Request, v.Response = res.StatusCode, clean, &answer
	return v
}

// harmless are the request headers that are known to hold no credential.
var harmless = []string{"Accept", "Content-Type", "User-Agent"}
