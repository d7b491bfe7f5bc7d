package compliancetest_test

import (
	"testing"

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
