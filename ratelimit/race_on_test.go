//go:build race

package ratelimit_test

// raceEnabled says that the race detector is on: it allocates, and is slow.
const raceEnabled = true
