package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/ratelimit"
)

// broken is a cache whose every answer is made by fail.
type broken struct {
	*memory.Cache
	fail func(ctx context.Context) error
}

func (b broken) Acquire(ctx context.Context, _ string, _ cache.Request) (cache.Grant, error) {
	return cache.Grant{}, b.fail(ctx)
}

func (b broken) Used(ctx context.Context, _ string, _ time.Duration) (int64, error) {
	return 0, b.fail(ctx)
}

func (b broken) Delete(ctx context.Context, _ string) error { return b.fail(ctx) }

var (
	errPlain = errors.New("connection refused")
	failures = map[string]func(ctx context.Context) error{
		"fails": func(context.Context) error { return &cache.UnavailableError{Op: "acquire", Err: errPlain} },
		"fails in words of its own": func(context.Context) error {
			return fmt.Errorf("mydb: %w", errPlain)
		},
		"runs out of its own time": func(context.Context) error { return context.DeadlineExceeded },
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"hangs and says so": func(ctx context.Context) error {
			<-ctx.Done()
			return &cache.UnavailableError{Op: "acquire", Err: ctx.Err()}
		},
	}
)

func TestACacheThatIsAwayIsNotALimitThatIsReached(t *testing.T) {
	for name, fail := range failures {
		for _, policy := range []ratelimit.Unavailable{ratelimit.Refuse, ratelimit.Admit} {
			t.Run(fmt.Sprint(name, " ", policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					seen := 0
					l := limiter(t, 10, time.Second, ratelimit.Config{
						Cache:           broken{memory.New(), fail},
						WhenUnavailable: policy,
						OnRefuse:        func(context.Context, *ratelimit.ExceededError) { t.Error("called it a refusal") },
						OnUnavailable: func(_ context.Context, o ratelimit.Outage) {
							seen++
							var unavailable *cache.UnavailableError
							assert.ErrorAs(t, o.Err, &unavailable)
							assert.Equal(t, ratelimit.Outage{Key: "k", Cost: 2, Err: o.Err, Admitted: policy == ratelimit.Admit}, o)
						},
					})
					ran := 0
					for range 100 {
						ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
						start := time.Now()
						err := l.For("k").Cost(2).Do(ctx, func(context.Context) error { ran++; return nil })
						require.LessOrEqual(t, time.Since(start), 200*time.Millisecond)
						cancel()
						if policy == ratelimit.Admit {
							require.NoError(t, err)
							continue
						}
						var unavailable *cache.UnavailableError
						var exceeded *ratelimit.ExceededError
						require.ErrorAs(t, err, &unavailable)
						require.ErrorIs(t, err, resilience.ErrRejected)
						require.NotErrorAs(t, err, &exceeded)
						_, ok := resilience.RetryAfter(err)
						require.False(t, ok)
						if time.Since(start) > 0 {
							require.ErrorIs(t, err, context.DeadlineExceeded, "it was the caller's deadline")
						}
					}
					assert.Equal(t, 100, seen)
					if policy == ratelimit.Admit {
						assert.Equal(t, 100, ran)
					} else {
						assert.Zero(t, ran)
					}

					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					defer cancel()
					var unavailable *cache.UnavailableError
					_, err := l.Remaining(ctx, "k")
					require.ErrorAs(t, err, &unavailable)
					again, cancelAgain := context.WithTimeout(t.Context(), 200*time.Millisecond)
					defer cancelAgain()
					require.ErrorAs(t, l.Reset(again, "k"), &unavailable)
				})
			})
		}
	}
}

func TestStateThatCannotBeUsedIsNotALimitEither(t *testing.T) {
	corrupt := &cache.CorruptError{Op: "acquire", Key: "k", Err: errors.New("a list")}
	c := broken{memory.New(), func(context.Context) error { return corrupt }}
	l := limiter(t, 1, time.Second, ratelimit.Config{Cache: c})
	err := l.Acquire(t.Context(), "k")
	require.ErrorIs(t, err, corrupt)
	require.ErrorIs(t, err, resilience.ErrRejected)
	var unavailable *cache.UnavailableError
	require.NotErrorAs(t, err, &unavailable)
	l = limiter(t, 1, time.Second, ratelimit.Config{Cache: c, WhenUnavailable: ratelimit.Admit})
	require.NoError(t, l.Acquire(t.Context(), "k"))
}

func TestACallerWhoCancelsWhileTheCacheHangsIsNotAdmitted(t *testing.T) {
	for _, policy := range []ratelimit.Unavailable{ratelimit.Refuse, ratelimit.Admit} {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(t, 10, time.Second, ratelimit.Config{
				Cache:           broken{memory.New(), failures["hangs"]},
				WhenUnavailable: policy,
				OnUnavailable:   func(context.Context, ratelimit.Outage) { t.Error("nothing is wrong with the cache") },
			})
			reason := errors.New("the user went away")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(reason) })
			err := l.For("k").Do(ctx, func(context.Context) error { t.Error("was run"); return nil })
			require.ErrorIs(t, err, reason)
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, resilience.ErrRejected)
			var unavailable *cache.UnavailableError
			require.NotErrorAs(t, err, &unavailable)
		})
	}
}

func TestADeadlineWithACauseIsStillADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, 10, time.Second, ratelimit.Config{Cache: broken{memory.New(), failures["hangs"]}})
		reason := errors.New("budget spent")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
		defer cancel()
		err := l.Acquire(ctx, "k")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, reason)
	})
}

func TestTheErrorOfTheCallIsNoneOfTheLimitersBusiness(t *testing.T) {
	l := limiter(t, 10, time.Second, ratelimit.Config{
		OnRefuse:      func(context.Context, *ratelimit.ExceededError) { t.Error("refused") },
		OnUnavailable: func(context.Context, ratelimit.Outage) { t.Error("unavailable") },
	})
	runs := 0
	for _, e := range []error{errPlain, &cache.UnavailableError{Op: "get", Err: errPlain}, context.Canceled, cache.ErrClosed} {
		err := l.For("k").Do(t.Context(), func(context.Context) error { runs++; return e })
		require.True(t, err == e, "the very same error: %v", err)
	}
	assert.Equal(t, 4, runs)
	require.PanicsWithValue(t, "boom", func() {
		_ = l.For("k").Do(t.Context(), func(context.Context) error { panic("boom") })
	})
	remaining, err := l.Remaining(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, 5, remaining, "five calls were made, whatever became of them")
}
