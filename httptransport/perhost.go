package httptransport

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/resilience-toolkit/resilience"
)

// ByRequest returns a policy that is chosen for each request: a limiter's key and
// cost, for instance.
//
//	httptransport.ByRequest(func(req *http.Request) resilience.Policy {
//		return allowance.For(httptransport.HostOf(req)).Cost(cost(req))
//	})
//
// It must be safe for concurrent use, and what is said of [RequestFrom] holds for
// the request. A nil policy is none: the request goes on. ByRequest panics if choose
// is nil. Outside a [Transport], where there is no request, the policy refuses.
func ByRequest(choose func(*http.Request) resilience.Policy) resilience.Policy {
	if choose == nil {
		panic("httptransport: ByRequest: choose is nil")
	}
	return byRequest(choose)
}

type byRequest func(*http.Request) resilience.Policy

var _ resilience.Policy = byRequest(nil)

// Do implements [resilience.Policy].
func (choose byRequest) Do(ctx context.Context, op func(context.Context) error) error {
	req := RequestFrom(ctx)
	if req == nil {
		return errNoRequest
	}
	p := choose(req)
	if p == nil {
		return op(ctx)
	}
	return p.Do(ctx, op)
}

var errNoRequest error = &refusal{reason: "a policy that goes by the request is not in a Transport's chain"}

// maxHosts is the default of PerHostConfig.Max.
const maxHosts = 1000

// A PerHostConfig says for which requests [PerHost] makes a policy of their own. Its
// zero value is one per host.
type PerHostConfig struct {
	// Key returns what the requests of one policy have in common. It must be safe for
	// concurrent use. Nil means [HostOf].
	Key func(*http.Request) string

	// Max is how many policies are kept. Zero means 1000.
	Max int
}

// PerHost returns a policy that is another for each host: a circuit of its own, which
// is what newPolicy returns for the host's first request.
//
//	circuits, err := httptransport.PerHost(func(host string) (resilience.Policy, error) {
//		return breaker.New(breaker.Config{Name: host, Classify: httptransport.Classify})
//	}, httptransport.PerHostConfig{})
//
// newPolicy must be safe for concurrent use; it is called once per host, under no lock, and
// again only after it has failed. Other requests to the host wait for it as long as their
// contexts last. A request whose policy cannot be made is refused with the error.
//
// At most [PerHostConfig.Max] policies are kept. Beyond that, the one whose last request
// is longest ago is forgotten, and made anew when there is another. It is not closed,
// since it may be in use, and what it shares with others stays: a circuit on a shared
// cache is as it was, and one with a private memory is closed once more.
//
// PerHost returns an error if newPolicy is nil or Max is negative. Outside a
// [Transport], where there is no request, the policy refuses.
func PerHost(newPolicy func(host string) (resilience.Policy, error), cfg PerHostConfig) (resilience.Policy, error) {
	switch {
	case newPolicy == nil:
		return nil, errors.New("httptransport: newPolicy is nil, want a function that makes a host's policy")
	case cfg.Max < 0:
		return nil, fmt.Errorf("httptransport: Max is %d, want zero or more", cfg.Max)
	}
	p := &perHost{make: newPolicy, key: cfg.Key, max: cfg.Max, hosts: make(map[string]*list.Element)}
	if p.key == nil {
		p.key = HostOf
	}
	if p.max == 0 {
		p.max = maxHosts
	}
	return p, nil
}

type perHost struct {
	make func(string) (resilience.Policy, error)
	key  func(*http.Request) string
	max  int

	mu     sync.Mutex
	hosts  map[string]*list.Element
	recent list.List // of *hostPolicy, the most recently used first
}

// A hostPolicy is made by the first request that needs it; others wait for that.
type hostPolicy struct {
	key    string
	policy resilience.Policy
	err    error
	making chan struct{} // closed once policy or err is there, and nil from then on
}

var errNotMade = errors.New("newPolicy returned none")

var _ resilience.Policy = (*perHost)(nil)

// Do implements [resilience.Policy].
func (p *perHost) Do(ctx context.Context, op func(context.Context) error) error {
	req := RequestFrom(ctx)
	if req == nil {
		return errNoRequest
	}
	h, making, first := p.find(p.key(req))
	if first {
		p.fill(h)
	} else if making != nil {
		select {
		case <-making:
		case <-ctx.Done():
			return resilience.ContextError(ctx)
		}
	}
	if h.err != nil {
		return &refusal{reason: fmt.Sprintf("no policy for %q", h.key), err: h.err}
	}
	return h.policy.Do(ctx, op)
}

// find returns the place of the key's policy: to be filled if this is the first to
// ask for it, else being filled by another while making is not nil.
func (p *perHost) find(key string) (h *hostPolicy, making <-chan struct{}, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.hosts[key]; ok {
		p.recent.MoveToFront(e)
		h = e.Value.(*hostPolicy)
		return h, h.making, false
	}
	if len(p.hosts) >= p.max {
		p.remove(p.recent.Back())
	}
	h = &hostPolicy{key: key, making: make(chan struct{})}
	p.hosts[key] = p.recent.PushFront(h)
	return h, h.making, true
}

// fill makes the policy of a host. One that cannot be made is forgotten.
func (p *perHost) fill(h *hostPolicy) {
	var policy resilience.Policy
	err := errNotMade // if newPolicy panics
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		h.policy, h.err = policy, err
		if e := p.hosts[h.key]; err != nil && e != nil && e.Value == h {
			p.remove(e)
		}
		close(h.making)
		h.making = nil
	}()
	policy, err = p.make(h.key)
	if err == nil && policy == nil {
		err = errNotMade
	}
}

func (p *perHost) remove(e *list.Element) {
	delete(p.hosts, p.recent.Remove(e).(*hostPolicy).key)
}
