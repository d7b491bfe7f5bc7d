package compliancetest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/compliancetest"
)

func TestMemoryPasses(t *testing.T) {
	compliancetest.Cache(compliancetest.Harness[*memory.Cache]{
		New:    func() (*memory.Cache, error) { return memory.New(), nil },
		Close:  (*memory.Cache).Close,
		Bubble: true,
	}).Run(t)
}

func TestPlainCachePasses(t *testing.T) {
	compliancetest.Cache(compliancetest.Harness[*plain]{
		New:    func() (*plain, error) { return newPlain(), nil },
		Close:  (*plain).Close,
		Bubble: true,
	}).Run(t)
}

func TestCacheWithCapabilitiesPasses(t *testing.T) {
	h := compliancetest.Harness[*able]{
		New:    func() (*able, error) { return newAble(), nil },
		Close:  func(a *able) error { return a.Close() },
		Bubble: true,
	}
	compliancetest.Cache(h).Run(t)
	synctest.Test(t, func(t *testing.T) { assert.NoError(t, compliancetest.Cache(h).Check()) })
}

// Half a cache is a cache for whoever needs that half.
func TestHalvesPass(t *testing.T) {
	type values struct{ cache.KeyValue }
	compliancetest.KeyValue(compliancetest.Harness[values]{
		New:    func() (values, error) { return values{newPlain()}, nil },
		Bubble: true,
	}).Run(t)
	type hits struct{ cache.HitWindow }
	compliancetest.HitWindow(compliancetest.Harness[hits]{
		New:    func() (hits, error) { return hits{newPlain()}, nil },
		Bubble: true,
	}).Run(t)
	type limiter struct {
		cache.HitWindow
		cache.Acquirer
	}
	compliancetest.HitWindow(compliancetest.Harness[limiter]{
		New:    func() (limiter, error) { a := newAble(); return limiter{a, a}, nil },
		Bubble: true,
	}).Run(t)
}

// A server takes its time over every call, and a sleep lasts longer than it was asked
// to. Within the slack, that breaks no rule.
func TestServerWithinItsSlackPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slack = 100 * time.Millisecond
		require.NoError(t, compliancetest.Cache(compliancetest.Harness[*broken]{
			New: func() (*broken, error) {
				server := &broken{able: newAble()}
				server.before = func() { time.Sleep(slack / 50) }
				return server, nil
			},
			Close:   (*broken).Close,
			Advance: func(d time.Duration) { time.Sleep(d + slack/2) },
			Slack:   slack,
		}).Check())
	})
}

func TestAHarnessThatCannotWorkIsAMistake(t *testing.T) {
	assert.PanicsWithValue(t, "compliancetest: Harness.New is nil", func() {
		compliancetest.Cache(compliancetest.Harness[cache.Cache]{})
	})
	assert.PanicsWithValue(t, "compliancetest: Harness.Slack is -1s, want zero or more", func() {
		compliancetest.Cache(compliancetest.Harness[cache.Cache]{
			New:   func() (cache.Cache, error) { return newPlain(), nil },
			Slack: -time.Second,
		})
	})
}

func TestACacheThatCannotBeMadeBreaksEveryRule(t *testing.T) {
	full := errors.New("disk full")
	suite := compliancetest.KeyValue(compliancetest.Harness[*plain]{New: func() (*plain, error) { return nil, full }})
	errs := suite.Check().(interface{ Unwrap() []error }).Unwrap()
	assert.Len(t, errs, len(suite.Rules()))
	for _, err := range errs {
		assert.ErrorIs(t, err, full)
	}
}
