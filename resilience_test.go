package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
)

// policy is a user's own policy: any function of the right shape.
type policy func(ctx context.Context, op func(context.Context) error) error

func (p policy) Do(ctx context.Context, op func(context.Context) error) error { return p(ctx, op) }

var pass policy = func(ctx context.Context, op func(context.Context) error) error { return op(ctx) }

// trace notes on entry and exit, so that an order can be read.
func trace(log *[]string, name string) resilience.Policy {
	return policy(func(ctx context.Context, op func(context.Context) error) error {
		*log = append(*log, name+"(")
		err := op(ctx)
		*log = append(*log, ")"+name)
		return err
	})
}

func traceDecorator(log *[]string, name string) resilience.Decorator[int] {
	return resilience.With[int](trace(log, name))
}

func TestTheFirstIsTheOutermost(t *testing.T) {
	t.Parallel()
	const want = "a( b( c( f )c )b )a"
	for _, form := range []struct {
		name  string
		build func(log *[]string, f resilience.Call[int]) resilience.Call[int]
	}{
		{"Wrap", func(log *[]string, f resilience.Call[int]) resilience.Call[int] {
			return resilience.Wrap(f, trace(log, "a"), trace(log, "b"), trace(log, "c"))
		}},
		{"With", func(log *[]string, f resilience.Call[int]) resilience.Call[int] {
			return resilience.With[int](trace(log, "a"), trace(log, "b"), trace(log, "c"))(f)
		}},
		{"Join of all", func(log *[]string, f resilience.Call[int]) resilience.Call[int] {
			return resilience.Wrap(f, resilience.Join(trace(log, "a"), trace(log, "b"), trace(log, "c")))
		}},
		{"Join inside Join", func(log *[]string, f resilience.Call[int]) resilience.Call[int] {
			inner := resilience.Join(trace(log, "b"), trace(log, "c"))
			return resilience.Wrap(f, resilience.Join(trace(log, "a"), inner))
		}},
		{"Join run by itself", func(log *[]string, f resilience.Call[int]) resilience.Call[int] {
			j := resilience.Join(trace(log, "a"), trace(log, "b"), trace(log, "c"))
			return func(ctx context.Context) (v int, err error) {
				err = j.Do(ctx, func(ctx context.Context) error { v, err = f(ctx); return err })
				return v, err
			}
		}},
		{"Chain", func(log *[]string, f resilience.Call[int]) resilience.Call[int] {
			return resilience.Chain(traceDecorator(log, "a"), traceDecorator(log, "b"), traceDecorator(log, "c"))(f)
		}},
	} {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			var log []string
			call := form.build(&log, func(context.Context) (int, error) {
				log = append(log, "f")
				return 7, nil
			})
			for range 2 { // the second time with a used frame
				log = log[:0]
				v, err := call(context.Background())
				require.NoError(t, err)
				assert.Equal(t, 7, v)
				assert.Equal(t, want, strings.Join(log, " "))
			}
		})
	}
}

func TestNoTypeArgumentWhereTheCallIsNamed(t *testing.T) {
	t.Parallel()
	ask := resilience.Wrap(client{}.Ask, pass, pass)
	got, err := ask(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "42", got)
}

type client struct{}

func (client) Ask(context.Context) (string, error) { return "42", nil }

func TestWithoutPoliciesTheCallItself(t *testing.T) {
	t.Parallel()
	sentinel := errors.New("sentinel")
	call := func(context.Context) (int, error) { return 5, sentinel } // also its value beside an error
	for name, c := range map[string]resilience.Call[int]{
		"Wrap":  resilience.Wrap(call),
		"With":  resilience.With[int]()(call),
		"Chain": resilience.Chain[int]()(call),
	} {
		v, err := c(context.Background())
		assert.Equal(t, 5, v, name)
		assert.Equal(t, sentinel, err, name)
	}
	assert.Equal(t, sentinel, resilience.Join().Do(context.Background(), func(context.Context) error { return sentinel }))
	v, err := resilience.Wrap(call, resilience.Join())(context.Background())
	assert.Equal(t, 5, v)
	assert.Equal(t, sentinel, err)
}

