package bench

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/internal/redistest"
)

// BenchmarkContest runs every entrant of every contest by itself. They take turns in
// cmd/compare, whose ratios are to be trusted more.
func BenchmarkContest(b *testing.B) {
	for _, c := range Contests() {
		b.Run(c.Name, func(b *testing.B) {
			var server *Server
			if c.Redis {
				server = redistest.Start(b)
			}
			for _, e := range c.Entrants {
				b.Run(e.Name, func(b *testing.B) {
					work := e.Make(b, server)
					b.Run("serial", func(b *testing.B) {
						b.ReportAllocs()
						work(b.N)
					})
					b.Run("parallel", func(b *testing.B) {
						b.ReportAllocs()
						callers := c.callers()
						batch(work, callers, (b.N+callers-1)/callers)
					})
				})
			}
		})
	}
}

// A comparison of those who do not do the same is worth nothing.
func TestEveryEntrantDoesTheWork(t *testing.T) {
	for _, c := range Contests() {
		t.Run(c.Name, func(t *testing.T) {
			var server *Server
			if c.Redis {
				server = redistest.Start(t)
			}
			for _, e := range c.Entrants {
				work := e.Make(t, server)
				assert.Equal(t, 300, work(300), e.Name)
			}
			assert.True(t, c.Entrants[0].Ours(), "what the goal is about comes first")
			assert.NotPanics(t, func() { c.rival(make([]Result, len(c.Entrants))) }, "there is somebody to beat")
		})
	}
}

// BenchmarkGrowth shows how the cost of a call grows with what it should not grow with.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range Growths() {
		b.Run(g.Name, func(b *testing.B) {
			var server *Server
			if g.Redis {
				server = redistest.Start(b)
			}
			for _, size := range g.Sizes {
				work := g.Make(b, server, size)
				b.Run(g.With+"="+strconv.Itoa(size), func(b *testing.B) { work(b.N) })
			}
		})
	}
}

func TestGrowthsMeasureWhatTheySay(t *testing.T) {
	for _, g := range Growths() {
		t.Run(g.Name, func(t *testing.T) {
			var server *Server
			if g.Redis {
				server = redistest.Start(t)
			}
			for _, size := range g.Sizes[:2] {
				require.Equal(t, 50, g.Make(t, server, size)(50), size)
			}
		})
	}
}
