// Package fake has a language model for tests: it answers from a script or by what
// the text contains, without a host.
//
// It is an adapter like any other. What it is told to answer passes the same
// [provider.Gate] as a real model's words, so that a test cannot smuggle in data that
// no model could have delivered, and a bad payload fails as it would in production.
// It ignores the system prompt, so that no test depends on how one is worded.
//
// # Zero values and concurrency
//
// An [LLM] comes from [Script], [Match] or [Func], and may be used by any number of goroutines
// at once. The zero [Answer] is an empty completion.
//
// # Errors
//
// Those of [provider.LLM], and [ErrNoAnswer].
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
)

// ErrNoAnswer is matched by the error of a call for which there is no answer: the
// script is at its end, or the text contains none of what was provided for. It is the
// test's mistake, and never made up for by a repeated or an empty answer.
var ErrNoAnswer = errors.New("fake: no answer")

// Model is the name of every fake model.
const Model = "fake/canned-v1"

// An Answer is what the model does with one call.
type Answer struct {
	// Completion is what it says, if Err is nil.
	Completion provider.Completion
	// Err is what it fails with, instead of saying anything.
	Err error
	// Delay is how long it takes. A context that is done meanwhile ends the call.
	Delay time.Duration
}

// JSON returns the answer that is v as JSON. A string, []byte or json.RawMessage is
// taken for JSON already, valid or not. JSON panics if v has no JSON.
func JSON(v any) Answer {
	switch v := v.(type) {
	case string:
		return Text(v)
	case []byte:
		return Text(string(v))
	case json.RawMessage:
		return Text(string(v))
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fake: JSON: %v", err))
	}
	return Text(string(text))
}

// Text returns the answer that is the text, as a model that had said what it had to
// say would give it.
func Text(text string) Answer {
	return Answer{Completion: provider.Completion{Text: text, Finish: provider.FinishStop}}
}

// Fail returns the answer that is an error, such as a [*provider.HostError].
func Fail(err error) Answer { return Answer{Err: err} }

// A Rule is an answer to every text that contains something.
type Rule struct {
	Contains string // empty for every text
	Answer   Answer
}

// An LLM is a language model for tests.
type LLM struct {
	answer func(text string) (Answer, error)

	mu       sync.Mutex
	requests []provider.Request
}

var _ provider.LLM = (*LLM)(nil)

// Script returns a model that gives the answers in order, one to each call, and
// [ErrNoAnswer] after the last.
func Script(answers ...Answer) *LLM {
	answers = slices.Clone(answers)
	var next atomic.Int64
	return &LLM{answer: func(string) (Answer, error) {
		n := next.Add(1)
		if n > int64(len(answers)) {
			return Answer{}, fmt.Errorf("%w: the script of %d is at its end", ErrNoAnswer, len(answers))
		}
		return answers[n-1], nil
	}}
}

// Match returns a model that answers by the first rule that fits the text, and with
// [ErrNoAnswer] if none does. Its answers do not depend on the order of calls, which
// suits concurrent ones.
func Match(rules ...Rule) *LLM {
	rules = slices.Clone(rules)
	return &LLM{answer: func(text string) (Answer, error) {
		for _, r := range rules {
			if strings.Contains(text, r.Contains) {
				return r.Answer, nil
			}
		}
		return Answer{}, fmt.Errorf("%w: none of %d rules fits the text %q", ErrNoAnswer, len(rules), provider.Snippet(text))
	}}
}

// Func returns a model whose answers the function makes, from the text. It must be
// safe for concurrent use.
func Func(answer func(text string) Answer) *LLM {
	return &LLM{answer: func(text string) (Answer, error) { return answer(text), nil }}
}

// Model returns [Model].
func (l *LLM) Model() string { return Model }

// Complete implements [provider.LLM].
func (l *LLM) Complete(ctx context.Context, r provider.Request) (json.RawMessage, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if err := resilience.ContextError(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.requests = append(l.requests, r)
	l.mu.Unlock()
	a, err := l.answer(r.Text)
	if err != nil {
		return nil, err
	}
	if a.Delay > 0 {
		timer := time.NewTimer(a.Delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil, resilience.ContextError(ctx)
		case <-timer.C:
		}
	}
	if a.Err != nil {
		return nil, a.Err
	}
	return provider.Gate(a.Completion, r.Schema)
}

// Requests returns the requests of all calls that were made, in the order in which
// they came. Calls that [provider.Request.Validate] refused are not among them.
func (l *LLM) Requests() []provider.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}
