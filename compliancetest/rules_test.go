package compliancetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/compliancetest"
)

// A defect is one way to break one rule.
type defect struct {
	rule    string
	name    string
	put     func(b *broken)
	virtual bool // shows in virtual time only
}

// The errors and the lack of a context that defects have.
var (
	errOops = errors.New("oops")
	ctx     = context.Background()
)

// late does what it is told after the context has been found done as well.
func late(c context.Context, act func() error) error {
	if err := act(); err != nil {
		return err
	}
	return context.Cause(c)
}

func lower(key string) string { return strings.ToLower(key) }

// tag is what a client makes of a key that is taken for a hash tag.
func tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if in, _, ok := strings.Cut(rest, "}"); ok && in != "" {
			return in
		}
	}
	return key
}

func cString(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s }

// pause is between two steps that should be one. It is no multiple of the steps that
// rules take, so that these fall into it.
func pause() { time.Sleep(1500 * time.Nanosecond) }

var defects = func() (all []defect) {
	for _, g := range []struct {
		name string
		list []defect
	}{
		{"KeyValue", keyValueDefects},
		{"HitWindow", hitWindowDefects},
		{"Cache", cacheDefects},
		{"CompareAndSwapper", compareAndSwapperDefects},
		{"MultiGetter", multiGetterDefects},
		{"TimeLimiter", timeLimiterDefects},
		{"Acquirer", acquirerDefects},
		{"Close", closeDefects},
	} {
		for _, d := range g.list {
			d.rule = g.name + "/" + d.rule
			all = append(all, d)
		}
	}
	return all
}()

// suiteOf is the suite for caches with a defect, or with none.
func suiteOf(put func(*broken), bubble bool) compliancetest.Suite {
	h := compliancetest.Harness[*broken]{
		New: func() (*broken, error) {
			b := &broken{able: newAble()}
			if put != nil {
				put(b)
			}
			return b, nil
		},
		Close:  (*broken).Close,
		Bubble: bubble,
	}
	if !bubble {
		h.Slack = 100 * time.Millisecond
	}
	return compliancetest.Cache(h)
}

// Each defect is caught by the rule that it breaks: in virtual time, and on what might
// be a server.
func TestEveryDefectIsCaughtByItsRule(t *testing.T) {
	for _, d := range defects {
		for _, bubble := range []bool{true, false} {
			if d.virtual && !bubble {
				continue
			}
			t.Run(strings.ReplaceAll(d.rule, "/", ": ")+": "+d.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					require.NoError(t, suiteOf(nil, bubble).Only(d.rule).Check(), "without the defect")
					broken, ok := errors.AsType[*compliancetest.RuleError](suiteOf(d.put, bubble).Only(d.rule).Check())
					require.True(t, ok, "the defect is not caught")
					assert.Equal(t, d.rule, broken.Rule)
					assert.NotErrorIs(t, broken, errTTL)
				})
			})
		}
	}
}

// A rule that no defect breaks may be one that nothing can break.
func TestEveryRuleIsBrokenByADefect(t *testing.T) {
	rules := map[string]bool{}
	for _, r := range suiteOf(nil, true).Rules() {
		assert.False(t, rules[r.Name], "%s is the name of two rules", r.Name)
		assert.NotEmpty(t, r.Why, r.Name)
		rules[r.Name] = true
		assert.True(t, slices.ContainsFunc(defects, func(d defect) bool { return d.rule == r.Name }), "no defect breaks %s", r.Name)
	}
	for _, d := range defects {
		assert.True(t, rules[d.rule], "there is no rule %s to catch %q", d.rule, d.name)
	}
}

// idle answers everything at once with nothing, which a suite must survive.
type idle struct{}

func (idle) Get(context.Context, string) (string, bool, error)                           { return "", false, nil }
func (idle) Set(context.Context, string, string, time.Duration) error                    { return nil }
func (idle) Increment(context.Context, string, time.Duration) (int64, error)             { return 0, nil }
func (idle) Delete(context.Context, string) error                                        { return nil }
func (idle) RecordHit(context.Context, string, time.Time, time.Duration) error           { return nil }
func (idle) CountHits(context.Context, string, time.Time) (int, error)                   { return 0, nil }
func (idle) OldestHit(context.Context, string, time.Time) (t time.Time, _ bool, _ error) { return }
func (idle) CompareAndSwap(context.Context, string, cache.Entry, cache.Entry, time.Duration) (bool, error) {
	return false, nil
}
func (idle) GetMany(context.Context, []string, []cache.Entry) error                  { return nil }
func (idle) Acquire(context.Context, string, cache.Request) (g cache.Grant, _ error) { return }
func (idle) TimeLimit() (time.Duration, bool)                                        { return 0, true }
func (idle) GiveBack(context.Context, string, cache.Slot) error                      { return nil }
func (idle) Used(context.Context, string, time.Duration) (int64, error)              { return 0, nil }

func TestACacheThatDoesNothingBreaksRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		suite := compliancetest.Cache(compliancetest.Harness[idle]{
			New:    func() (idle, error) { return idle{}, nil },
			Close:  func(idle) error { return nil },
			Bubble: true,
		})
		var kept []string
		for _, r := range suite.Rules() {
			if suite.Only(r.Name).Check() == nil {
				kept = append(kept, r.Name)
			}
		}
		assert.Equal(t, []string{
			"KeyValue/absent-is-an-answer",
			"KeyValue/delete-of-nothing-is-no-error",
			"HitWindow/no-hits-is-an-answer",
		}, kept, "these ask for nothing")
	})
}
