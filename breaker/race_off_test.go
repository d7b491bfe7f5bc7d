//go:build !race

package breaker_test

// raceEnabled: the race detector allocates, so promises about allocations are
// not checked under it.
const raceEnabled = false
