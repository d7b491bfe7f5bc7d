// Package property holds tests of the toolkit against naive models: whatever is
// asked, in whatever order and with whatever time between, the library answers as a
// model does that is too simple to be wrong and too slow to be used. It is a module
// of its own, so that the toolkit's users do not carry what these tests need.
package property
