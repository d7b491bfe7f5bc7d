package retry_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	errBusy  = errors.New("busy")
	errWrong = errors.New("wrong")
)

func always(error) bool { return true }

// mustNew returns a policy that repeats errBusy.
func mustNew(t testing.TB, cfg retry.Config) *retry.Policy {
	t.Helper()
	p, err := retry.New(retry.On(errBusy), cfg)
	require.NoError(t, err)
	return p
}

// A host fails with the errors of its script, one per call, and goes on with the
// last of them. It takes down when it was called.
type host struct {
	script []error
	start  time.Time
	calls  []time.Duration
}

func newHost(script ...error) *host { return &host{script: script, start: time.Now()} }

func (h *host) call(context.Context) error {
	i := min(len(h.calls), len(h.script)-1)
	h.calls = append(h.calls, time.Since(h.start))
	return h.script[i]
}

func exhausted(t *testing.T, err error) *retry.ExhaustedError {
	t.Helper()
	e, ok := errors.AsType[*retry.ExhaustedError](err)
	require.True(t, ok, "want an ExhaustedError, got %v", err)
	return e
}

func seconds(s ...float64) []time.Duration {
	list := make([]time.Duration, len(s))
	for i, x := range s {
		list[i] = time.Duration(x * float64(time.Second))
	}
	return list
}

func TestASuccessEndsTheCall(t *testing.T) {
	h := newHost(nil)
	require.NoError(t, mustNew(t, retry.Config{}).Do(t.Context(), h.call))
	assert.Len(t, h.calls, 1)
}

func TestAFailureIsRepeatedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(errBusy, errBusy, nil)
		p := mustNew(t, retry.Config{Backoff: retry.Exponential{Base: 100 * time.Millisecond}})
		require.NoError(t, p.Do(t.Context(), h.call))
		assert.Equal(t, seconds(0, 0.1, 0.3), h.calls)
	})
}

// However long an outage, no wait wraps round to nothing, and none is above the maximum.
func TestTheWaitsOfALongOutageAreExactToTheLast(t *testing.T) {
	const attempts = 200
	for factor, growing := range map[float64][]time.Duration{
		1:  {},
		2:  seconds(0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
		10: seconds(0.1, 1),
	} {
		longest := 5 * time.Second
		if factor == 1 {
			longest = 100 * time.Millisecond
		}
		synctest.Test(t, func(t *testing.T) {
			want, at := make([]time.Duration, attempts), time.Duration(0)
			for i := range want {
				want[i] = at
				if i < len(growing) {
					at += growing[i]
				} else {
					at += longest
				}
			}
			h := newHost(errBusy)
			exhausted(t, mustNew(t, retry.Config{
				MaxAttempts: attempts,
				Backoff:     retry.Exponential{Base: 100 * time.Millisecond, Max: 5 * time.Second, Factor: factor},
			}).Do(t.Context(), h.call))
			assert.Equal(t, want, h.calls, "factor %v", factor)
			assert.Equal(t, want[attempts-1], time.Since(h.start))
		})
	}
}

func TestTheZeroConfigMakesFourAttemptsWithTheDefaultBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(errBusy)
		p := mustNew(t, retry.Config{Rand: func() float64 { return 0.5 }})
		e := exhausted(t, p.Do(t.Context(), h.call))
		assert.Equal(t, seconds(0, 1, 3, 7), h.calls)
		assert.Equal(t, 4, e.Attempts)
	})
}

func TestAttemptsAreCountedInAllAndOneStillExhausts(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		h := newHost(errBusy)
		p := mustNew(t, retry.Config{MaxAttempts: n, Backoff: retry.Constant(0)})
		err := p.Do(t.Context(), h.call)
		assert.Len(t, h.calls, n)
		e := exhausted(t, err)
		assert.Equal(t, n, e.Attempts)
		assert.Equal(t, retry.AttemptsUsed, e.Reason)
		assert.Equal(t, errBusy, e.Last)
		assert.ErrorIs(t, err, errBusy)
		assert.NotEmpty(t, err.Error())
	}
}

func TestUnlimitedAttemptsGoOnUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	p := mustNew(t, retry.Config{MaxAttempts: retry.Unlimited, Backoff: retry.Constant(0)})
	err := p.Do(ctx, func(context.Context) error {
		if n++; n == 5000 {
			cancel()
		}
		return errBusy
	})
	assert.Equal(t, 5000, n)
	assert.Equal(t, 5000, exhausted(t, err).Attempts)
}