func TestJoinOfOneIsThatPolicy(t *testing.T) {
	t.Parallel()
	p := &struct{ policy }{pass}
	assert.Same(t, p, resilience.Join(p))
}

func TestAnErrorComesBackAsItIsWithTheZeroValue(t *testing.T) {
	t.Parallel()
	sentinel := errors.New("sentinel")
	v, err := resilience.Wrap(func(context.Context) (string, error) { return "half an answer", sentinel }, pass, pass)(context.Background())
	assert.Equal(t, sentinel, err)
	assert.Empty(t, v)
}

func TestAnErrorsValueDoesNotSurviveAPolicyThatForgivesTheError(t *testing.T) {
	t.Parallel()
	forgive := policy(func(ctx context.Context, op func(context.Context) error) error {
		_ = op(ctx)
		return nil
	})
	v, err := resilience.Wrap(func(context.Context) (string, error) { return "half an answer", errors.New("x") }, forgive)(context.Background())
	require.NoError(t, err)
	assert.Empty(t, v)
}

func TestTheLastRunsValueCounts(t *testing.T) {
	t.Parallel()
	n := 0
	twice := policy(func(ctx context.Context, op func(context.Context) error) error {
		_ = op(ctx)
		return op(ctx)
	})
	v, err := resilience.Wrap(func(context.Context) (int, error) { n++; return n, nil }, twice)(context.Background())
	require.NoError(t, err)
	assert.Equal(t, 2, v)
}

func TestAPolicyThatSucceedsWithoutTheCallGivesTheZeroValue(t *testing.T) {
	t.Parallel()
	skip := policy(func(context.Context, func(context.Context) error) error { return nil })
	call := resilience.Wrap(func(context.Context) (int, error) { return 7, nil }, skip)
	for range 3 {
		v, err := call(context.Background())
		require.NoError(t, err)
		assert.Zero(t, v)
	}
}

func TestTheContextThatAPolicyDerivesReachesTheCall(t *testing.T) {
	t.Parallel()
	type key struct{}
	mark := policy(func(ctx context.Context, op func(context.Context) error) error {
		return op(context.WithValue(ctx, key{}, "marked"))
	})
	v, err := resilience.Wrap(func(ctx context.Context) (any, error) { return ctx.Value(key{}), nil }, pass, mark, pass)(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "marked", v)
}

func TestNilPanicsWhereTheChainIsBuilt(t *testing.T) {
	t.Parallel()
	call := func(context.Context) (int, error) { return 0, nil }
	var forgotten *struct{ policy } // what a constructor returned beside an error nobody read
	for want, build := range map[string]func(){
		"resilience: Wrap: policy 2 of 3 is nil":                  func() { resilience.Wrap(call, pass, nil, pass) },
		"resilience: Wrap: policy 1 of 1 is nil":                  func() { resilience.Wrap[int](call, forgotten) },
		"resilience: With: policy 1 of 2 is nil":                  func() { resilience.With[int](nil, pass) },
		"resilience: Join: policy 3 of 3 is nil":                  func() { resilience.Join(pass, pass, nil) },
		"resilience: Wrap: call is nil":                           func() { resilience.Wrap[int](nil, pass) },
		"resilience: With: call is nil":                           func() { resilience.With[int](pass)(nil) },
		"resilience: Chain: call is nil":                          func() { resilience.Chain(resilience.With[int](pass))(nil) },
		"resilience: Chain: decorator 2 of 2 is nil":              func() { resilience.Chain(resilience.With[int](pass), nil) },
		"resilience: Chain: decorator 1 of 1 returned a nil call": func() { resilience.Chain(func(resilience.Call[int]) resilience.Call[int] { return nil })(call) },
	} {
		assert.PanicsWithValue(t, want, build)
	}
}

