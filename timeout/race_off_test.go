//go:build !race

package timeout_test

const raceEnabled = false