func TestWhatThePredicateDeclinesComesBackAsItIs(t *testing.T) {
	h := newHost(errWrong)
	p := mustNew(t, retry.Config{})
	assert.Same(t, errWrong, p.Do(t.Context(), h.call))
	assert.Len(t, h.calls, 1)

	h = newHost(errBusy, errWrong)
	p = mustNew(t, retry.Config{Backoff: retry.Constant(0)})
	assert.Same(t, errWrong, p.Do(t.Context(), h.call), "after a retry too")
	assert.Len(t, h.calls, 2)
}

func TestThePredicateIsNotAskedAboutASuccessOrARefusal(t *testing.T) {
	var asked []error
	p, err := retry.New(func(err error) bool { asked = append(asked, err); return true },
		retry.Config{Backoff: retry.Constant(0)})
	require.NoError(t, err)
	require.NoError(t, p.Do(t.Context(), newHost(errBusy, nil).call))
	require.ErrorIs(t, p.Do(t.Context(), newHost(resilience.ErrRejected).call), resilience.ErrRejected)
	assert.Equal(t, []error{errBusy}, asked)
}

func TestEveryCallBeginsAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backoffs := []retry.Backoff{
			retry.Exponential{Base: 100 * time.Millisecond, Max: 10 * time.Second},
			retry.Decorrelated{Base: 100 * time.Millisecond, Max: 10 * time.Second}, // at random 0 always the base
		}
		for i, want := range [][]time.Duration{seconds(0, 0.1, 0.3), seconds(0, 0.1, 0.2)} {
			p := mustNew(t, retry.Config{
				MaxAttempts: 3,
				MaxElapsed:  time.Second,
				Backoff:     backoffs[i],
				Rand:        func() float64 { return 0 },
			})
			exhausted(t, p.Do(t.Context(), newHost(errBusy).call))
			time.Sleep(time.Hour)

			h := newHost(errBusy, errBusy, nil)
			require.NoError(t, p.Do(t.Context(), h.call))
			assert.Equal(t, want, h.calls)

			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					h := newHost(errBusy, errBusy, nil)
					assert.NoError(t, p.Do(t.Context(), h.call))
					assert.Equal(t, want, h.calls)
				})
			}
			wg.Wait()
		}
	})
}

func TestCallsThatFailTogetherDoNotComeBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		delays := map[time.Duration]bool{}
		p := mustNew(t, retry.Config{
			Backoff: retry.FullJitter{Base: time.Second},
			OnRetry: func(_ context.Context, e retry.Event) {
				mu.Lock()
				defer mu.Unlock()
				delays[e.Delay] = true
			},
		})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { assert.NoError(t, p.Do(t.Context(), newHost(errBusy, nil).call)) })
		}
		wg.Wait()
		assert.GreaterOrEqual(t, len(delays), 90)
	})
}

func TestDelaysAreDrawnByAnyNumberOfCallsAtOnce(t *testing.T) {
	p := mustNew(t, retry.Config{MaxAttempts: 1001, Backoff: retry.FullJitter{Base: 1, Max: 1}})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() { exhausted(t, p.Do(t.Context(), newHost(errBusy).call)) })
	}
	wg.Wait()
}

func TestTheOperationGetsTheCallersContextItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	n := 0
	p := mustNew(t, retry.Config{Backoff: retry.Constant(0), MaxElapsed: time.Minute})
	require.NoError(t, p.Do(ctx, func(got context.Context) error {
		assert.True(t, got == ctx, "a derived context would end what is read later")
		if n++; n < 3 {
			return errBusy
		}
		return nil
	}))
}

// lazy is a result that is read after the call: it fails once the context that it
// was made with is done.
type lazy struct{ ctx context.Context }

func (l lazy) Read(p []byte) (int, error) { return len(p), l.ctx.Err() }

func TestAResultThatIsReadLaterOutlivesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		get := resilience.Wrap(func(ctx context.Context) (lazy, error) {
			if n++; n == 1 {
				time.Sleep(time.Second)
				return lazy{}, errBusy
			}
			return lazy{ctx}, nil
		}, mustNew(t, retry.Config{}))
		body, err := get(t.Context())
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond)
		for range 1024 {
			_, err := body.Read(make([]byte, 1024))
			require.NoError(t, err)
		}
	})
}

func TestTheValueOfTheAttemptThatSucceedsComesBack(t *testing.T) {
	n := 0
	call := func(context.Context) (int, error) {
		if n++; n < 3 {
			return -n, errBusy
		}
		return n, nil
	}
	v, err := resilience.Wrap(call, mustNew(t, retry.Config{Backoff: retry.Constant(0)}))(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, v)
}

func TestAPanicInTheOperationGoesOnItsWay(t *testing.T) {
	p := mustNew(t, retry.Config{Backoff: retry.Constant(0)})
	n := 0
	assert.PanicsWithValue(t, "boom", func() {
		_ = p.Do(t.Context(), func(context.Context) error {
			if n++; n == 2 {
				panic("boom")
			}
			return errBusy
		})
	})
	assert.Equal(t, 2, n)
}

func TestTheObserverIsToldOfEachWaitBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "caller")
		start := time.Now()
		var events []retry.Event
		var at []time.Duration
		p := mustNew(t, retry.Config{
			MaxAttempts: 3,
			Backoff:     retry.Exponential{Base: 2 * time.Second},
			OnRetry: func(ctx context.Context, e retry.Event) {
				assert.Equal(t, "caller", ctx.Value(key{}))
				events = append(events, e)
				at = append(at, time.Since(start))
			},
		})
		hinted := &hintError{errBusy, 10 * time.Second}
		h := newHost(errBusy, hinted, errBusy)
		exhausted(t, p.Do(ctx, h.call))
		assert.Equal(t, []retry.Event{
			{Attempt: 1, Err: errBusy, Delay: 2 * time.Second, Elapsed: 0},
			{Attempt: 2, Err: hinted, Delay: 10 * time.Second, Hint: 10 * time.Second, Elapsed: 2 * time.Second},
		}, events, "and not of the failure that nothing follows")
		assert.Equal(t, seconds(0, 2), at)
	})
}

func TestAnObserverThatCancelsEndsTheCallWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, b := range []retry.Backoff{retry.Constant(0), retry.Constant(time.Hour)} {
			ctx, cancel := context.WithCancel(t.Context())
			p := mustNew(t, retry.Config{Backoff: b, OnRetry: func(context.Context, retry.Event) { cancel() }})
			h := newHost(errBusy)
			require.ErrorIs(t, p.Do(ctx, h.call), context.Canceled)
			assert.Len(t, h.calls, 1)
			assert.Zero(t, time.Since(h.start))
		}
	})
}

type backoffFunc func(attempt int, previous time.Duration, random float64) time.Duration

func (f backoffFunc) Delay(attempt int, previous time.Duration, random float64) time.Duration {
	return f(attempt, previous, random)
}

func TestABackoffOfYourOwnIsGivenAttemptPreviousDelayAndRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type args struct {
			attempt  int
			previous time.Duration
			random   float64
		}
		var got []args
		draws := []float64{0.25, 1, math.NaN(), -1}
		p := mustNew(t, retry.Config{
			MaxAttempts: 5,
			Backoff: backoffFunc(func(attempt int, previous time.Duration, random float64) time.Duration {
				got = append(got, args{attempt, previous, random})
				return []time.Duration{time.Second, -time.Hour, 3 * time.Second, 0}[attempt-1]
			}),
			Rand: func() float64 { return draws[len(got)] },
		})
		// A hint lengthens the wait, and not what the backoff goes on from.
		h := newHost(&hintError{errBusy, 10 * time.Second}, errBusy)
		exhausted(t, p.Do(t.Context(), h.call))
		assert.Equal(t, []args{
			{1, 0, 0.25},
			{2, time.Second, justUnderOne},
			{3, 0, 0},
			{4, 3 * time.Second, 0},
		}, got)
		assert.Equal(t, seconds(0, 10, 10, 13, 13), h.calls, "a negative delay counts as none")
	})
}

