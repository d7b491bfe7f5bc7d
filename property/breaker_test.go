package property

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/cache"
	"github.com/resilience-toolkit/resilience/cache/memory"
)

// A circuitModel is a circuit written out: one state for all breakers that share it,
// and what each breaker has seen of it.
type circuitModel struct {
	threshold, probes int
	timeout, lease    time.Duration

	era      int // begins whenever the circuit opens, closes, or is changed by hand
	outage   int // begins with an era, but not when a probe opens the circuit again
	open     bool
	until    time.Time // of the open state
	failures int
	forgets  time.Time // when the failures count no more
	calls    []*modelCall
}

// A modelCall is a call that was let through.
type modelCall struct {
	by      *modelBreaker
	era     int
	outage  int
	probe   bool
	renewed bool      // by Do, as long as it runs
	until   time.Time // of the lease, if it is not
}

// A modelBreaker is what one breaker knows.
type modelBreaker struct {
	era   int
	state breaker.State // as it last told the observer
	dirty bool          // it knows of failures
	told  []breaker.Transition
}

func (m *circuitModel) state() breaker.State {
	switch {
	case !m.open:
		return breaker.Closed
	case time.Now().Before(m.until):
		return breaker.Open
	default:
		return breaker.HalfOpen
	}
}

func (m *circuitModel) counted() int {
	if !time.Now().Before(m.forgets) {
		return 0
	}
	return m.failures
}

func (m *circuitModel) places() int {
	free := m.probes
	for _, c := range m.calls {
		if c.probe && c.outage == m.outage && c.held() {
			free--
		}
	}
	return free
}

func (c *modelCall) held() bool { return c.renewed || time.Now().Before(c.until) }

func (m *circuitModel) retryAfter() time.Duration {
	switch s := m.state(); {
	case s == breaker.Open:
		return time.Until(m.until)
	case s == breaker.HalfOpen && m.places() == 0:
		return min(m.lease, m.timeout)
	default:
		return 0
	}
}

// sees has a breaker look at the circuit.
func (m *circuitModel) sees(b *modelBreaker) {
	if s := m.state(); s != b.state {
		b.told = append(b.told, breaker.Transition{From: b.state, To: s})
		b.state = s
	}
	b.era, b.dirty = m.era, !m.open && m.counted() > 0
}

// admit returns the call that is let through, or nil and the state that refuses it.
func (m *circuitModel) admit(b *modelBreaker, renewed bool) (*modelCall, breaker.State) {
	m.sees(b)
	s := m.state()
	if s == breaker.Open || s == breaker.HalfOpen && m.places() == 0 {
		return nil, s
	}
	c := &modelCall{by: b, era: m.era, outage: m.outage, probe: s == breaker.HalfOpen, renewed: renewed, until: time.Now().Add(m.lease)}
	m.calls = append(m.calls, c)
	return c, s
}

func (m *circuitModel) become(open bool, d time.Duration) {
	m.era++
	m.outage++
	m.open, m.until, m.failures = open, time.Now().Add(d), 0
}

func (m *circuitModel) settle(c *modelCall, o breaker.Outcome) {
	for i := range m.calls {
		if m.calls[i] == c {
			m.calls = append(m.calls[:i], m.calls[i+1:]...)
			break
		}
	}
	b := c.by
	if c.probe {
		if !c.held() || o == breaker.Neutral {
			return
		}
		if c.era == m.era {
			m.become(o == breaker.Failure, m.timeout)
			if o == breaker.Failure {
				m.outage = c.outage
			}
		}
		m.sees(b)
		return
	}
	if o == breaker.Neutral || o == breaker.Success && !b.dirty || b.era != c.era {
		return // there is nothing to do, or it is known to be too late
	}
	if c.era == m.era {
		if o == breaker.Success {
			m.failures = 0
		} else {
			if m.failures = m.counted() + 1; m.failures == 1 {
				m.forgets = time.Now().Add(m.timeout)
			}
			if m.failures >= m.threshold {
				m.become(true, m.timeout)
			}
		}
	}
	m.sees(b)
}

