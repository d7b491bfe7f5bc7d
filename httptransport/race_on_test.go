//go:build race

package httptransport_test

// raceEnabled tells that allocations and memory are not what they are otherwise.
const raceEnabled = true
