package provider

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/resilience-toolkit/resilience"
)

// ErrCompletion is matched, with [errors.Is], by every error that stands for an
// answer of the host that cannot be used. The host is well, so a circuit breaker
// takes one for a success; the same question would get the same answer, so a retry
// leaves it alone.
var ErrCompletion = errors.New("provider: completion cannot be used")

// An EmptyCompletionError says that the model finished and said nothing: no text,
// or nothing but space. It is never turned into an empty result, which would be a
// claim about the text. Finish tells what to look at, and Reasoning holds what a
// model thought that never came to an answer.
type EmptyCompletionError struct {
	Completion
}

// Error implements error.
func (e *EmptyCompletionError) Error() string {
	s := "provider: completion is empty"
	if e.Finish != "" {
		s += fmt.Sprintf(" (finish reason %q)", string(e.Finish))
	}
	if e.Reasoning != "" {
		s += ", the model only reasoned"
	}
	return s
}

// Is matches [ErrCompletion].
func (e *EmptyCompletionError) Is(target error) bool { return target == ErrCompletion }

// A TruncatedCompletionError says that the output budget was used up before the
// answer was whole. Text is the part there is, which may be nothing if reasoning took
// all of the budget; whether that part would pass for an answer is not asked. The
// remedy is a larger budget, not another try.
type TruncatedCompletionError struct {
	Completion
}

// Error implements error.
func (e *TruncatedCompletionError) Error() string {
	s := "provider: completion is truncated"
	if e.MaxOutput > 0 {
		s += fmt.Sprintf(" at the limit of %d output tokens", e.MaxOutput)
	}
	if e.Usage.Reasoning > 0 {
		s += fmt.Sprintf(", %d of which went into reasoning", e.Usage.Reasoning)
	}
	if blank(e.Text) {
		s += ", before the answer began"
	}
	return s
}

// Is matches [ErrCompletion].
func (e *TruncatedCompletionError) Is(target error) bool { return target == ErrCompletion }

// A RefusedCompletionError says that the model declined to answer, or that a content
// filter stopped the question or the answer. That is a lasting property of the
// content: record it and move on. Text is the part of an answer there is, Refusal the
// model's own words.
type RefusedCompletionError struct {
	Completion
	// Err is the vendor's error, if the host put its filter's verdict into one. It may
	// be nil.
	Err error
}

// Filtered reports whether it was a content filter that stepped in, and not the
// model that declined.
func (e *RefusedCompletionError) Filtered() bool { return e.Finish == FinishFiltered }

// Error implements error.
func (e *RefusedCompletionError) Error() string {
	s := "provider: completion was refused by the model"
	if e.Filtered() {
		s = "provider: completion was stopped by a content filter"
	}
	if e.Refusal != "" {
		s += fmt.Sprintf(": %q", Snippet(e.Refusal))
	}
	return s
}

// Is matches [ErrCompletion].
func (e *RefusedCompletionError) Is(target error) bool { return target == ErrCompletion }

// Unwrap returns Err.
func (e *RefusedCompletionError) Unwrap() error { return e.Err }

// A MalformedCompletionError says that the model's answer is not JSON, or not what the
// schema asks for, or that what the host sent in the place of an answer is none: a
// proxy's page, a body without a choice in it. Its text quotes a [Snippet]; who must
// not have that in a log prints Err's kind instead.
type MalformedCompletionError struct {
	Completion
	// Schema is the name of the schema that the answer was to match.
	Schema string
	// Status is the HTTP status of a response that was no completion at all, and
	// otherwise zero.
	Status int
	// Snippet is the beginning of what came, as [Snippet] makes it.
	Snippet string
	// Err is what is wrong with it. An adapter always says so.
	Err error
}

// Error implements error.
func (e *MalformedCompletionError) Error() string {
	what := fmt.Sprintf("completion does not match schema %q", e.Schema)
	if e.Status != 0 {
		what = fmt.Sprintf("response with status %d is no completion", e.Status)
	}
	if e.Err != nil {
		what += ": " + Snippet(e.Err.Error())
	}
	return fmt.Sprintf("provider: %s; it begins %q", what, e.Snippet)
}

// Is matches [ErrCompletion].
func (e *MalformedCompletionError) Is(target error) bool { return target == ErrCompletion }

// Unwrap returns Err.
func (e *MalformedCompletionError) Unwrap() error { return e.Err }

// A RequestError says that a request was refused on this side, so that no call was
// made. It matches [resilience.ErrRejected]: a retry leaves it alone, and a circuit
// breaker counts it for nothing.
type RequestError struct {
	Field   string // the field of the Request, such as "Text"
	Problem string // what is wrong with it, such as "is blank"
}

// Error implements error.
func (e *RequestError) Error() string {
	return fmt.Sprintf("provider: the request's %s %s", e.Field, e.Problem)
}

// Unwrap returns [resilience.ErrRejected].
func (e *RequestError) Unwrap() error { return resilience.ErrRejected }

// Snippet returns s as it may be quoted in an error: valid UTF-8, and cut to at most
// 256 bytes, with an ellipsis for the rest. For an adapter's author.
func Snippet(s string) string {
	const most = 256
	short := s
	if len(short) > most {
		// Whole runes only; what is not UTF-8 is replaced below, wherever it is cut.
		end := most - len("…")
		for end > most-len("…")-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		short = s[:end]
	}
	short = strings.ToValidUTF8(short, "?")
	if len(s) > most {
		short += "…"
	}
	return short
}
