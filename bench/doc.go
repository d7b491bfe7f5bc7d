// Package bench measures the toolkit beside what people would use instead, doing the same
// work in the same run.
//
// A [Contest] is one piece of work; its entrants are ours, those of other modules, and
// what the work costs by hand. They run as ordinary benchmarks,
//
//	go test -bench 'Contest/Breaker'
//
// and, by the command in cmd/compare, in turns: a small batch each, again and again, so
// that a machine that slows down or speeds up does so for everybody. What that command
// found is in docs/performance.md.
//
// What needs a Redis starts one of its own, and is left out where there is no
// redis-server.
package bench