func TestNewRefusesWhatIsOutOfRangeByFieldAndValue(t *testing.T) {
	const s = time.Second
	for want, cfg := range map[string]retry.Config{
		"MaxAttempts is -1":                     {MaxAttempts: -1},
		"MaxElapsed is -1s":                     {MaxElapsed: -s},
		"MaxHint is -1s":                        {MaxHint: -s},
		"Backoff: Constant is -1s":              {Backoff: retry.Constant(-s)},
		"Backoff: Exponential.Base is 0s":       {Backoff: retry.Exponential{Max: s}},
		"Backoff: FullJitter.Base is 0s":        {Backoff: retry.FullJitter{Max: s}},
		"Backoff: EqualJitter.Base is 0s":       {Backoff: retry.EqualJitter{}},
		"Backoff: Decorrelated.Base is 0s":      {Backoff: retry.Decorrelated{Max: s}},
		"Backoff is a nil *retry.Exponential":   {Backoff: (*retry.Exponential)(nil)},
		"Backoff: Exponential.Base is -1s":      {Backoff: retry.Exponential{Base: -s}},
		"Backoff: Exponential.Max is -1s":       {Backoff: retry.Exponential{Base: s, Max: -s}},
		"Backoff: Exponential.Max is 1s":        {Backoff: retry.Exponential{Base: 2 * s, Max: s}},
		"Backoff: Exponential.Factor is 0.5":    {Backoff: retry.Exponential{Base: s, Factor: 0.5}},
		"Backoff: Exponential.Factor is -2":     {Backoff: retry.Exponential{Base: s, Factor: -2}},
		"Backoff: Exponential.Factor is NaN":    {Backoff: retry.Exponential{Base: s, Factor: math.NaN()}},
		"Backoff: Exponential.Factor is +Inf":   {Backoff: retry.Exponential{Base: s, Factor: math.Inf(1)}},
		"Backoff: Exponential.Jitter is -0.1":   {Backoff: retry.Exponential{Base: s, Jitter: -0.1}},
		"Backoff: Exponential.Jitter is 1.1":    {Backoff: retry.Exponential{Base: s, Jitter: 1.1}},
		"Backoff: Exponential.Jitter is NaN":    {Backoff: retry.Exponential{Base: s, Jitter: math.NaN()}},
		"Backoff: FullJitter.Base is -1s":       {Backoff: retry.FullJitter{Base: -s}},
		"Backoff: FullJitter.Max is 1s":         {Backoff: retry.FullJitter{Base: 2 * s, Max: s}},
		"Backoff: EqualJitter.Base is -1s":      {Backoff: retry.EqualJitter{Base: -s}},
		"Backoff: EqualJitter.Max is 1s":        {Backoff: retry.EqualJitter{Base: 2 * s, Max: s}},
		"Backoff: Decorrelated.Base is -1s":     {Backoff: retry.Decorrelated{Base: -s}},
		"Backoff: Decorrelated.Max is -1s":      {Backoff: retry.Decorrelated{Base: s, Max: -s}},
		"Backoff: Decorrelated.Max is 1s, want": {Backoff: &retry.Decorrelated{Base: 2 * s, Max: s}},
	} {
		p, err := retry.New(always, cfg)
		assert.Nil(t, p)
		require.Error(t, err, want)
		assert.Contains(t, err.Error(), "retry: "+want)
	}
	_, err := retry.New(nil, retry.Config{})
	require.ErrorContains(t, err, "retry: retryable is nil")
}

func TestNewAcceptsTheBounds(t *testing.T) {
	for _, cfg := range []retry.Config{
		{MaxAttempts: 1, MaxElapsed: 1, MaxHint: 1},
		{MaxAttempts: retry.Unlimited, MaxElapsed: longest, MaxHint: longest},
		{Backoff: retry.Exponential{Base: longest, Max: longest, Factor: math.MaxFloat64, Jitter: 1}},
		{Backoff: retry.Exponential{Base: 1, Max: 1, Factor: 1}},
		{Backoff: retry.Decorrelated{Base: 1, Max: 1}},
	} {
		_, err := retry.New(always, cfg)
		assert.NoError(t, err, "%+v", cfg)
	}
}

func TestMemoryDoesNotGrowWithAttempts(t *testing.T) {
	const rounds = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := mustNew(t, retry.Config{MaxAttempts: retry.Unlimited, Backoff: retry.Constant(0)})
	n, before, after := 0, heap(), uint64(0)
	err := p.Do(ctx, func(context.Context) error {
		if n++; n == rounds {
			after = heap()
			cancel()
		}
		return &hintError{errBusy, 0}
	})
	assert.Equal(t, rounds, exhausted(t, err).Attempts)
	assert.Less(t, int64(after)-int64(before), int64(1<<20))
	assert.Less(t, len(err.Error()), 4<<10)
}

func TestASuccessAtOnceAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	op := func(context.Context) error { return nil }
	for name, cfg := range map[string]retry.Config{
		"by default":        {},
		"timed":             {MaxElapsed: time.Hour},
		"with an observer":  {OnRetry: func(context.Context, retry.Event) {}},
		"with many retries": {MaxAttempts: retry.Unlimited},
	} {
		p := mustNew(t, cfg)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = p.Do(ctx, op) }), name)
	}
}

func TestARepetitionWithoutAWaitAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	p := mustNew(t, retry.Config{Backoff: retry.Constant(0), OnRetry: func(context.Context, retry.Event) {}})
	n := 0
	op := func(context.Context) error {
		if n++; n%3 != 0 {
			return errBusy
		}
		return nil
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = p.Do(ctx, op) }))
}

func TestAPolicyIsSafeForConcurrentUse(t *testing.T) {
	var retries atomic.Int64
	p := mustNew(t, retry.Config{
		MaxAttempts: 3,
		Backoff:     retry.Exponential{Base: time.Microsecond, Jitter: 1},
		MaxElapsed:  time.Hour,
		OnRetry:     func(context.Context, retry.Event) { retries.Add(1) },
	})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				assert.NoError(t, p.Do(t.Context(), newHost(errBusy, errBusy, nil).call))
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 16*20*2, retries.Load())
}
