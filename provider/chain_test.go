package provider_test

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
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache/memory"
	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
	"github.com/resilience-toolkit/resilience/ratelimit"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/resilience-toolkit/resilience/timeout"
)

func newRetry(t *testing.T, cfg retry.Config) *retry.Policy {
	t.Helper()
	p, err := retry.New(provider.Retryable, cfg)
	require.NoError(t, err)
	return p
}

func newBreaker(t *testing.T, cfg breaker.Config) *breaker.Breaker {
	t.Helper()
	if cfg.Classify == nil {
		cfg.Classify = provider.Classify
	}
	b, err := breaker.New(cfg)
	require.NoError(t, err)
	return b
}

func newLimiter(t *testing.T, limit int, window time.Duration, cfg ratelimit.Config) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(limit, window, cfg)
	require.NoError(t, err)
	return l
}

func always(a fake.Answer) *fake.LLM { return fake.Match(fake.Rule{Answer: a}) }

func hinted(status int, hint time.Duration) fake.Answer {
	err := provider.StatusError(status)
	err.Hint = hint
	return fake.Fail(err)
}

func extract(ctx context.Context, llm provider.LLM, text string) error {
	_, err := provider.Extract[invoice](ctx, llm, ask(text))
	return err
}

func TestAHintIsWaitedForThroughEveryLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		llm := always(hinted(429, 30*time.Second))
		again := newRetry(t, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(100 * time.Millisecond)})
		wrapping := policyFunc(func(ctx context.Context, op func(context.Context) error) error {
			if err := op(ctx); err != nil {
				return fmt.Errorf("one: %w", fmt.Errorf("two: %w", err))
			}
			return nil
		})
		start := time.Now()
		err := extract(t.Context(), provider.With(llm, again, wrapping), "tea")
		assert.Equal(t, time.Minute, time.Since(start), "two waits of the length that the host asked for")
		assert.Len(t, llm.Requests(), 3)
		require.ErrorIs(t, err, provider.RateLimited)
		hint, ok := resilience.RetryAfter(err)
		assert.True(t, ok)
		assert.Equal(t, 30*time.Second, hint)
	})
}

func TestWhatCannotFareBetterIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := newRetry(t, retry.Config{MaxAttempts: 5})
		for name, test := range map[string]struct {
			answer fake.Answer
			want   int
		}{
			"an exhausted quota":  {fake.Fail(&provider.HostError{Kind: provider.QuotaExhausted, Status: 429}), 1},
			"400":                 {fake.Fail(provider.StatusError(400)), 1},
			"401":                 {fake.Fail(provider.StatusError(401)), 1},
			"403":                 {fake.Fail(provider.StatusError(403)), 1},
			"404":                 {fake.Fail(provider.StatusError(404)), 1},
			"413":                 {fake.Fail(provider.StatusError(413)), 1},
			"422":                 {fake.Fail(provider.StatusError(422)), 1},
			"an empty answer":     {fake.Text(""), 1},
			"a truncated one":     {fake.Answer{Completion: provider.Completion{Finish: provider.FinishLength}}, 1},
			"a refusal":           {fake.Answer{Completion: provider.Completion{Refusal: "no"}}, 1},
			"prose":               {fake.Text("Sure!"), 1},
			"408":                 {fake.Fail(provider.StatusError(408)), 5},
			"429":                 {fake.Fail(provider.StatusError(429)), 5},
			"503":                 {fake.Fail(provider.StatusError(503)), 5},
			"a broken connection": {fake.Fail(&provider.HostError{Kind: provider.Disconnected, Transient: true}), 5},
		} {
			llm := always(test.answer)
			require.Error(t, extract(t.Context(), provider.With(llm, again), "tea"))
			assert.Len(t, llm.Requests(), test.want, name)
		}
	})
}

func TestRetriesInsideRetriesDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := newRetry(t, retry.Config{MaxAttempts: 3})
		llm := always(hinted(503, 0))
		require.Error(t, extract(t.Context(), provider.With(provider.With(llm, again), again), "tea"))
		assert.Len(t, llm.Requests(), 3)
	})
}

