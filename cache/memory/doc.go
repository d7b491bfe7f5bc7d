// Package memory is the default [cache.Cache]: in the memory of the process, with
// nothing to run and nothing to configure. It has every optional capability of the
// port, and is meant for production wherever one process is all there is, or where each
// may have an allowance and a circuit of its own.
//
// # Exactness
//
// Acquire reads the clock, decides and records under one lock, so that however many
// goroutines ask, no span of one window ever holds more than its limit. Keys are
// spread over shards with a lock each; values of one group share a shard, which is how
// GetMany reads them at one instant.
//
// # Time
//
// New reads the wall clock, once. From then on there is only the monotonic clock,
// read once per call: a step of the wall clock changes nothing. TTLs are kept to the
// nanosecond. The slots of Acquire are in whole microseconds, with the finer part of the
// present cut off; since every wait is in whole microseconds too, who sleeps exactly the
// wait of an answer finds the slot, and never comes before it. In a bubble of
// testing/synctest time is the bubble's, if New was called there. Whether any passes
// while the machine is suspended is the operating system's choice.
//
// # Memory
//
// Expiry is lazy and no goroutine is started. What has expired is not seen; what nobody
// asks for again is collected by the traffic of others: every write reclaims up to two
// expired keys of its own shard, and every eighth a few of another one's. A write makes
// no more than one key, so what is held stays near what is alive. A key that is alive is
// never forgotten, whatever the pressure. A series lives until two windows after its
// last slot, and discards what has left the window when it is in the way, or with the
// first call a window later. What a burst made large, a map or the ring of a series, is made
// small again some time after it.
//
// On a 64-bit machine a series of up to seven hits costs about 250 bytes and a value about
// 120, the bytes of a short key included. A further hit costs 8 bytes, or 16 in a series
// that ever had a weight other than 1, and up to twice that right after its ring has grown.
// BenchmarkMemory measures these. Keys and values are copied, so that a small part of
// something large does not keep all of it alive.
//
// # Cost
//
// A call costs the same whatever the limit, the window and the number of hits in it,
// but for a logarithm of how many hits left the window since the last call, or, with
// weights or where callers wait, of how many are in it. Two things
// are exceptions. A ring that grows and a map that is made small are copied, which is
// little when spread over the calls that led there. And giving back a slot that is not the
// last, or recording a hit out of order, moves those behind it in memory. In the steady
// state Acquire, GiveBack of a last slot, Used, Get, GetMany, CountHits and OldestHit
// allocate nothing.
//
// # Errors
//
// After Close every method returns [cache.ErrClosed]. Arguments out of range are a
// [cache.ArgumentError], and Increment of what is no integer or the largest one is a
// [cache.CorruptError]. There is no [cache.UnavailableError], since nothing can be out
// of reach.
//
// # Roads not taken
//
// A limit on the number of keys, with eviction, would forget live ones, and a limiter
// that forgets admits too many. A background sweeper would need a Close that nobody
// may forget, and would hold up a bubble. An approximation of the window by two
// counters is a little smaller and admits up to twice the limit.
package memory