func TestAPanicPassesAndTheChainGoesOn(t *testing.T) {
	t.Parallel()
	boom := true
	call := resilience.Wrap(func(context.Context) (int, error) {
		if boom {
			panic("boom")
		}
		return 1, nil
	}, pass, pass)
	for range 3 {
		boom = true
		assert.PanicsWithValue(t, "boom", func() { _, _ = call(context.Background()) })
		boom = false
		v, err := call(context.Background())
		require.NoError(t, err)
		assert.Equal(t, 1, v)
	}
}

func TestAPanicThatAPolicyHasRecoveredIsNoRunGoingOn(t *testing.T) {
	t.Parallel()
	again := policy(func(ctx context.Context, op func(context.Context) error) error {
		if err := op(ctx); err == nil {
			return nil
		}
		return op(ctx)
	})
	recovering := policy(func(ctx context.Context, op func(context.Context) error) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("recovered: %v", p)
			}
		}()
		return op(ctx)
	})
	runs := 0
	call := func(context.Context) (int, error) {
		if runs++; runs == 1 {
			panic("boom")
		}
		return runs, nil
	}
	for name, call := range map[string]resilience.Call[int]{
		"flat": resilience.Wrap(call, again, recovering),
		"joined": resilience.Wrap(call, policy(func(ctx context.Context, op func(context.Context) error) error {
			return resilience.Join(again, recovering).Do(ctx, op)
		})),
	} {
		runs = 0
		v, err := call(context.Background())
		require.NoError(t, err, name)
		assert.Equal(t, 2, v, name)
	}
}

func TestACallMayCallItself(t *testing.T) {
	t.Parallel()
	for _, pass := range []resilience.Policy{pass, orderly{}} {
		var call resilience.Call[int]
		depth := 0
		call = resilience.Wrap(func(ctx context.Context) (int, error) {
			if depth++; depth == 5 {
				return 1, nil
			}
			v, err := call(ctx)
			return v + 1, err
		}, pass, pass)
		v, err := call(context.Background())
		require.NoError(t, err)
		assert.Equal(t, 5, v)
	}
}

// A policy that returns before its operation has ended breaks the rule of Policy.
// Each caller has a number, and must never see another's.
func TestARuleBreakingPolicyGivesNobodyAnothersAnswer(t *testing.T) {
	t.Parallel()
	gaveUp := errors.New("gave up")
	for _, start := range []string{"at once", "later"} {
		t.Run("its run starts "+start, func(t *testing.T) {
			t.Parallel()
			var background sync.WaitGroup
			impatient := policy(func(ctx context.Context, op func(context.Context) error) error {
				done := make(chan error, 1)
				background.Go(func() {
					if start == "later" {
						runtime.Gosched()
					}
					done <- op(ctx)
				})
				if start == "at once" {
					runtime.Gosched()
				}
				select {
				case err := <-done:
					return err
				default:
					return gaveUp
				}
			})
			type number struct{}
			guard := resilience.With[int](pass, impatient, pass)
			var wrong, served atomic.Int64
			var callers sync.WaitGroup
			for n := range 1600 {
				callers.Go(func() {
					ctx := context.WithValue(context.Background(), number{}, n)
					v, err := guard(func(ctx context.Context) (int, error) {
						for range n % 5 {
							runtime.Gosched()
						}
						if ctx.Value(number{}) != n {
							wrong.Add(1)
						}
						return n, nil
					})(ctx)
					if err == nil {
						served.Add(1)
						if v != n {
							wrong.Add(1)
						}
					}
				})
			}
			callers.Wait()
			background.Wait()
			assert.Zero(t, wrong.Load())
		})
	}
}

func TestASuccessClaimedBeforeTheCallHasEndedIsAnError(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var background sync.WaitGroup
	liar := policy(func(ctx context.Context, op func(context.Context) error) error {
		started := make(chan struct{})
		background.Go(func() {
			_ = op(context.WithValue(ctx, startedKey{}, started))
		})
		<-started
		return nil
	})
	f := func(ctx context.Context) (int, error) {
		close(ctx.Value(startedKey{}).(chan struct{}))
		<-release
		return 1, nil
	}
	v, err := resilience.Wrap(f, liar)(context.Background())
	assert.ErrorContains(t, err, "still running")
	assert.Zero(t, v)
	joined := resilience.Join(pass, liar)
	assert.ErrorContains(t, joined.Do(context.Background(), func(ctx context.Context) error { _, err := f(ctx); return err }), "still running")
	close(release)
	background.Wait()
}

