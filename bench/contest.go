package bench

import (
	"slices"
	"strings"
	"testing"
)

// A Contest is one piece of work, done by several.
type Contest struct {
	Name     string
	Notes    string // what differs between those who do it
	Goal     Goal
	Parallel int  // callers at the same time in the parallel half; zero is GOMAXPROCS
	Redis    bool // whether it needs a server
	Entrants []Entrant
}

// An Entrant does the work of a contest in one way. Its name begins with "ours" if it is.
type Entrant struct {
	Name string
	// Make prepares the work. What it opens is closed by the cleanup of tb.
	Make func(tb testing.TB, server *Server) Work
}

// Work does one thing n times, and returns how many times the result was what it should
// be. Any number of goroutines may call it at once.
type Work func(n int) (right int)

// A Goal says what the first entrant, which is ours, is measured against. The zero Goal is
// none: it is compared with the fastest, and not judged.
type Goal struct {
	Text     string
	Rivals   []string // the fastest of these; none stands for everybody who is not ours
	Ratio    float64  // at most this much of the rival's time; zero says nothing about it
	Plus     float64  // and so many ns more
	Allocs   float64  // at most
	Parallel float64  // at most this much of the rival's time in parallel; zero is Ratio
	Trips    float64  // at most
}

// Ours reports whether the entrant is the toolkit, and no other's.
func (e Entrant) Ours() bool { return strings.HasPrefix(e.Name, "ours") }

// Contests returns all of them.
func Contests() []Contest {
	return slices.Concat(breakerContests(), limiterContests(), retryContests(), chainContests(), redisContests())
}
