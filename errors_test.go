package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
)

// hint is an error of a user's own that knows when to come back.
type hint time.Duration

func (h hint) Error() string             { return "come back later" }
func (h hint) RetryAfter() time.Duration { return time.Duration(h) }

type wrapping struct {
	hint
	inner error
}

func (w wrapping) Unwrap() error { return w.inner }

func TestRetryAfterFindsTheFirstHintInTheTree(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"nil":                             {nil, 0},
		"none":                            {plain, 0},
		"itself":                          {hint(time.Second), time.Second},
		"wrapped twice":                   {fmt.Errorf("b: %w", fmt.Errorf("a: %w", hint(time.Second))), time.Second},
		"second of a join":                {errors.Join(plain, hint(time.Minute)), time.Minute},
		"first of several":                {errors.Join(hint(2), hint(1)), 2},
		"depth first":                     {errors.Join(fmt.Errorf("%w, %w", plain, hint(3)), hint(1)), 3},
		"zero is none":                    {hint(0), 0},
		"negative is none":                {hint(-time.Second), 0},
		"zero above does not hide":        {wrapping{hint(0), hint(4)}, 4},
		"zero beside does not hide":       {errors.Join(hint(0), hint(-1), hint(5)), 5},
		"the outer one wins":              {wrapping{hint(6), hint(7)}, 6},
		"nil inside a wrapper":            {wrapping{hint(0), nil}, 0},
		"a rejection with no hint of its": {fmt.Errorf("mine: %w", resilience.ErrRejected), 0},
	} {
		got, ok := resilience.RetryAfter(c.err)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.want > 0, ok, name)
	}
}

func TestContextErrorMatchesTheErrorAndTheCause(t *testing.T) {
	t.Parallel()
	assert.NoError(t, resilience.ContextError(context.Background()))

	plain, cancel := context.WithCancel(context.Background())
	assert.NoError(t, resilience.ContextError(plain))
	cancel()
	assert.Equal(t, context.Canceled, resilience.ContextError(plain), "without a cause, nothing is wrapped")

	mine := errors.New("the user closed the tab")
	caused, cancelCause := context.WithCancelCause(context.Background())
	cancelCause(mine)
	err := resilience.ContextError(caused)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, mine)
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.EqualError(t, err, "context canceled: the user closed the tab")

	late, cancelLate := context.WithDeadlineCause(context.Background(), time.Unix(0, 0), mine)
	defer cancelLate()
	err = resilience.ContextError(late)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorIs(t, err, mine)
}

// A context type of a user's own may be done while its parent is not.
type doneContext struct{ context.Context }

func (doneContext) Err() error { return context.Canceled }

func TestContextErrorOfAForeignContext(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := resilience.ContextError(doneContext{parent})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, "context canceled", err.Error())
}
