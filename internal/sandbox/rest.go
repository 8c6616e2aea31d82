package sandbox

import (
	"context"
	"errors"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// Freeze makes a running sandbox stand still, and returns when that is done. It changes nothing of one that does not
// run. still says whether nobody uses it; it is asked in the sandbox's turn, and once more when the sandbox is frozen:
// a use that has come in between finds it thawed again. nil is for "whoever uses it". Conflict when the engine cannot.
func (m *Manager) Freeze(ctx context.Context, ref Ref, still func() bool) (Sandbox, error) {
	if m.c.Freezer == nil {
		return Sandbox{}, fault.New(fault.Conflict, "This container engine cannot freeze a sandbox.")
	}
	return m.attend(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) (err error) {
		if s.State == Running && (still == nil || still()) {
			s, err = m.freeze(ctx, s, still)
		}
		if err == nil {
			accept(s)
		}
		return err
	})
}

// freeze freezes s in its turn. The row comes first: whoever finds it Running from before has said already that they use
// it, so the second question hears of them; whoever comes later finds it Frozen and waits for the turn that thaws it.
func (m *Manager) freeze(ctx context.Context, s Sandbox, still func() bool) (Sandbox, error) {
	s, err := m.set(ctx, s, Frozen, "")
	if err != nil {
		return s, err
	}
	freezing, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := m.c.Freezer.Freeze(freezing, s.ID); err != nil {
		return m.truth(ctx, s, err)
	}
	if still == nil || still() {
		return s, nil
	}
	return m.undoFreeze(ctx, s)
}

// undoFreeze thaws what has just been frozen under somebody who uses it. Nothing else would bring them out, so it is tried
// more than once.
func (m *Manager) undoFreeze(ctx context.Context, s Sandbox) (Sandbox, error) {
	for try := 1; ; try++ {
		now, err := m.thaw(ctx, s)
		if err == nil || now.State != Frozen || try == thawTries {
			return now, err
		}
		select {
		case <-time.After(thawPause):
		case <-ctx.Done():
			return now, err
		}
	}
}

// Sleep puts a running or frozen sandbox to sleep, and returns when that is accepted; its processes end in the
// background. It changes nothing of one in another state. still says whether nobody uses it; it is asked in the
// sandbox's turn, and once more when whoever comes later can see that it falls asleep, before anything is ended. nil is
// for "whoever uses it".
func (m *Manager) Sleep(ctx context.Context, ref Ref, still func() bool) (Sandbox, error) {
	return m.attend(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) (err error) {
		if s.State != Running && s.State != Frozen || still != nil && !still() {
			accept(s)
			return nil
		}
		was := s.State
		if s, err = m.set(ctx, s, Sleeping, ""); err != nil {
			return err
		}
		if still != nil && !still() {
			if s, err = m.set(ctx, s, was, ""); err == nil {
				accept(s)
			}
			return err
		}
		accept(s)
		_, err = m.finishStop(ctx, s)
		return err
	})
}

// Where a time of rest comes from.
const (
	FromSandbox  = "sandbox"
	FromTemplate = "template"
	FromServer   = "server"
)

// Resting is when a sandbox is put to rest while nobody uses it, and who says so. Its times are never 0.
type Resting struct {
	catalog.Rest
	FreezeFrom string // FromSandbox, FromTemplate or FromServer
	StopFrom   string
}

// Resting gives the times that count for s: its own, else its template's, else the server's. A template that is gone
// or broken says nothing. It is quick enough to be asked for every sandbox of a list.
func (m *Manager) Resting(s Sandbox) Resting {
	template := m.defaultsOf(s.Spec.Template).rest
	r := Resting{Rest: s.Rest.Over(template).Over(m.c.Rest), FreezeFrom: FromServer, StopFrom: FromServer}
	if template.FreezeAfter != 0 {
		r.FreezeFrom = FromTemplate
	}
	if template.StopAfter != 0 {
		r.StopFrom = FromTemplate
	}
	if s.Rest.FreezeAfter != 0 {
		r.FreezeFrom = FromSandbox
	}
	if s.Rest.StopAfter != 0 {
		r.StopFrom = FromSandbox
	}
	return r
}

// defaultsFor is how long a template is believed without reading it again.
const defaultsFor = time.Second

// templateDefaults is what a template said, when it was read last, of what is asked often.
type templateDefaults struct {
	rest     catalog.Rest
	services []catalog.Service
	ide      bool
	read     time.Time
}

func (m *Manager) defaultsOf(name string) templateDefaults {
	if name == "" {
		return templateDefaults{}
	}
	m.own.mu.Lock()
	known, ok := m.own.templateDefaults[name]
	m.own.mu.Unlock()
	if ok && time.Since(known.read) < defaultsFor {
		return known
	}
	now := templateDefaults{read: time.Now()}
	if t, err := m.c.Templates.Template(name); err == nil {
		now.rest, now.services, now.ide = t.Standby.Rest, t.Services, t.IDE
	}
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	m.own.templateDefaults[name] = now
	return now
}

// RestChange is what is to be different of a sandbox's own times of rest: nil stays, 0 is left to its template or the
// server.
type RestChange struct{ FreezeAfter, StopAfter *catalog.After }

// Over gives r with what c says instead.
func (c RestChange) Over(r catalog.Rest) catalog.Rest {
	if c.FreezeAfter != nil {
		r.FreezeAfter = *c.FreezeAfter
	}
	if c.StopAfter != nil {
		r.StopAfter = *c.StopAfter
	}
	return r
}

// SetRest changes when a sandbox is put to rest. While a long operation is under way the change waits its turn and shows
// when that is over; changes of one time each do not undo each other. Invalid names the field that is wrong.
func (m *Manager) SetRest(ctx context.Context, ref Ref, c RestChange) (Sandbox, error) {
	c, err := c.check()
	if err != nil {
		return Sandbox{}, err
	}
	return m.amend(ctx, ref, func(s *Sandbox) { s.Rest = c.Over(s.Rest) })
}

// check gives c with its times as they are kept, or says which of them is out of bounds.
func (c RestChange) check() (RestChange, error) {
	r, err := checkRest(c.Over(catalog.Rest{}))
	if c.FreezeAfter != nil {
		c.FreezeAfter = &r.FreezeAfter
	}
	if c.StopAfter != nil {
		c.StopAfter = &r.StopAfter
	}
	return c, err
}

// checkRest gives r as it is kept, or says which of its times is out of bounds.
func checkRest(r catalog.Rest) (catalog.Rest, error) {
	freeze, freezeErr := catalog.ParseAfter("freeze_after", r.FreezeAfter.String())
	stop, stopErr := catalog.ParseAfter("stop_after", r.StopAfter.String())
	return catalog.Rest{FreezeAfter: freeze, StopAfter: stop}, errors.Join(freezeErr, stopErr)
}
