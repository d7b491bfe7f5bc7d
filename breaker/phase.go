package breaker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/resilience-toolkit/resilience/cache"
)

// A State is what a circuit does with calls.
type State int

const (
	// Closed: calls are let through, and failures are counted.
	Closed State = iota
	// Open: calls are refused until the recovery timeout has passed.
	Open
	// HalfOpen: a few calls are let through as probes, and the others refused.
	HalfOpen
)

// String returns "closed", "open" or "half-open".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	default:
		return "State(" + strconv.Itoa(int(s)) + ")"
	}
}

// A phase is what the state entry of a circuit says: the part of its life from one
// transition to the next. Immutable.
//
// Eras and runs are random, so every value that is written is unique: whoever finds
// its own value knows that it was its own swap that put it there, also if the reply
// was lost.
type phase struct {
	raw   cache.Entry // the entry itself, what a swap compares with
	open  bool
	era   string        // changes whenever the circuit opens, closes or is reset
	run   string        // closed: changes whenever a success clears the failures
	until time.Duration // open: when the timeout has passed for certain, by this process's clock
	err   error         // why the entry could not be understood, if it could not

	// The keys of what belongs to the phase, the state itself first. Closed: the
	// failure counter. Open: the marker, which lives as long as the timeout, and the
	// places of the probes.
	keys []string
}

// origin is the era, and the run, of a circuit of which nothing is stored.
const origin = "0"

// state, counter, marker and place are the keys of a phase.
func (p *phase) state() string      { return p.keys[0] }
func (p *phase) counter() string    { return p.keys[1] }
func (p *phase) marker() string     { return p.keys[1] }
func (p *phase) places() []string   { return p.keys[2:] }
func (p *phase) same(q *phase) bool { return p == q || p.raw == q.raw }

// continues reports whether a call that was admitted in the phase q counts in p. A
// state entry that is lost, or lapsed since nobody had to write it for long, takes
// the count with it but not the right to be counted.
func (p *phase) continues(q *phase) bool {
	return !p.open && !q.open && (p.era == q.era || p.era == origin)
}

// newPhase makes a phase of a state entry that was just written or read.
func (b *Breaker) newPhase(raw cache.Entry) *phase {
	p := &phase{raw: raw, era: origin, run: origin}
	if raw.Present {
		e, err := parse(raw.Value)
		switch {
		case err != nil:
			p.err = err // like none at all, and replaced at the next transition
		case e.open:
			p.open, p.era, p.run, p.until = true, e.era, "", after(b.now(), e.timeout)
		default:
			p.era, p.run = e.era, e.run
		}
	}
	p.keys = append(p.keys, b.prefix+"state")
	if !p.open {
		p.keys = append(p.keys, b.prefix+"failures "+p.era+" "+p.run)
		return p
	}
	p.keys = append(p.keys, b.markerKey(p.era))
	for i := range b.cfg.Probes {
		p.keys = append(p.keys, b.prefix+"probe "+p.outage()+" "+strconv.Itoa(i))
	}
	return p
}

// outage is what the eras have in common from when the circuit was opened until it is
// closed. The places are of the outage and not of the era, since a probe may still be
// running when another has opened the circuit again.
func (p *phase) outage() string { return p.era[:min(idLength, len(p.era))] }

// newOpenEra returns an era that goes on with the outage of p, if there is one.
func newOpenEra(p *phase) string {
	if p.open {
		return p.outage() + newID()
	}
	return newID() + newID()
}

// marker is what is there as long as an open circuit's timeout has not passed.
var marker = cache.Present("1")

func (b *Breaker) markerKey(era string) string { return b.prefix + "timeout " + era }

// An entry is the content of a stored state.
//
//	v1 closed <era> <run>
//	v1 open <era> <timeout in nanoseconds>
//
// What follows these fields belongs to versions that can be read as this one, and is
// ignored.
type entry struct {
	open     bool
	era, run string
	timeout  time.Duration
}

const version = "v1"

var errGarbage = errors.New("not a circuit's state")

func (e entry) String() string {
	if e.open {
		return version + " open " + e.era + " " + strconv.FormatInt(int64(e.timeout), 10)
	}
	return version + " closed " + e.era + " " + e.run
}

func parse(s string) (entry, error) {
	const longest = 64 // an id becomes part of keys
	f := strings.SplitN(s, " ", 5)
	if len(f) < 4 || len(f[2]) > longest || len(f[3]) > longest || f[2] == "" || f[3] == "" {
		return entry{}, errGarbage
	}
	switch {
	case f[0] != version:
		return entry{}, fmt.Errorf("unknown version %.20q", f[0])
	case f[1] == "closed":
		return entry{era: f[2], run: f[3]}, nil
	case f[1] == "open":
		d, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil || d <= 0 {
			return entry{}, errGarbage
		}
		return entry{open: true, era: f[2], timeout: time.Duration(d)}, nil
	default:
		return entry{}, fmt.Errorf("unknown state %.20q", f[1])
	}
}

// newID returns an era, a run or the name of a holder that nobody else has.
func newID() string { return rand.Text() }

const idLength = 26

// after returns d from now, or the end of time if that comes first.
func after(now, d time.Duration) time.Duration {
	if now > math.MaxInt64-d {
		return math.MaxInt64
	}
	return now + d
}
