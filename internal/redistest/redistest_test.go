package redistest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/internal/redistest"
)

func TestServerIsKilledRestartedEmptyAndPaused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("SET", "k", "v")
	require.Equal(t, "v", s.Do("GET", "k"))
	require.EqualValues(t, 1, s.Calls("set"))
	s.Pause()
	s.Resume()
	s.Kill()
	s.Restart()
	assert.Nil(t, s.Do("GET", "k"))
	assert.Positive(t, s.Stats("total_connections_received"))
	s.Stop()
}

func TestSentinelsKnowTheirMaster(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	assert.Same(t, g.Servers[0], g.Master())
	assert.Len(t, g.Addrs(), 3)
}

func TestClusterServesAndMovesASlot(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t)
	slot := c.Slot("k")
	owner := c.Owner(slot)
	c.Servers[owner].Do("SET", "k", "v")
	next := (owner + 1) % 3
	c.Move(slot, owner, next)
	assert.Equal(t, "v", c.Servers[next].Do("GET", "k"))
	assert.Equal(t, next, c.Owner(slot))
}
