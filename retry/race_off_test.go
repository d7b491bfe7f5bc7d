//go:build !race

package retry_test

// raceEnabled: the race detector allocates, so promises about allocations are
// not checked under it.
const raceEnabled = false
