package sandbox

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// autoTries is how many automatic names are tried before a create gives up; the later ones have ten thousand times
// as many variants, so more never helps.
const autoTries = 20

// Create makes a sandbox: its row is kept as Creating when it returns, the rest goes on in the background. A create
// of a name that exists with the same owner and spec gives that one, created false; with another it is a Conflict. One
// that leaves name, limits and environment open gets a sandbox that its template's pool has ready, if there is one.
// Invalid names the field that is wrong, NotFound the templates there are; Unavailable when the host is full.
func (m *Manager) Create(ctx context.Context, r Request) (s Sandbox, created bool, err error) {
	s, err = m.plan(r)
	if err != nil {
		return Sandbox{}, false, err
	}
	if r.Name != "" {
		return m.createNamed(ctx, s)
	}
	if r.claims() {
		if got, claimed, err := m.claim(ctx, s); claimed || err != nil {
			return got, claimed, err
		}
	}
	for attempt := range autoTries {
		s.ID, s.Name = NewID(), autoName(attempt)
		got, created, err := m.createNamed(ctx, s)
		if err == nil && created || err != nil && !fault.Is(err, fault.Conflict) {
			return got, created, err
		}
	}
	return Sandbox{}, false, fault.New(fault.Conflict, "No automatic name was free. Give the sandbox a name.")
}

// plan turns a request into the sandbox that it asks for.
func (m *Manager) plan(r Request) (Sandbox, error) {
	err := r.check()
	if err != nil {
		return Sandbox{}, err
	}
	if r.Rest, err = checkRest(r.Rest); err != nil {
		return Sandbox{}, err
	}
	spec := Spec{Template: r.Template, Image: r.Image, Env: maps.Clone(r.Env)}
	t, err := m.template(spec)
	if err != nil {
		return Sandbox{}, err
	}
	if spec.Limits, err = r.limits(t.Size, m.c.Host); err != nil {
		return Sandbox{}, err
	}
	now := stamp()
	return Sandbox{
		ID: NewID(), Name: r.Name, Label: text.Trim(r.Label), Owner: r.Owner, Spec: spec, Rest: r.Rest,
		State: Creating, Created: now, Changed: now,
	}, nil
}

// createNamed queues the create of s. While the name's old sandbox is still being deleted it gives that one, and the
// new one follows.
func (m *Manager) createNamed(ctx context.Context, s Sandbox) (got Sandbox, created bool, err error) {
	var decided atomic.Bool // by the turn, or by who has been refused before it came
	p, err := m.begin(s.Name, func(ctx context.Context, accept func(Sandbox)) error {
		if decided.Swap(true) {
			return nil
		}
		err := m.admit(ctx, s)
		if fault.Is(err, fault.Conflict) {
			return m.createAgain(ctx, s, accept)
		}
		if err != nil {
			return err
		}
		m.publish(Event{Sandbox: s})
		accept(s)
		return m.build(ctx, s)
	})
	for err == nil {
		var ok bool
		if got, ok, err = p.wait(ctx); ok || err != nil {
			break
		}
		got, err = m.rows.ByName(ctx, s.Name)
		if fault.Is(err, fault.NotFound) || err == nil && got.State == Deleting && (got.Pooled || got.Owner != s.Owner) {
			err = nil // its turn is about to come
			continue
		}
		if err == nil && got.State != Deleting {
			err = sameAsked(got, s)
		}
		if err != nil && decided.Swap(true) {
			err = nil // its turn has come meanwhile, and says what becomes of it
			continue
		}
		break
	}
	return got, err == nil && got.ID == s.ID, err
}

// admit keeps the row of a sandbox that is to be made, when the host has room for one more. Conflict when the name is
// taken.
func (m *Manager) admit(ctx context.Context, s Sandbox) error {
	_, err := m.rows.ByName(ctx, s.Name)
	if err == nil {
		return fault.New(fault.Conflict, "The name %s is taken.", s.Name)
	}
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := m.room(ctx); err != nil {
		return err
	}
	return m.rows.Insert(ctx, s)
}

// room asks whether the host has room for another sandbox that runs.
func (m *Manager) room(ctx context.Context) error {
	if m.c.Room == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomLimit)
	defer cancel()
	return m.c.Room(ctx)
}

