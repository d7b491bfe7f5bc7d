package property

import (
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// check is rapid.Check in virtual time: each case has a bubble of its own, and
// rapid, which limits the time of all cases together, stays outside.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		var outcome any // of the case: rapid panics to fail and to skip
		synctest.Test(t, func(*testing.T) {
			defer func() { outcome = recover() }()
			property(rt)
		})
		switch {
		case outcome == nil:
		case fmt.Sprintf("%T", outcome) == "rapid.invalidData":
			rt.SkipNow() // from another line than a failure, which is how rapid tells them apart
		default:
			panic(outcome)
		}
	})
}
