// Package resilience composes policies around a call to something that can
// fail: retry what the other side may answer differently next time, limit the
// rate so that the host survives, break the circuit so that a dead host is left
// alone.
//
// A [Call] is any func(ctx) (T, error). A [Policy] decides whether, when and how
// often it runs, and never sees T. [Wrap] puts policies around a call, the first
// one outermost:
//
//	ask := resilience.Wrap(client.Ask, circuit, allowance.For(tenant), again)
//
// is circuit(allowance(again(client.Ask))). The policies live in packages of
// their own: retry, ratelimit, breaker and timeout. Anybody's type with one Do
// method is one too.
//
// # Zero values and concurrency
//
// Everything returned by this package may be used by any number of goroutines
// at once, provided that the policies and the call may be. Nothing here starts a
// goroutine, reads a clock or holds a lock while a call runs.
//
// # Errors
//
// An error of the call or of a policy comes back as it is, and with it the zero
// T. [ErrRejected] is matched by every refusal to make the call at all,
// [RetryAfter] finds how long the refusing side asks to be left alone, and
// [ContextError] is what a policy returns for a context that is done.
// A nil call or a nil policy is a mistake in the program: it panics when the
// chain is built, naming the position, and not at the first call.
package resilience

import (
	"context"
	"fmt"
	"reflect"
)

// A Call is something that can fail and may be made again: a request to an
// API, a database, a queue.
type Call[T any] func(ctx context.Context) (T, error)

// A Decorator gives a call some behaviour around it. [With] makes one of
// policies; one that must see the value (a fallback, a cache) is written by hand
// and joined to others with [Chain].
type Decorator[T any] = func(Call[T]) Call[T]

// A Policy decides whether, when and how often an operation runs, without seeing
// what it returns.
//
// Do runs op any number of times, one after the other, and never after it has
// returned. It returns nil for success, op's error as it is or wrapped, or an
// error of its own; a refusal to run op at all matches [ErrRejected]. The context
// it gives to op is the one it got, or one derived from it. If op panics or calls
// runtime.Goexit, Do lets that pass.
//
// A Policy must be safe for concurrent use, and must not keep op. One that returns while op
// is running hurts nobody but its own caller, as chains are watched for that; a type can give
// its word instead, see [Sequential]. One that runs op another time after it has returned may
// run another caller's.
type Policy interface {
	Do(ctx context.Context, op func(context.Context) error) error
}

// With returns the policies as a decorator, the first one outermost: With(a, b)
// applied to f is a(b(f)). The chain is compiled once, here; applying the
// decorator to a call costs one small allocation, so a fresh closure for each
// invocation, which is how a call gets its arguments, is the intended use:
//
//	guard := resilience.With[Answer](circuit, allowance, again) // once
//	...
//	answer, err := guard(func(ctx context.Context) (Answer, error) {
//		return client.Ask(ctx, question)
//	})(ctx)
//
// Without policies the decorator returns the call itself. With panics if a policy
// is nil, the decorator if the call is.
func With[T any](policies ...Policy) Decorator[T] {
	list := flatten("With", policies)
	if len(list) == 0 {
		return func(call Call[T]) Call[T] {
			mustCall("With", call)
			return call
		}
	}
	c := newChain[T](list)
	return func(call Call[T]) Call[T] {
		mustCall("With", call)
		return func(ctx context.Context) (T, error) { return c.run(ctx, call) }
	}
}

// Wrap puts policies around one call, the first one outermost: Wrap(f, a, b) is
// a(b(f)). T is inferred from the call. Calling the result allocates nothing
// beyond what the call and the policies do themselves. Without policies it is the
// call itself. Wrap panics if the call or a policy is nil.
func Wrap[T any](call Call[T], policies ...Policy) Call[T] {
	mustCall("Wrap", call)
	list := flatten("Wrap", policies)
	if len(list) == 0 {
		return call
	}
	c := newChain[T](list)
	return func(ctx context.Context) (T, error) { return c.run(ctx, call) }
}

// Join returns the policies as one, for calls of any type, the first one
// outermost. Joined policies that are handed to [With], [Wrap] or Join again are
// laid out flat and cost no layer of their own. Join of one policy is that
// policy; Join of none runs the operation as it is. It panics if a policy is nil.
func Join(policies ...Policy) Policy {
	list := flatten("Join", policies)
	if len(list) == 1 {
		return list[0]
	}
	return newJoined(list)
}

// Chain returns decorators as one, the first one outermost: Chain(a, b)(f) is
// a(b(f)). It is for decorators that see T; policies need no Chain. It panics if
// a decorator is nil, and the result panics if the call is nil or if a decorator
// returns a nil call.
func Chain[T any](decorators ...Decorator[T]) Decorator[T] {
	for i, d := range decorators {
		if d == nil {
			panic(fmt.Sprintf("resilience: Chain: decorator %d of %d is nil", i+1, len(decorators)))
		}
	}
	list := append([]Decorator[T](nil), decorators...)
	return func(call Call[T]) Call[T] {
		mustCall("Chain", call)
		for i := len(list) - 1; i >= 0; i-- {
			if call = list[i](call); call == nil {
				panic(fmt.Sprintf("resilience: Chain: decorator %d of %d returned a nil call", i+1, len(list)))
			}
		}
		return call
	}
}

// flatten checks the policies, copies them and replaces joined ones by their parts.
func flatten(where string, policies []Policy) []Policy {
	list := make([]Policy, 0, len(policies))
	for i, p := range policies {
		if isNil(p) {
			panic(fmt.Sprintf("resilience: %s: policy %d of %d is nil", where, i+1, len(policies)))
		}
		if j, ok := p.(*joined); ok {
			list = append(list, j.policies...)
			continue
		}
		list = append(list, p)
	}
	return list
}

// isNil also finds a nil pointer inside a non-nil interface: what is left of a
// policy whose constructor's error nobody looked at.
func isNil(p Policy) bool {
	if p == nil {
		return true
	}
	switch v := reflect.ValueOf(p); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}

func mustCall[T any](where string, call Call[T]) {
	if call == nil {
		panic("resilience: " + where + ": call is nil")
	}
}