type startedKey struct{}

func TestConcurrentCallersKeepTheirOwnValues(t *testing.T) {
	t.Parallel()
	for _, pass := range []resilience.Policy{pass, orderly{}} {
		guard := resilience.With[int](pass, resilience.Join(pass, pass))
		var wg sync.WaitGroup
		var wrong atomic.Int64
		for n := range 64 {
			wg.Go(func() {
				for range 200 {
					if v, err := guard(func(context.Context) (int, error) { return n, nil })(context.Background()); err != nil || v != n {
						wrong.Add(1)
					}
				}
			})
		}
		wg.Wait()
		assert.Zero(t, wrong.Load())
	}
}

func TestAPrebuiltChainAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget")
	}
	ctx := context.Background()
	refuse := policy(func(context.Context, func(context.Context) error) error { return resilience.ErrRejected })
	call := func(context.Context) (int, error) { return 1, nil }

	for _, pass := range []resilience.Policy{pass, orderly{}} {
		wrapped := resilience.Wrap(call, pass, pass, pass)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = wrapped(ctx) }), "Wrap")
	}

	refused := resilience.Wrap(call, pass, refuse, pass)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = refused(ctx) }), "Wrap, refused")

	joined := resilience.Join(pass, pass, pass)
	op := func(context.Context) error { return nil }
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = joined.Do(ctx, op) }), "Join")

	guard := resilience.With[int](pass, pass, pass)
	n := 0
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		n++
		_, _ = guard(func(context.Context) (int, error) { return n, nil })(ctx)
	}), 2.0, "With: the closure, and one more")
}

// One collection leaves pooled frames where they are, and a second one would take them
// away. So there is one, in the hope that no other test brings about another.
func TestNothingIsKeptOfACallThatIsOver(t *testing.T) {
	type big [1 << 20]byte
	guard := resilience.With[*big](pass)
	joined := resilience.Join(pass, pass)
	runs := map[string]func(b *big) error{
		"of With, its value": func(b *big) error {
			value := b
			_, err := guard(func(context.Context) (*big, error) { v := value; value = nil; return v, nil })(context.Background())
			return err
		},
		"of With, its closure": func(b *big) error {
			_, err := guard(func(context.Context) (*big, error) { b[0] = 1; return nil, nil })(context.Background())
			return err
		},
		"of Join, its closure": func(b *big) error {
			return joined.Do(context.Background(), func(context.Context) error { b[0] = 1; return nil })
		},
	}
	for name, run := range runs {
		collected := make(chan struct{})
		func() {
			b := new(big)
			runtime.AddCleanup(b, func(struct{}) { close(collected) }, struct{}{})
			require.NoError(t, run(b))
		}()
		runtime.GC()
		select {
		case <-collected:
		case <-time.After(10 * time.Second):
			assert.Fail(t, "a pooled frame still holds something of a call that is over", name)
		}
	}
	runtime.KeepAlive(guard)
	runtime.KeepAlive(joined)
}

func BenchmarkWrap(b *testing.B) {
	call := func(context.Context) (int, error) { return 1, nil }
	ctx := context.Background()
	for _, n := range []int{1, 3, 6} {
		policies := make([]resilience.Policy, n)
		for i := range policies {
			policies[i] = pass
		}
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			c := resilience.Wrap(call, policies...)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c(ctx)
			}
		})
	}
}

func BenchmarkWith(b *testing.B) {
	ctx := context.Background()
	guard := resilience.With[int](pass, pass, pass)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		_, _ = guard(func(context.Context) (int, error) { return n, nil })(ctx)
	}
}

func BenchmarkJoin(b *testing.B) {
	ctx := context.Background()
	j := resilience.Join(pass, pass, pass)
	op := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = j.Do(ctx, op)
	}
}