// sameAsked is a Conflict when a name is taken by a sandbox that was asked for differently, or by somebody else: of that
// one nothing more is told.
func sameAsked(old, s Sandbox) error {
	if old.Owner != s.Owner || old.Pooled {
		return &fault.Error{Kind: fault.Conflict, Field: "name", Message: "The name " + s.Name + " is taken. Choose another name."}
	}
	if !old.Spec.Equal(s.Spec) {
		return &fault.Error{Kind: fault.Conflict, Field: "name",
			Message: "You have a sandbox " + s.Name + " that was asked for differently. Choose another name, or delete that one."}
	}
	return nil
}

// createAgain answers a create whose name is taken.
func (m *Manager) createAgain(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
	old, err := m.rows.ByName(ctx, s.Name)
	if err != nil {
		return err
	}
	if err := sameAsked(old, s); err != nil {
		return err
	}
	accept(old)
	return nil
}

// build makes s from nothing, or from what an interrupted build has left. When that fails, what was made is undone
// and s is kept as failed with the cause.
func (m *Manager) build(ctx context.Context, s Sandbox) error {
	err := m.createContainer(ctx, s)
	if err == nil {
		err = m.room(ctx)
	}
	if err == nil {
		err = m.startAndAwait(ctx, s)
	}
	if err == nil {
		_, err = m.set(ctx, s, Running, "")
		return err
	}
	if cause := context.Cause(ctx); ctx.Err() != nil && m.life.Err() == nil {
		err = cause
	}
	if m.life.Err() == nil {
		err = errors.Join(err, m.undo(ctx, s))
	}
	return m.fail(ctx, s, err)
}

// createContainer makes the image present, and then the container with its volume.
func (m *Manager) createContainer(ctx context.Context, s Sandbox) error {
	t, err := m.template(s.Spec)
	if err != nil {
		return err
	}
	m.report(s, Progress{Phase: PhaseImage})
	ref, err := m.image(ctx, s, t)
	if err != nil {
		return err
	}
	m.report(s, Progress{Phase: PhaseVolume})
	folder, err := m.c.Guests.Expect(s.ID, setup(s, t))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	return m.c.Runtime.Create(ctx, m.box(s, t, ref, folder))
}

func (m *Manager) image(ctx context.Context, s Sandbox, t catalog.Template) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	var last time.Time
	return m.c.Images.Ensure(ctx, t, func(e catalog.BuildEvent) {
		if now := time.Now(); now.Sub(last) > patience {
			last = now
			m.report(s, Progress{Phase: PhaseImage, Fraction: fraction(e), Detail: clean(e.Line)})
		}
	})
}

// fraction tells how much of a build is done, 0 when that cannot be told.
func fraction(e catalog.BuildEvent) float64 {
	within := 0.0
	if e.Total > 0 {
		within = min(float64(e.Done)/float64(e.Total), 1)
	}
	if e.Steps == 0 || e.Step == 0 {
		return within
	}
	return min((float64(e.Step-1)+within)/float64(e.Steps), 1)
}

// longestOutput bounds what of foreign output a Progress shows, in bytes.
const longestOutput = 200

// clean makes foreign output fit to be shown.
func clean(output string) string { return text.Excerpt(output, longestOutput) }

func (m *Manager) box(s Sandbox, t catalog.Template, ref, folder string) Box {
	return Box{
		ID: s.ID, Name: s.Name, Template: s.Spec.Template, Image: ref, Limits: s.Spec.Limits, Profile: t.Profile,
		Namespaces: t.Namespaces, Env: t.Env, Labels: m.c.Labels(s.ID, s.Name), LinkPath: folder,
	}
}

// setup is what s's guest is told. The creator's environment goes only this way, so that it never stands in the
// engine's records.
func setup(s Sandbox, t catalog.Template) Setup {
	env := maps.Clone(t.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, s.Spec.Env)
	return Setup{Name: s.Name, Env: env, Services: s.Own.services(t.Services), IDE: s.Own.ide(t.IDE)}
}

// undo removes what a failed create has made. It works under its own deadline.
func (m *Manager) undo(ctx context.Context, s Sandbox) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	if err := m.c.Runtime.Remove(ctx, s.ID); err != nil {
		return err
	}
	return m.c.Guests.Forget(s.ID)
}
