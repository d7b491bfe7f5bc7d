package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/cache"
)

// acquire decides about one call.
func (l *Limiter) acquire(ctx context.Context, key, series string, cost int) error {
	if l.closed.Load() {
		return errClosed
	}
	if ctx.Err() != nil {
		return resilience.ContextError(ctx)
	}
	if cost < 1 {
		return &rejection{fmt.Errorf("cost is %d, want at least 1", cost)}
	}
	if cost > l.limit {
		return l.exceeded(ctx, key, cost, 0)
	}
	request := cache.Request{Limit: int64(l.limit), Window: l.window, Weight: int64(cost)}
	if l.config.MaxWait > 0 {
		request.MaxWait = l.patience(ctx)
	}
	grant, err := l.hits.Acquire(ctx, series, request)
	switch {
	case err != nil:
		return l.unanswered(ctx, key, cost, err)
	case !grant.OK:
		return l.exceeded(ctx, key, cost, grant.Wait)
	case grant.Wait > 0:
		return l.wait(ctx, key, series, cost, grant)
	}
	return nil
}

var errClosed error = &rejection{cache.ErrClosed}

// patience returns the longest wait that is allowed and ends before the deadline.
func (l *Limiter) patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return l.config.MaxWait
	}
	return max(0, min(l.config.MaxWait, time.Until(deadline)-1))
}

// exceeded refuses for want of room.
func (l *Limiter) exceeded(ctx context.Context, key string, cost int, wait time.Duration) error {
	err := &ExceededError{
		Name: l.config.Name, Key: key, Cost: cost,
		Limit: l.limit, Window: l.window, Wait: wait,
	}
	if l.config.OnRefuse != nil {
		l.config.OnRefuse(ctx, err)
	}
	return err
}

// unanswered decides about a call of which the cache says nothing.
func (l *Limiter) unanswered(ctx context.Context, key string, cost int, err error) error {
	err = failure(ctx, "acquire", err)
	if errors.Is(err, cache.ErrClosed) {
		return &rejection{err}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	admitted := l.config.WhenUnavailable == Admit
	if l.config.OnUnavailable != nil {
		l.config.OnUnavailable(ctx, Outage{Key: key, Cost: cost, Err: err, Admitted: admitted})
	}
	if admitted {
		return nil
	}
	return &rejection{err}
}

// wait sleeps until there is a slot for this caller.
func (l *Limiter) wait(ctx context.Context, key, series string, cost int, grant cache.Grant) error {
	// The wait was counted from before the answer came, so this is never too early.
	due := time.Now().Add(grant.Wait)
	line := lineID{series, cost, grant.Slot.Clock}
	if deadline, ok := ctx.Deadline(); ok && !due.Before(deadline) {
		l.decline(ctx, line, grant.Slot, due)
		return l.exceeded(ctx, key, cost, grant.Wait)
	}
	if l.config.OnWait != nil {
		l.announce(ctx, key, line, grant, due)
	}
	w := l.waiting.join(line, grant.Slot, due)
	if w == nil {
		l.giveBack(ctx, series, grant.Slot)
		return errClosed
	}
	var timer *time.Timer // of whoever is at the head of the line
	var alarm <-chan time.Time
	for {
		verdict, left := l.waiting.look(line, w)
		switch verdict {
		case served:
			return nil
		case dismissed:
			l.giveBack(ctx, series, w.slot)
			return errClosed
		case next:
			if timer == nil {
				timer = time.NewTimer(left)
				defer timer.Stop()
				alarm = timer.C
			} else {
				timer.Reset(left)
			}
		}
		select {
		case <-w.wake:
		case <-alarm:
		case <-ctx.Done():
			l.giveBack(ctx, series, l.waiting.leave(line, w))
			return resilience.ContextError(ctx)
		}
	}
}

// announce tells the hook about a wait. It is called before the caller joins its line,
// where it could hold up others. If it does not return, nobody will wait.
func (l *Limiter) announce(ctx context.Context, key string, line lineID, grant cache.Grant, due time.Time) {
	returned := false
	defer func() {
		if !returned {
			l.decline(ctx, line, grant.Slot, due)
		}
	}()
	l.config.OnWait(ctx, Wait{Key: key, Cost: line.cost, For: grant.Wait})
	returned = true
}

// decline gives up a slot without waiting for it. Others may be behind it already, and
// move up.
func (l *Limiter) decline(ctx context.Context, line lineID, slot cache.Slot, due time.Time) {
	if w := l.waiting.join(line, slot, due); w != nil {
		slot = l.waiting.leave(line, w)
	}
	l.giveBack(ctx, line.series, slot)
}

// giveBackWithin bounds how long a caller who has given up is held by a cache that
// does not answer.
const giveBackWithin = time.Second

// giveBack returns a slot that nobody will use, also on behalf of a caller whose
// context is done. If it fails, the slot goes unused, and the limit still holds.
func (l *Limiter) giveBack(ctx context.Context, series string, slot cache.Slot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	_ = l.hits.GiveBack(ctx, series, slot)
}
