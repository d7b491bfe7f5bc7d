package cache

import "time"

// A TimeLimiter promises how long it keeps its caller waiting. It is an optional
// capability of a [KeyValue]; use [TimeLimit] to ask any. Who knows the limit need not
// set one of his own, and with it a timer, for each operation.
//
// A cache that embeds another has the other's promise as its own. If it may take longer,
// it needs a TimeLimit that says so.
type TimeLimiter interface {
	// TimeLimit returns the longest that any one operation takes, whatever its context.
	// Zero is said by a cache that waits for nothing outside this process. If ok is false,
	// nothing is promised, and longest is zero. The answer is always the same, also when
	// the cache is closed.
	TimeLimit() (longest time.Duration, ok bool)
}

// TimeLimit returns what the method of kv returns if it has one. Otherwise, and if that is
// below zero, which is no promise, it returns zero and false.
func TimeLimit(kv KeyValue) (longest time.Duration, ok bool) {
	if l, is := kv.(TimeLimiter); is {
		longest, ok = l.TimeLimit()
	}
	if !ok || longest < 0 {
		return 0, false
	}
	return longest, true
}
