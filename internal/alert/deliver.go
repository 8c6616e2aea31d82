package alert

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

const (
	dueEvery     = 5 * time.Second
	dueLimit     = 1000 // channels that are sent to at once
	firstBackoff = 10 * time.Second
	giveUpAfter  = 24 * time.Hour
	leastTries   = 10 // before a delivery is given up for its age, so that a clock that is set does not end it
)

// errNoChannel is for a channel that is deleted, or was made, this moment.
var errNoChannel = fault.New(fault.NotFound, "The channel is not there.")

// deliver sends what is due until ctx ends: one message of a channel at a time, all channels beside each other.
func (s *Service) deliver(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	busy, done := map[string]bool{}, make(chan string)
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		for _, d := range s.dueNow(ctx) {
			if busy[d.Channel] {
				continue
			}
			busy[d.Channel] = true
			running.Go(func() {
				s.deliverOne(ctx, d)
				select {
				case done <- d.Channel:
				case <-ctx.Done():
				}
			})
		}
		select {
		case channel := <-done:
			delete(busy, channel)
		case <-s.due:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// dueNow gives the deliveries that are due. Those that are still added to are left out; the turn is taken so that none is added to
// afterwards.
func (s *Service) dueNow(ctx context.Context) (out []Delivery) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if s.begin(ctx) != nil { // the looks say so
		return nil
	}
	defer s.release()
	due, err := s.c.Store.Due(ctx, dueLimit)
	if err != nil {
		if ctx.Err() == nil {
			s.c.Log.Warn("messages about alerts wait", "error", err)
		}
		return nil
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range due {
		if !now.Before(s.collecting[d.ID]) {
			out = append(out, d)
		}
	}
	return out
}

// deliverOne tries to send one message, and keeps what has become of it.
func (s *Service) deliverOne(ctx context.Context, d Delivery) {
	c, ok := s.channelsNow()[d.Channel]
	err := error(errNoChannel)
	if ok {
		err = s.send(ctx, c, d.Message)
	}
	if err != nil && ctx.Err() != nil {
		return // sandboxd ends
	}
	d.note(err, time.Now().Round(0).UTC())
	if d.GivenUp {
		s.c.Log.Warn("a message about alerts is given up", "channel", c.Name, "tries", d.Attempts, "problem", d.Problem)
	}
	for wait := firstBackoff; ; wait = min(2*wait, MaxBackoff) { // else it would be sent again at once
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
		err := s.c.Store.PutDelivery(limited, d)
		cancel()
		if err == nil {
			return
		}
		s.c.Log.Warn("it cannot be kept that a message about alerts was sent", "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// note takes the result of a try.
func (d *Delivery) note(err error, now time.Time) {
	d.Attempts++
	if err == nil {
		d.Sent, d.Next, d.Problem = now, time.Time{}, ""
		return
	}
	d.Problem = problemOf(err)
	useless := fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden)
	if useless || d.Attempts >= leastTries && now.Sub(d.Created) >= giveUpAfter {
		d.GivenUp, d.Next = true, time.Time{}
		return
	}
	d.Next = now.Add(backoff(d.Attempts))
}

// backoff is how long to wait after so many tries: 10 s, doubled each time up to an hour, and up to a fifth more.
func backoff(attempts int) time.Duration {
	wait := MaxBackoff
	if attempts < 10 {
		wait = min(firstBackoff<<(attempts-1), MaxBackoff)
	}
	return wait + rand.N(wait/5)
}

// send hands a message to a channel, within 30 s.
func (s *Service) send(ctx context.Context, c Channel, m Message) error {
	sender := s.c.Senders[c.Kind]
	if sender == nil {
		return fault.New(fault.Invalid, noSender)
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	return sender.Send(ctx, c, m)
}

// problemOf is what the owner of a channel reads about an error.
func problemOf(err error) string { return text.Excerpt(fault.Message(err), textLimit) }
