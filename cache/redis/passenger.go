package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A passenger is one acquire on its way.
type passenger struct {
	series       series
	weight, wait int64
	id           string

	over   atomic.Bool   // whether it has arrived or left
	done   chan struct{} // closed when it has arrived, with
	answer answer        // or
	err    error
	own    flight // if it goes by itself
}

// A series is what acquires must have in common to be decided by one run of the script.
type series struct {
	key           string
	limit, window int64
}

// An answer is what the script says about one acquire.
type answer struct{ status, wait, at int64 }

// acquireCmd returns the command that acquires for passengers of one series, in this
// order. The driver may send it any number of times.
func (c *Cache) acquireCmd(ctx context.Context, group ...*passenger) *redis.IntSliceCmd {
	s := group[0].series
	args := append(acquireScript.begin(1, 4+3*len(group)), s.key, s.limit, s.window, c.sending())
	for _, p := range group {
		args = append(args, p.weight, p.wait, p.id)
	}
	return redis.NewIntSliceCmd(ctx, args...)
}

// deliver hands the passengers of one command their answers, and returns those who have
// gone already and left a slot behind.
func (c *Cache) deliver(ctx context.Context, cmd *redis.IntSliceCmd, err error, group ...*passenger) (late []*passenger) {
	numbers := cmd.Val()
	switch {
	case err == nil || err == redis.Nil:
		if err = nil; len(numbers) != 3*len(group) {
			err = errMalformed
		}
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		err = c.late
	}
	for i, p := range group {
		if err == nil {
			p.answer = answer{numbers[3*i], numbers[3*i+1], numbers[3*i+2]}
		}
		if p.arrive(err) {
			late = append(late, p)
		}
	}
	return late
}

// arrive tells the passenger that its answer is there. If it has left already, it reports
// whether a slot is left behind.
func (p *passenger) arrive(err error) (leftover bool) {
	if p.over.Swap(true) {
		return err == nil && p.answer.status == granted
	}
	p.err = err
	close(p.done)
	return false
}

// leave reports whether the passenger goes without an answer, which is to say before it is
// there.
func (p *passenger) leave() bool { return !p.over.Swap(true) }

// bySeries puts a list in groups of one series each, those of a key in the order in which
// they are.
func bySeries(list []*passenger) (groups [][]*passenger) {
	slices.SortStableFunc(list, func(p, q *passenger) int { return cmp.Compare(p.series.key, q.series.key) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].series == list[0].series {
			n++
		}
		groups, list = append(groups, list[:n]), list[n:]
	}
	return groups
}

// doAcquire does for an acquire what do does for any other operation, together with other
// acquires if there are many.
//
// The client is given the time limit only, and not the context: who leaves does not cost a
// connection, and a slot that comes then is known, and given back.
func (c *Cache) doAcquire(ctx context.Context, op, key string, p *passenger) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	alone := c.acquires.board(p)
	var ended <-chan struct{} // the time limit of one who flies alone
	if alone {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		if c.direct(ctx) {
			c.acquires.flyAlone(bounded, cancel, p)
			return c.outcome(ctx, ctx, op, key, p.err)
		}
		ended = bounded.Done()
		go c.acquires.flyAlone(bounded, cancel, p)
	} else {
		defer time.AfterFunc(c.timeout, func() { p.arrive(c.late) }).Stop()
	}
	select {
	case <-p.done:
		return c.outcome(ctx, ctx, op, key, p.err)
	case <-ctx.Done():
	case <-ended:
	}
	if !p.leave() {
		<-p.done
		return c.outcome(ctx, ctx, op, key, p.err)
	}
	if alone {
		p.own.land() // what is left under way holds no place for others
	}
	return c.expired(ctx, op)
}
