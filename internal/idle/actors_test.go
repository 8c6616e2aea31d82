package idle_test

import (
	"context"
	"testing/synctest"
	"time"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// What the users of a tracker do with it, for the stories. Each begins at a time of the story; those that last
// run beside it.

// begin runs f from a time of the story on.
func (w *world) begin(at time.Duration, f func()) {
	ctx := w.play
	go func() {
		if rest(ctx, time.Until(w.began.Add(at))) {
			f()
		}
	}()
}

// rest waits, and reports whether the story continues.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// span is a part of a story.
type span struct{ from, to time.Duration }

// each runs f at the beginning of a part of the story and then from time to time until its end.
func (w *world) each(during span, every time.Duration, f func()) {
	w.begin(during.from, func() {
		for time.Since(w.began) <= during.to {
			f()
			if !rest(w.play, every) {
				return
			}
		}
	})
}

// wake is what the manager does for a use that counts: a frozen one continues at once, one that is asleep takes a second.
func (w *world) wake(u idle.Use) bool {
	s := w.row(box)
	switch {
	case s.State == sandbox.Running:
	case u.Unattended && (s.State != sandbox.Frozen || !w.tracker.Counts(box)):
		return false
	case s.State == sandbox.Frozen:
		w.move(box, sandbox.Running)
	case s.State == sandbox.Asleep:
		w.move(box, sandbox.Starting)
		rest(w.play, time.Second)
		w.move(box, sandbox.Running)
	}
	return true
}

// use is a request, a command or a file operation from a time of the story on, for as long as it takes.
func (w *world) use(at, takes time.Duration, u idle.Use) {
	w.begin(at, func() { w.using(takes, u) })
}

func (w *world) using(takes time.Duration, u idle.Use) {
	lease := w.tracker.Begin(box, u)
	defer lease.End()
	if w.wake(u) {
		rest(w.play, takes)
	}
}

// click is a page that a person opens.
func (w *world) click(at time.Duration) {
	w.use(at, 200*time.Millisecond, idle.Use{Kind: idle.Web, Detail: "GET /"})
}

// byHand puts the box to rest, as its owner's button does.
func (w *world) byHand(at time.Duration, down func(context.Context, sandbox.Ref, func() bool) (sandbox.Sandbox, error)) {
	w.begin(at, func() {
		w.tracker.Dismiss(box)
		if _, err := down(w.play, w.row(box).Ref(), func() bool { return true }); err != nil {
			w.t.Error(err)
		}
	})
}

// poll is a page's script that asks for the same again and again.
func (w *world) poll(during span, every time.Duration, path string) {
	w.each(during, every, func() {
		w.using(0, idle.Use{Kind: idle.Web, Detail: "GET " + path, Unattended: true})
	})
}

// posts is what comes to an address where nobody tells persons and pages apart but by the pauses. What does not try again
// asks no more when it is turned away.
func (w *world) posts(what string, retries bool, at []time.Duration) {
	w.begin(0, func() {
		for _, next := range at {
			if !rest(w.play, time.Until(w.began.Add(next))) {
				return
			}
			u := idle.Use{Kind: idle.Web, Detail: what, Unattended: w.tracker.Heartbeat(box, what)}
			w.using(0, u)
			if u.Unattended && !retries && w.row(box).State != sandbox.Running {
				return
			}
		}
	})
}

// traffic is what goes through an open stream or terminal from time to time: bytes that count as attended or not.
type traffic struct {
	during     span
	every      time.Duration
	unattended bool
}

// stream is an open stream, WebSocket or terminal with what goes through it.
func (w *world) stream(open span, u idle.Use, through ...traffic) {
	w.begin(open.from, func() {
		lease := w.tracker.Watch(box, u)
		w.wake(u)
		for _, one := range through {
			w.each(one.during, one.every, func() {
				if w.wake(idle.Use{Unattended: one.unattended}) {
					lease.Touch(one.unattended)
				}
			})
		}
		rest(w.play, open.to-open.from)
		lease.End()
	})
}

// work is a program inside, which is paused while the sandbox is frozen.
func (w *world) work(during span, cores float64, network int64) {
	w.begin(during.from, func() { w.bend(func(f *fake) { f.cores, f.network = f.cores+cores, f.network+network }) })
	w.begin(during.to, func() { w.bend(func(f *fake) { f.cores, f.network = f.cores-cores, f.network-network }) })
}

// because gives the kinds that keep the box awake now.
func (w *world) because() []idle.Kind {
	synctest.Wait()
	var found []idle.Kind
	for _, r := range w.reaper.Outlook(w.row(box)).Because {
		found = append(found, r.Kind)
	}
	return found
}

// place declares the box in use.
func (w *world) place(reason string, ttl time.Duration) string {
	h, err := w.config.Holds.Place(context.Background(), w.row(box), "ann", reason, ttl)
	if err != nil {
		w.t.Error(err)
	}
	return h.ID
}

func (w *world) renew(id string, ttl time.Duration) {
	if _, err := w.config.Holds.Renew(context.Background(), w.row(box), id, ttl); err != nil {
		w.t.Error(err)
	}
}

func (w *world) revoke(id string) {
	if err := w.config.Holds.Revoke(context.Background(), w.row(box), id); err != nil {
		w.t.Error(err)
	}
}
