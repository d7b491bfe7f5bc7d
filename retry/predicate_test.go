package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
)

func TestOnAcceptsWhatMatchesOneOfItsErrors(t *testing.T) {
	p := retry.On(errBusy, io.ErrUnexpectedEOF)
	assert.True(t, p(errBusy))
	assert.True(t, p(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)))
	assert.True(t, p(errors.Join(errWrong, errBusy)))
	assert.False(t, p(errWrong))
	assert.False(t, p(errors.New("busy")), "the text is no identity")
}

func TestOnKeepsItsOwnListOfErrors(t *testing.T) {
	list := []error{errBusy}
	p := retry.On(list...)
	list[0] = errWrong
	assert.True(t, p(errBusy))
	assert.False(t, p(errWrong))
}

func TestOnTypeAcceptsWhatHoldsTheType(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	assert.True(t, retry.OnType[*net.OpError]()(fmt.Errorf("get: %w", reset)))
	assert.True(t, retry.OnType[net.Error]()(reset), "an interface will do")
	assert.True(t, retry.OnType[net.Error]()(context.DeadlineExceeded))
	assert.False(t, retry.OnType[*net.OpError]()(errBusy))
}

func TestAnyAllAndNotCombinePredicates(t *testing.T) {
	yes, no := always, never
	assert.True(t, retry.Any(no, yes)(errBusy))
	assert.False(t, retry.Any(no, no)(errBusy))
	assert.True(t, retry.All(yes, yes)(errBusy))
	assert.False(t, retry.All(yes, no)(errBusy))
	assert.True(t, retry.Not(no)(errBusy))
	assert.False(t, retry.Not(yes)(errBusy))
}

func TestAnyAndAllAskNoFurtherThanTheyMust(t *testing.T) {
	unasked := func(error) bool { t.Error("asked"); return false }
	assert.True(t, retry.Any(always, unasked)(errBusy))
	assert.False(t, retry.All(never, unasked)(errBusy))
}

func TestCombinatorsKeepTheirOwnListOfPredicates(t *testing.T) {
	list := []func(error) bool{always}
	anyOf, allOf := retry.Any(list...), retry.All(list...)
	list[0] = never
	assert.True(t, anyOf(errBusy))
	assert.True(t, allOf(errBusy))
}

func TestNilAndMissingArgumentsPanicWithTheirPosition(t *testing.T) {
	for want, f := range map[string]func(){
		"retry: On: no errors given":          func() { retry.On() },
		"retry: On: error 2 of 2 is nil":      func() { retry.On(errBusy, nil) },
		"retry: Any: no predicates given":     func() { retry.Any() },
		"retry: Any: predicate 2 of 3 is nil": func() { retry.Any(always, nil, always) },
		"retry: All: no predicates given":     func() { retry.All() },
		"retry: All: predicate 1 of 1 is nil": func() { retry.All(nil) },
		"retry: Not: predicate 1 of 1 is nil": func() { retry.Not(nil) },
	} {
		assert.PanicsWithValue(t, want, f)
	}
}
