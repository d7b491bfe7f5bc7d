package compliancetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/compliancetest"
)

// What the test of a cache looks like. This one lives in the process; for one on a
// server, give a Slack instead of Bubble.
func ExampleCache() {
	TestCompliance := func(t *testing.T) {
		compliancetest.Cache(compliancetest.Harness[*memory.Cache]{
			New:    func() (*memory.Cache, error) { return memory.New(), nil },
			Close:  (*memory.Cache).Close,
			Bubble: true,
		}).Run(t)
	}
	_ = TestCompliance
}

// forgetful keeps nothing.
type forgetful struct{}

func (forgetful) Get(context.Context, string) (string, bool, error)               { return "", false, nil }
func (forgetful) Set(context.Context, string, string, time.Duration) error        { return nil }
func (forgetful) Increment(context.Context, string, time.Duration) (int64, error) { return 1, nil }
func (forgetful) Delete(context.Context, string) error                            { return nil }

func ExampleKeyValue() {
	suite := compliancetest.KeyValue(compliancetest.Harness[forgetful]{
		New:     func() (forgetful, error) { return forgetful{}, nil },
		Advance: func(time.Duration) {}, // whatever the clock says, there is nothing
	})
	broken, _ := errors.AsType[*compliancetest.RuleError](suite.Check())
	fmt.Println(broken.Rule)
	fmt.Println(broken.Why)
	// Output:
	// KeyValue/zero-value-is-present
	// a stored "" or "0" that reads as absence is a state that is lost
}

func ExampleSuite_Rules() {
	suite := compliancetest.KeyValue(compliancetest.Harness[forgetful]{
		New: func() (forgetful, error) { return forgetful{}, nil },
	})
	for _, r := range suite.Rules()[:2] {
		fmt.Printf("%s, because %s\n", r.Name, r.Why)
	}
	// Output:
	// KeyValue/absent-is-an-answer, because a circuit without a stored state is a closed one; an error here would be taken for a broken store
	// KeyValue/zero-value-is-present, because a stored "" or "0" that reads as absence is a state that is lost
}