// A running is a call under way in the library, beside the model's.
type running struct {
	model  *modelCall
	permit *breaker.Permit    // by Allow
	end    chan func() error  // by Do
	cancel context.CancelFunc // by Do
	done   chan struct{}      // by Do: it is over
	result error              // by Do
	panics any                // by Do
}

var (
	errHost    = errors.New("host is down")
	errNeutral = errors.New("no verdict")
)

// remote is a cache elsewhere, as far as the breaker can tell.
type remote struct{ *memory.Cache }

func (remote) TimeLimit() (time.Duration, bool) { return 0, false }

func TestACircuitBehavesAsItsStateMachineSays(t *testing.T) {
	type plain struct{ cache.KeyValue }
	check(t, func(t *rapid.T) {
		ctx := context.Background()
		m := &circuitModel{
			threshold: rapid.IntRange(1, 4).Draw(t, "threshold"),
			probes:    rapid.IntRange(1, 3).Draw(t, "probes"),
			timeout:   10 * time.Second,
			lease:     rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 25 * time.Second}).Draw(t, "lease"),
		}
		cfg := breaker.Config{
			FailureThreshold: m.threshold, RecoveryTimeout: m.timeout, Probes: m.probes, ProbeLease: m.lease,
			Classify: func(ctx context.Context, err error) breaker.Outcome {
				if errors.Is(err, errNeutral) {
					return breaker.Neutral
				}
				return breaker.Classify(ctx, err)
			},
			OnStoreError: func(_ context.Context, err error) { t.Errorf("store: %v", err) },
		}
		n := 1
		switch rapid.SampledFrom([]string{"private", "plain", "shared", "remote"}).Draw(t, "cache") {
		case "plain":
			cfg.Cache = plain{memory.New()}
		case "shared":
			cfg.Cache = memory.New()
			n = rapid.IntRange(1, 3).Draw(t, "breakers")
		case "remote":
			cfg.Cache = remote{memory.New()}
			n = rapid.IntRange(1, 3).Draw(t, "breakers")
		}
		breakers, models, told := make([]*breaker.Breaker, n), make([]*modelBreaker, n), make([][]breaker.Transition, n)
		for i := range breakers {
			models[i] = &modelBreaker{}
			cfg.OnStateChange = func(_ context.Context, tr breaker.Transition) { told[i] = append(told[i], tr) }
			var err error
			breakers[i], err = breaker.New(cfg)
			require.NoError(t, err)
		}
		var all []*running
		defer func() {
			for _, r := range all {
				if r.end != nil {
					r.end <- func() error { return errNeutral }
					<-r.done
				}
			}
		}()
		some := func(t *rapid.T, permits bool) *running {
			var fit []*running
			for _, r := range all {
				if permits == (r.permit != nil) {
					fit = append(fit, r)
				}
			}
			if len(fit) == 0 {
				t.Skip("there is no call")
			}
			return fit[rapid.IntRange(0, len(fit)-1).Draw(t, "call")]
		}
		forget := func(r *running) {
			for i := range all {
				if all[i] == r {
					all = append(all[:i], all[i+1:]...)
					return
				}
			}
		}
		which := rapid.IntRange(0, n-1)
		refused := func(t *rapid.T, err error, s breaker.State) {
			var open *breaker.OpenError
			require.ErrorAs(t, err, &open)
			require.ErrorIs(t, err, resilience.ErrRejected)
			require.Equal(t, s.String(), open.State.String())
			require.GreaterOrEqual(t, open.Wait, m.retryAfter(), "whoever waits that long must not come too early")
			if n == 1 {
				require.Less(t, open.Wait, m.retryAfter()+time.Millisecond)
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i, b := range breakers {
					s, err := b.State(ctx)
					require.NoError(t, err)
					require.Equal(t, m.state().String(), s.String())
					d, err := b.RetryAfter(ctx)
					require.NoError(t, err)
					if n == 1 {
						require.Equal(t, m.retryAfter(), d)
					} else {
						require.GreaterOrEqual(t, d, m.retryAfter())
						require.Equal(t, m.retryAfter() == 0, d == 0)
					}
					require.Equal(t, fmt.Sprint(models[i].told), fmt.Sprint(told[i]))
				}
			},
			"do": func(t *rapid.T) {
				i := which.Draw(t, "breaker")
				r := &running{end: make(chan func() error), done: make(chan struct{})}
				ctx, cancel := context.WithCancel(ctx)
				r.cancel = cancel
				began := false
				go func() {
					defer close(r.done)
					defer func() { r.panics = recover() }()
					r.result = breakers[i].Do(ctx, func(context.Context) error {
						began = true
						return (<-r.end)()
					})
				}()
				synctest.Wait()
				var s breaker.State
				if r.model, s = m.admit(models[i], true); r.model == nil {
					require.False(t, began)
					<-r.done
					refused(t, r.result, s)
					return
				}
				require.True(t, began)
				all = append(all, r)
			},
			"end": func(t *rapid.T) {
				r := some(t, false)
				forget(r)
				how := rapid.SampledFrom([]string{"success", "failure", "failure", "neutral", "rejected", "cancelled", "panic", "goexit"}).Draw(t, "how")
				var want error
				outcome := breaker.Failure
				end := func() error { return want }
				switch how {
				case "success":
					outcome = breaker.Success
				case "failure":
					want = errHost
				case "neutral":
					want, outcome = errNeutral, breaker.Neutral
				case "rejected":
					want, outcome = resilience.ErrRejected, breaker.Neutral
				case "cancelled":
					want, outcome = errHost, breaker.Neutral
					r.cancel()
				case "panic":
					end = func() error { panic(how) }
				case "goexit":
					end = func() error { runtime.Goexit(); return nil }
				}
				r.end <- end
				<-r.done
				require.Equal(t, want, r.result)
				require.Equal(t, how == "panic", r.panics != nil)
				m.settle(r.model, outcome)
			},
			"allow": func(t *rapid.T) {
				i := which.Draw(t, "breaker")
				p, err := breakers[i].Allow(ctx)
				c, s := m.admit(models[i], false)
				if c == nil {
					refused(t, err, s)
					return
				}
				require.NoError(t, err)
				all = append(all, &running{model: c, permit: p})
			},
			"settle": func(t *rapid.T) {
				r := some(t, true)
				forget(r)
				o := rapid.SampledFrom([]breaker.Outcome{breaker.Success, breaker.Failure, breaker.Neutral}).Draw(t, "outcome")
				r.permit.Settle(ctx, o)
				m.settle(r.model, o)
				r.permit.Settle(ctx, breaker.Failure) // changes nothing
			},
			"renew": func(t *rapid.T) {
				r := some(t, true)
				err := r.permit.Renew(ctx)
				if r.model.probe && !r.model.held() {
					require.ErrorIs(t, err, breaker.ErrLeaseLost)
					return
				}
				require.NoError(t, err)
				r.model.until = time.Now().Add(m.lease)
			},
			"wait": func(t *rapid.T) {
				time.Sleep(rapid.SampledFrom([]time.Duration{
					1, 500 * time.Millisecond, time.Second - 1, time.Second, 4 * time.Second, 10*time.Second - 1, 10 * time.Second, 30 * time.Second,
				}).Draw(t, "pause"))
			},
			"wait as told": func(t *rapid.T) {
				if m.state() == breaker.Open {
					time.Sleep(m.retryAfter())
				}
			},
			"by hand": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "seldom") > 0 {
					t.Skip("too often")
				}
				i := which.Draw(t, "breaker")
				if d := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "open for"); d > 0 {
					require.NoError(t, breakers[i].ForceOpen(ctx, d))
					m.become(true, d)
				} else {
					require.NoError(t, breakers[i].Reset(ctx))
					m.become(false, 0)
				}
				m.sees(models[i])
			},
		})
	})
}
