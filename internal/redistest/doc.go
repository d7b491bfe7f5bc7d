// Package redistest starts private Redis servers for tests: one server, a master with
// replica and sentinels, a cluster. Each has a directory and free ports of its own and
// is stopped, by its process id, at the end of the test, or when the test's process
// dies first.
//
// A server needs the redis-server binary on the PATH (Debian: apt-get install
// redis-server; macOS: brew install redis). Where there is none, a test that asks for
// one is skipped, and says so; with RESILIENCE_REQUIRE_REDIS=1 in the environment it
// fails instead. Tests that only need some server to talk to use [URL], which takes the
// one that RESILIENCE_TEST_REDIS names, if it is set.
//
// It is support for tests of this module and imports nothing but the standard library.
package redistest
