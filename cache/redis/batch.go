package redis

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

const (
	// maxFlights is how many acquires, or batches of them, are on their way to the server
	// at a time before the next ones gather. With fewer, a few callers wait for each
	// other; with more, batches of many callers become small, and a round trip each is
	// what they were to save. Of 2, 4, 8 and no bound, 4 was best or as good as the best
	// for every number of callers from 1 to 256.
	maxFlights = 4

	// maxBatch is how many acquires one batch has at most, so that no batch keeps the
	// server from others for long: as many for one series take it half a millisecond, and
	// about one if they have weights.
	maxBatch = 128
)

// A dispatcher sends acquires, and those that wait at the same moment together. Nobody
// waits for company: as long as there are few flights, a call is one, and goes at once and
// by itself; only when there are many does it wait for one of them to land, and then goes
// with all that have gathered.
type dispatcher struct {
	c     *Cache
	solos bool // whether all go by themselves, however many there are

	mu      sync.Mutex
	flights int
	waiting []*passenger // only while there are maxFlights flights
}

// A flight is what holds one of the places among maxFlights. It gives it up once, when
// it lands or is given up.
type flight struct {
	d      *dispatcher
	landed atomic.Bool
}

// board reports whether the passenger is to fly alone, and at once. Otherwise it waits for
// the next flight to begin.
func (d *dispatcher) board(p *passenger) (alone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flights >= maxFlights && !d.solos {
		d.waiting = append(d.waiting, p)
		return false
	}
	d.flights++
	p.own.d = d
	return true
}

func (d *dispatcher) flyAlone(ctx context.Context, cancel context.CancelFunc, p *passenger) {
	defer p.own.land()
	defer cancel()
	if d.c.underWay.Acquire(ctx, 1) != nil {
		p.arrive(d.c.late)
		return
	}
	defer d.c.underWay.Release(1)
	cmd := d.c.acquireCmd(ctx, p)
	d.c.takeBack(d.c.deliver(ctx, cmd, d.c.send(ctx, cmd, acquireScript), p))
}

// land lets the next flight begin, if somebody waits for it.
func (f *flight) land() {
	if f.landed.Swap(true) {
		return
	}
	d := f.d
	d.mu.Lock()
	batch := d.waiting
	if len(batch) == 0 {
		d.flights--
		d.mu.Unlock()
		return
	}
	if len(batch) > maxBatch {
		batch, d.waiting = batch[:maxBatch:maxBatch], batch[maxBatch:]
	} else {
		d.waiting = nil
	}
	d.mu.Unlock()
	go d.fly(batch)
}

// fly sends a batch. It is not up to any one of its passengers how long that may take:
// who leaves takes nobody along.
func (d *dispatcher) fly(batch []*passenger) {
	f := &flight{d: d}
	defer f.land()
	ctx, cancel := context.WithTimeout(context.Background(), d.c.timeout)
	defer cancel()
	present := batch[:0]
	for _, p := range batch {
		if !p.over.Load() { // one who has left is not sent
			present = append(present, p)
		}
	}
	if len(present) == 0 {
		return
	}
	if d.c.underWay.Acquire(ctx, 1) != nil {
		for _, p := range present {
			p.arrive(d.c.late)
		}
		return
	}
	defer d.c.underWay.Release(1)
	// A client that ignores the context would hold the place for longer.
	defer context.AfterFunc(ctx, f.land)()
	groups := bySeries(present)
	cmds := make([]redis.Cmder, len(groups))
	for i, group := range groups {
		cmds[i] = d.c.acquireCmd(ctx, group...)
	}
	d.c.sendAll(ctx, cmds, acquireScript)
	var late []*passenger
	for i, group := range groups {
		late = append(late, d.c.deliver(ctx, cmds[i].(*redis.IntSliceCmd), cmds[i].Err(), group...)...)
	}
	f.land()
	d.c.takeBack(late)
}

// sendAll is one round trip for all, or two if the server does not know the script. Each
// command has its own error.
func (c *Cache) sendAll(ctx context.Context, cmds []redis.Cmder, s *script) {
	if len(cmds) == 1 {
		_ = c.send(ctx, cmds[0], s)
		return
	}
	pipe := c.client.Pipeline()
	for _, cmd := range cmds {
		cmd.SetFirstKeyPos(3)
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
	unknown := 0
	for _, cmd := range cmds {
		if err := cmd.Err(); err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			continue
		}
		if unknown == 0 { // and after it the server knows
			args := cmd.Args()
			args[0], args[1] = "eval", s.text
		}
		unknown++
		cmd.SetErr(nil)
		_ = pipe.Process(ctx, cmd)
	}
	if unknown > 0 {
		_, _ = pipe.Exec(ctx)
	}
}

// takeBack gives back the slots of callers who went before they came, so that nobody has
// to wait for calls that are not made. Nobody hears of it if that fails, and the slots
// count.
func (c *Cache) takeBack(late []*passenger) {
	if len(late) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	cmds := make([]redis.Cmder, len(late))
	for i, p := range late {
		cmds[i] = redis.NewIntCmd(ctx, giveBackScript.args(1, p.series.key, p.id, p.answer.at)...)
	}
	c.sendAll(ctx, cmds, giveBackScript)
}
