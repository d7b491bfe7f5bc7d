// Package compliancetest holds the rules that an implementation of one of the
// toolkit's ports must keep, as tests that its author runs:
//
//	func TestCompliance(t *testing.T) {
//		compliancetest.Cache(compliancetest.Harness[*Cache]{
//			New:    func() (*Cache, error) { return New(), nil },
//			Bubble: true, // or Slack, for a server
//		}).Run(t)
//	}
//
// A [Suite] is the rules and what they are tried on. [Cache] has those of package
// cache, [KeyValue] and [HitWindow] those for half of one, and [LLM] those of package
// provider. Each rule is a subtest, with a sentence that says why it is a rule: who
// relies on it, and what goes wrong without.
//
// The optional capabilities of a cache ([cache.Acquirer], [cache.CompareAndSwapper],
// [cache.MultiGetter], [cache.TimeLimiter]) are found by type assertion. The ones there are
// must be right, and the ones there are not are skipped by name, so that a method with a
// misspelt signature does not go unnoticed.
//
// Rules speak of what a caller can see. That a cache leaks no memory, that a call to
// a server that hangs ends in time, what happens when a connection breaks: these its
// author has to test, since the port has no way to bring them about.
//
// # Time
//
// Rules about time let it pass, in virtual time where [Harness].Bubble allows, and
// otherwise for real: TTLs are tens of milliseconds, so that a store which cuts them to
// whole seconds is found out, and all rules for a cache together sleep for some eight seconds
// with a slack of 100 ms. No rule fails because a machine is slow within that slack.
//
// # Errors
//
// [Suite.Check] returns, and [Suite.Run] reports, a [RuleError] for each rule that is
// broken. A harness without what it requires is a mistake in the test, and panics.
//
// # Zero values and concurrency
//
// The zero Suite has no rules. The zero [Harness] lacks a New. A Suite may be used by
// several goroutines at once if the functions of its harness may be.
//
// # Roads not taken
//
// A harness without a type parameter would have each test convert a cache back to its own
// type, in Close for instance. Rules are not exported one by one: an implementation that keeps some of them is not
// one. For working on a single rule there is go test -run.
package compliancetest
