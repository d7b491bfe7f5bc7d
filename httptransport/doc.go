// Package httptransport puts policies around an http.Client, and so around any SDK
// that lets its user choose one.
//
//	client := &http.Client{
//		Transport: httptransport.New(nil, httptransport.Config{}, circuits, allowance, again, each),
//	}
//
// sends each request through
// circuits(allowance(again(each(http.DefaultTransport)))). The SDK is not changed,
// and its own retries should be switched off: attempts within attempts multiply.
//
// # Inside the chain
//
// To the policies, a response that is a failure, by [Config.Failed], is a
// [*StatusError], and what the base returns instead of a response a
// [*ConnectionError]. [Retryable] is a predicate over these for a retry, [Classify]
// a classifier for a breaker, and [StatusOf] what to make others of. [RequestFrom]
// finds the request; [Host], [ByRequest] and [PerHost] give requests a limiter's
// key and cost, and each host a circuit of its own.
//
// The Wait of a status error, its RetryAfter, is what the first of these says that
// can be understood: Retry-After-Ms; Retry-After, in seconds or as a date of any of
// the three forms of RFC 9110; and X-RateLimit-Reset with its variants for single
// allowances (-Requests, -Tokens), as a duration ("6m0s"), as seconds, or as
// seconds or milliseconds since 1970. The latter are in every response, so they
// count only where the X-RateLimit-Remaining of the same ending is 0 or, with a
// 429, missing. An instant is measured by the response's own Date, if it has one,
// so that the clocks need not agree. Whatever is garbage, negative or past is no
// hint, and what is too long is for the retry to refuse.
//
// # Outside the chain
//
// What an http.Client may expect of its transport holds. A status is never an
// error: when the policies give up because of one, the last response comes back,
// open and unread. That is so when the attempts have run out, when there is no time
// for another, when the hint is longer than is honoured, and also when a limiter or
// a circuit refuses a later attempt: the host's own answer tells the caller more
// than our reason not to ask again, which hooks have seen. A request that is
// refused before its first attempt gets the refusal as its error; one whose context
// has ended gets that.
//
// Redirects are followed by the client, so each request of a chain of redirects
// goes through the policies by itself.
//
// # What is sent again
//
// A request is sent again only if that means no more than sending it once, by
// [Config.Repeatable], and, with a body, only if GetBody gives it again; NewRequest
// sees to that for bodies in memory. Of any other request the first failure comes
// in a [retry.ExhaustedError], which is final to every retry of that package,
// whatever its predicate. A policy of another kind that tries again all the same is
// refused. Each attempt sends a clone. [http.Transport] itself resends a repeatable
// request, once, if a connection that it reused turns out to be dead; that is
// within one attempt.
//
// # Bodies and connections
//
// The response of a failed attempt is held, with its connection, until the next
// attempt begins, because it may be the last. Then up to 64 KiB of it are read, for
// no longer than a second or than that attempt has, and it is closed: its connection
// can be used again by the next attempt, unless more than that is left. With
// [http.Transport.MaxConnsPerHost], a call waiting to try again counts as one
// connection.
//
// A time limit in the chain, by package timeout for instance, covers an attempt up
// to the response's headers, or the body as well with [Config.LimitBody]. A body is
// never cut off because its attempt is over: its context is the request's own, and
// is released when the body is at its end or closed. The caller has to close it, as
// always.
//
// # Errors
//
// RoundTrip returns the error of the chain as it is or, if the policies had nothing
// to add, the very error of the base. If a timeout is inside,
// [net/url.Error.Timeout] finds it. A policy of this package that is used outside a
// Transport, and an attempt that cannot be made for lack of a body, give an error
// that matches [resilience.ErrRejected]. If the caller's context has ended, the error
// matches that context's error and its cause.
//
// # Zero values and concurrency
//
// The zero [Config] is usable. The zero [Transport] is not; [New] makes one. It may
// be used by any number of goroutines at once, provided that the base, the policies
// and the functions of the Config may be, and holds no lock while it calls any of
// them.
//
// # Roads not taken
//
// A failed response is not read into memory, to give its connection back before the
// wait: the caller of the last one would no longer get a stream, and a host that
// stalls in the middle of its apology would hold up the attempt.
//
// 4xx statuses other than 408 and 429 are no failures by default. A circuit without
// a classifier would open when somebody asks for what is not there.
package httptransport