func TestAnAttemptThatHangsIsTriedAgainAndTheCallersDeadlineIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := newRetry(t, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(0)})
		each, err := timeout.New(time.Second)
		require.NoError(t, err)
		hang := fake.Answer{Delay: time.Hour}

		llm := fake.Script(hang, hang, fake.JSON(whole))
		start := time.Now()
		require.NoError(t, extract(t.Context(), provider.With(llm, again, each), "tea"))
		assert.Equal(t, 2*time.Second, time.Since(start))

		llm = fake.Script(hang, hang, fake.JSON(whole))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start = time.Now()
		err = extract(ctx, provider.With(llm, again, each), "tea")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1500*time.Millisecond, time.Since(start))
		assert.Len(t, llm.Requests(), 2)
	})
}

func state(t *testing.T, b *breaker.Breaker) breaker.State {
	t.Helper()
	s, err := b.State(t.Context())
	require.NoError(t, err)
	return s
}

// What neither opens a circuit nor keeps one from closing.
var harmless = map[string]fake.Answer{
	"a context that is too long": fake.Fail(&provider.HostError{Kind: provider.TooLong, Status: 400}),
	"400":                        fake.Fail(provider.StatusError(400)),
	"401":                        fake.Fail(provider.StatusError(401)),
	"404":                        fake.Fail(provider.StatusError(404)),
	"422":                        fake.Fail(provider.StatusError(422)),
	"429":                        hinted(429, time.Second),
	"an exhausted quota":         fake.Fail(provider.StatusError(402)),
	"an empty answer":            fake.Text(""),
	"prose":                      fake.Text("Sure!"),
	"a truncated answer":         {Completion: provider.Completion{Finish: provider.FinishLength}},
	"a refusal":                  {Completion: provider.Completion{Refusal: "no"}},
	"a filter":                   {Completion: provider.Completion{Finish: provider.FinishFiltered}},
}

func TestOnlyTheHostsOwnFailuresOpenTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 5})
		for name, answer := range harmless {
			llm := always(answer)
			for range 20 {
				require.Error(t, extract(t.Context(), provider.With(llm, circuit), "tea"))
			}
			assert.Len(t, llm.Requests(), 20, name)
			assert.Equal(t, breaker.Closed, state(t, circuit), name)
		}
		late, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for name, answer := range map[string]fake.Answer{
			"503":                 fake.Fail(provider.StatusError(503)),
			"a broken connection": fake.Fail(&provider.HostError{Kind: provider.Disconnected, Transient: true}),
			"a timeout":           fake.Fail(&provider.HostError{Kind: provider.TimedOut, Transient: true}),
			"a deadline":          {Delay: time.Hour},
		} {
			circuit := newBreaker(t, breaker.Config{FailureThreshold: 5})
			llm := always(answer)
			for range 5 {
				require.Equal(t, breaker.Closed, state(t, circuit), name)
				ctx := t.Context()
				if answer.Delay > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				require.Error(t, extract(ctx, provider.With(llm, circuit), "tea"))
			}
			assert.Equal(t, breaker.Open, state(t, circuit), name)
			refused := extract(late, provider.With(llm, circuit), "tea")
			assert.ErrorIs(t, refused, resilience.ErrRejected)
			assert.Len(t, llm.Requests(), 5)
		}
	})
}

func TestNothingHarmlessKeepsACircuitHalfOpen(t *testing.T) {
	for name, answer := range harmless {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				circuit := newBreaker(t, breaker.Config{FailureThreshold: 1, RecoveryTimeout: 10 * time.Second})
				llm := fake.Script(fake.Fail(provider.StatusError(503)), answer, fake.JSON(whole))
				hardened := provider.With(llm, circuit)
				require.Error(t, extract(t.Context(), hardened, "tea"))
				require.Equal(t, breaker.Open, state(t, circuit))
				time.Sleep(10 * time.Second)

				require.NotErrorIs(t, extract(t.Context(), hardened, "tea"), resilience.ErrRejected)
				assert.NotEqual(t, breaker.Open, state(t, circuit))
				require.NoError(t, extract(t.Context(), hardened, "tea"), "its place was free again at once")
				assert.Equal(t, breaker.Closed, state(t, circuit))
			})
		})
	}
}

func TestACompletionErrorClosesAHalfOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 1, RecoveryTimeout: 10 * time.Second})
		hardened := provider.With(fake.Script(fake.Fail(provider.StatusError(503)), fake.Text("")), circuit)
		require.Error(t, extract(t.Context(), hardened, "tea"))
		time.Sleep(10 * time.Second)
		require.ErrorIs(t, extract(t.Context(), hardened, "tea"), provider.ErrCompletion)
		assert.Equal(t, breaker.Closed, state(t, circuit))
	})
}

func TestARateLimitMayBeMadeAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 5, Classify: provider.ClassifyRateLimit(breaker.Failure)})
		llm := always(hinted(429, 7*time.Second))
		for range 5 {
			err := extract(t.Context(), provider.With(llm, circuit), "tea")
			hint, _ := resilience.RetryAfter(err)
			require.Equal(t, 7*time.Second, hint, "its hint is never lost")
		}
		assert.Equal(t, breaker.Open, state(t, circuit))
	})
}

func TestTenTenantsOverOneLimiterSpendTenAllowances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New()
		circuit := newBreaker(t, breaker.Config{Cache: shared})
		allowance := newLimiter(t, 3, time.Minute, ratelimit.Config{Cache: shared})
		again := newRetry(t, retry.Config{})
		llm := always(fake.JSON(whole))
		for tenant := range 10 {
			hardened := provider.With(llm, circuit, allowance.For(fmt.Sprint("tenant-", tenant)), again)
			for range 3 {
				require.NoError(t, extract(t.Context(), hardened, "tea"))
			}
			over, ok := errors.AsType[*ratelimit.ExceededError](extract(t.Context(), hardened, "tea"))
			require.True(t, ok)
			assert.Equal(t, time.Minute, over.RetryAfter())
			require.ErrorIs(t, extract(t.Context(), hardened, "  "), resilience.ErrRejected, "blank text takes no slot")
		}
		assert.Len(t, llm.Requests(), 30)
		time.Sleep(time.Minute)
		require.NoError(t, extract(t.Context(), provider.With(llm, circuit, allowance.For("tenant-0"), again), "tea"))
	})
}

func TestWhereTheLimiterStandsDecidesWhatItCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := newRetry(t, retry.Config{MaxAttempts: 3, Backoff: retry.Constant(time.Second)})
		down := fake.Fail(provider.StatusError(503))

		outside := newLimiter(t, 10, time.Hour, ratelimit.Config{})
		require.Error(t, extract(t.Context(), provider.With(always(down), outside.For("host"), again), "tea"))
		left, err := outside.Remaining(t.Context(), "host")
		require.NoError(t, err)
		assert.Equal(t, 9, left, "one slot for each call")

		inside := newLimiter(t, 10, time.Hour, ratelimit.Config{})
		require.Error(t, extract(t.Context(), provider.With(always(down), again, inside.For("host")), "tea"))
		left, err = inside.Remaining(t.Context(), "host")
		require.NoError(t, err)
		assert.Equal(t, 7, left, "one slot for each attempt, which is what the host sees")
	})
}

func TestAnOpenCircuitCostsNoSlotAndNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := newBreaker(t, breaker.Config{FailureThreshold: 1, RecoveryTimeout: time.Minute})
		allowance := newLimiter(t, 10, time.Hour, ratelimit.Config{})
		again := newRetry(t, retry.Config{MaxAttempts: 2, Backoff: retry.Constant(time.Second)})
		hardened := provider.With(always(hinted(503, 0)), circuit, allowance.For("host"), again)
		require.Error(t, extract(t.Context(), hardened, "tea"))

		start := time.Now()
		open, ok := errors.AsType[*breaker.OpenError](extract(t.Context(), hardened, "tea"))
		require.True(t, ok)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, time.Minute, open.RetryAfter())
		left, err := allowance.Remaining(t.Context(), "host")
		require.NoError(t, err)
		assert.Equal(t, 9, left)
	})
}
