package compliancetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A group over an int that the rules take to be even, and small.
func numbers(open func() (int, func() error, error)) Suite {
	return Suite{groups: []group{newGroup("Number", open, []rule[int]{
		{name: "even", why: "halves are whole", check: func(n int) {
			if n%2 != 0 {
				failf("%d is odd", n)
			}
		}},
		{name: "small", why: "it must fit", check: func(n int) {
			if n > 10 {
				failf("%d is above 10", n)
			}
		}},
	})}}
}

func number(n int) func() (int, func() error, error) {
	return func() (int, func() error, error) { return n, func() error { return nil }, nil }
}

func TestCheckJoinsAnErrorForEachBrokenRule(t *testing.T) {
	require.NoError(t, numbers(number(4)).Check())

	err := numbers(number(13)).Check()
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, joined.Unwrap(), 2)

	broken, ok := errors.AsType[*RuleError](err)
	require.True(t, ok)
	assert.Equal(t, "Number/even", broken.Rule)
	assert.Equal(t, "halves are whole", broken.Why)
	assert.EqualError(t, broken.Err, "13 is odd")
	assert.EqualError(t, broken, "compliancetest: Number/even: 13 is odd\n\tit is a rule because halves are whole")
}

func TestCheckLeavesOutWhatIsAbsent(t *testing.T) {
	none := numbers(func() (int, func() error, error) { return 0, nil, absent("no number") })
	assert.NoError(t, none.Check())
	assert.Len(t, none.Rules(), 2, "they are rules all the same")
}

func TestWhatCannotBeOpenedOrDisposedOfBreaksTheRule(t *testing.T) {
	cause := errors.New("disk full")
	unopened := numbers(func() (int, func() error, error) { return 0, nil, cause })
	assert.ErrorIs(t, unopened.Check(), cause)

	kept := numbers(func() (int, func() error, error) { return 2, func() error { return cause }, nil })
	assert.ErrorIs(t, kept.Check(), cause)
}

func TestAPanicOfTheImplementationPasses(t *testing.T) {
	s := Suite{groups: []group{newGroup("Number", number(1), []rule[int]{
		{name: "panics", check: func(int) { panic("theirs") }},
	})}}
	assert.PanicsWithValue(t, "theirs", func() { _ = s.Check() })
}

func TestRunHasASubtestForEachRule(t *testing.T) {
	for _, bubble := range []bool{false, true} {
		var ran []string
		s := Suite{bubble: bubble, groups: []group{newGroup("Number", number(2), []rule[int]{
			{name: "one", check: func(int) { ran = append(ran, "one") }},
			{name: "two", check: func(int) { ran = append(ran, "two") }},
		})}}
		s.Run(t)
		assert.Equal(t, []string{"one", "two"}, ran)
	}
}
