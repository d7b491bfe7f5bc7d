package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Completion is what a host answered, before anybody judged it. An adapter fills it
// in and hands it to [Gate]; each completion error carries it, so that nothing which
// was paid for is lost.
type Completion struct {
	// Text is the answer itself, without any reasoning.
	Text string
	// Reasoning is what the model thought on the way, where the host says so. It is
	// never taken for the answer.
	Reasoning string
	// Refusal is what the model said in the place of an answer it declined to give.
	Refusal string
	// Finish is why the model stopped.
	Finish Finish
	// Model is what the host says that answered, in its own words.
	Model string
	// MaxOutput is the output budget in tokens that the call had, reasoning included;
	// zero if it is not known.
	MaxOutput int
	// Usage is what the call used, as far as the host says.
	Usage Usage
}

// Usage is what a call used, in tokens. Zero means that the host did not say.
type Usage struct {
	Input     int64 // of the prompt and the text
	Output    int64 // of the answer, reasoning included
	Reasoning int64 // of the output, what went into reasoning
}

// A Finish is the reason why a model stopped. The constants are those that [Gate]
// acts on; a host's other reasons stand as they are, for whoever reads an error. The
// zero value is a reason that was not given.
type Finish string

// The reasons that have a meaning of their own.
const (
	FinishStop     Finish = "stop"           // it had said what it had to say
	FinishLength   Finish = "length"         // the output budget was used up
	FinishRefused  Finish = "refusal"        // the model declined
	FinishFiltered Finish = "content_filter" // a filter stopped the question or the answer
)

// Gate is what every completion passes on its way to a caller. It returns the JSON of
// the answer if that matches the schema, and otherwise the one error of the completion
// family that fits, in this order:
//
//   - [*RefusedCompletionError] if the model declined or a filter stepped in, whatever
//     text there is;
//   - [*TruncatedCompletionError] if the budget was used up, whatever the text looks
//     like: a part of an answer can be valid JSON and wrong;
//   - [*EmptyCompletionError] if the text is blank;
//   - [*MalformedCompletionError] if the text is not exactly one JSON value that
//     matches the schema.
//
// Space around the value, a byte order mark in front of it and a Markdown fence around
// the whole of it are forgiven, since they do not change what was said. Prose around
// it is not, and neither is a name that an object has twice.
func Gate(c Completion, s *Schema) (json.RawMessage, error) {
	switch {
	case c.Refusal != "" || c.Finish == FinishRefused || c.Finish == FinishFiltered:
		return nil, &RefusedCompletionError{Completion: c}
	case c.Finish == FinishLength:
		return nil, &TruncatedCompletionError{Completion: c}
	}
	text := unfence(trim(c.Text))
	if blank(text) {
		return nil, &EmptyCompletionError{Completion: c}
	}
	raw := json.RawMessage(text)
	if err := s.Validate(raw); err != nil {
		return nil, malformed(c, s, err)
	}
	return raw, nil
}

func malformed(c Completion, s *Schema, err error) error {
	return &MalformedCompletionError{Completion: c, Schema: s.Name(), Snippet: Snippet(c.Text), Err: err}
}

// unfence returns what is inside a Markdown fence that spans the whole of s, and
// otherwise s. A fence is three backticks or tildes or more.
func unfence(s string) string {
	fence := s[:len(s)-len(strings.TrimLeft(s, "`"))]
	if fence == "" {
		fence = s[:len(s)-len(strings.TrimLeft(s, "~"))]
	}
	if len(fence) < 3 || !strings.HasSuffix(s, fence) {
		return s
	}
	info, body, ok := strings.Cut(s[len(fence):], "\n")
	if !ok || strings.ContainsAny(info, "`{[") {
		return s
	}
	return trim(strings.TrimSuffix(body, fence))
}

// trim takes off the space around s and a byte order mark in front of it.
func trim(s string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "\ufeff"))
}

// decodeOne decodes a text that is exactly one JSON value. That is UTF-8 (RFC 8259,
// section 8.1), and no object in it has a name twice: what that means is anybody's guess
// (section 4), so that the value which is validated and the one which is filled in could
// be two.
func decodeOne(raw []byte) (v any, err error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("the JSON is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, errors.New("the JSON breaks off")
		}
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more after the JSON value, at offset %d", d.InputOffset())
	}
	return v, namedOnce(json.NewDecoder(bytes.NewReader(raw)))
}

// namedOnce reads a JSON value, and returns an error if an object in it has a name
// twice.
func namedOnce(d *json.Decoder) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	switch open {
	case json.Delim('{'):
		names := map[json.Token]bool{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if names[name] {
				return fmt.Errorf("the JSON names %q twice in one object", name)
			}
			names[name] = true
			if err := namedOnce(d); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for d.More() {
			if err := namedOnce(d); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token() // the end of it
	return err
}
