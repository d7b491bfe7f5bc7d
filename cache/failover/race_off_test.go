//go:build !race

package failover_test

// raceEnabled tells that allocations and memory are not what they are otherwise.
const raceEnabled = false
