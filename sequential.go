package resilience

import "reflect"

// Sequential, embedded in a policy's type P as Sequential[P], is the word of its author
// that P keeps the rule of [Policy]: Do runs op one time after the other, and never after
// it has returned.
//
//	type Policy struct {
//		resilience.Sequential[*Policy]
//		...
//	}
//
// Those of packages retry, ratelimit, breaker and timeout give it. A chain of nothing else
// is not watched for the rule, which spares each run two atomic additions. Watched or not, a
// policy that keeps the rule behaves the same; but one that gives its word and breaks it can
// make one caller see another's value, where a watched one that returns too early hurts only
// its own. The word is that of the type that is named, a pointer if that is what chains are
// given: another type that embeds P, and perhaps has a Do of its own, does not give it.
//
// The zero value is all there is, and takes no space unless it is the last field.
type Sequential[P Policy] struct{}

func (Sequential[P]) sequential() reflect.Type { return reflect.TypeFor[P]() }

func allSequential(policies []Policy) bool {
	for _, p := range policies {
		s, ok := p.(interface{ sequential() reflect.Type })
		if !ok || s.sequential() != reflect.TypeOf(p) {
			return false
		}
	}
	return true
}
