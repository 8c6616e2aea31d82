package sandbox

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/catalog"
)

// tellLimit is how long an edit waits for a running guest to take it in. One that takes longer is told later.
const tellLimit = 5 * time.Second

// Own is what a sandbox has of its own in place of its template's. It is a value: do not change what it refers to.
type Own struct {
	Services    []catalog.Service // in place of the template's, when HasServices
	HasServices bool
	IDE         *bool // whether VS Code is offered; nil leaves it to the template
}

// empty reports whether the template alone counts.
func (o Own) empty() bool { return !o.HasServices && o.IDE == nil }

// services gives the list that counts beside the template's.
func (o Own) services(template []catalog.Service) []catalog.Service {
	if o.HasServices {
		return o.Services
	}
	return template
}

func (o Own) ide(template bool) bool {
	if o.IDE != nil {
		return *o.IDE
	}
	return template
}

// Services gives the services that count for s: its own list, else its template's. A template that is gone or broken has
// none. The list is the caller's, what its entries refer to is not. It is quick enough to be asked for every request.
func (m *Manager) Services(s Sandbox) []catalog.Service {
	if s.Own.HasServices {
		return slices.Clone(s.Own.Services)
	}
	return slices.Clone(m.defaultsOf(s.Spec.Template).services)
}

// OffersIDE reports whether VS Code is offered in s: what it says itself, else its template.
func (m *Manager) OffersIDE(s Sandbox) bool {
	return s.Own.ide(s.Own.IDE == nil && m.defaultsOf(s.Spec.Template).ide)
}

// SetServices gives a sandbox a list of services of its own, in place of its template's; nil gives it the template's
// again. A guest that is connected is told at once, one that is not when it comes. While a long operation is under way the
// change waits its turn. Kinds: Invalid (the message names the service, the field is the service's).
func (m *Manager) SetServices(ctx context.Context, ref Ref, list []catalog.Service) (Sandbox, error) {
	return m.ChangeServices(ctx, ref, func([]catalog.Service) ([]catalog.Service, error) { return list, nil })
}

// ChangeServices is SetServices with what change makes of the list that counts now. change is called in the sandbox's turn,
// so that of two edits none is lost; an error of its own changes nothing and is given back. It must not block.
func (m *Manager) ChangeServices(ctx context.Context, ref Ref, change func([]catalog.Service) ([]catalog.Service, error)) (Sandbox, error) {
	return m.reset(ctx, ref, func(s Sandbox) (Sandbox, error) {
		list, err := change(m.Services(s))
		if err != nil {
			return s, err
		}
		s.Own.Services, s.Own.HasServices = cloneServices(list), list != nil
		return s, catalog.CheckServices(s.Own.Services)
	})
}

// SetIDE says whether VS Code is offered in a sandbox, whatever its template says. It is told as services are.
func (m *Manager) SetIDE(ctx context.Context, ref Ref, on bool) (Sandbox, error) {
	return m.reset(ctx, ref, func(s Sandbox) (Sandbox, error) {
		s.Own.IDE = &on
		return s, nil
	})
}

// reset changes what a sandbox's guest is told, and tells it to one that runs.
func (m *Manager) reset(ctx context.Context, ref Ref, change func(Sandbox) (Sandbox, error)) (Sandbox, error) {
	return m.attend(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if err := usable(s); err != nil {
			return err
		}
		s, err := change(s)
		if err != nil {
			return err
		}
		if err := m.rows.Update(ctx, s); err != nil {
			return err
		}
		m.publish(Event{Sandbox: s})
		if err := m.tell(ctx, s); err != nil {
			m.c.Log.Warn("guest is not told of a change yet", "sandbox", s.Name, "error", err)
			m.own.owe(s.ID, true)
		}
		accept(s)
		return nil
	})
}

// tell lets s's guest know its set-up, at once when it runs. A frozen one hears it when it is thawed.
func (m *Manager) tell(ctx context.Context, s Sandbox) error {
	m.own.owe(s.ID, false)
	if s.State != Running && s.State != Frozen {
		return nil // it is told before it is started
	}
	if err := m.expect(s); err != nil || s.State == Frozen {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	return m.c.Guests.Ready(ctx, s.ID)
}

// settle tells a running guest what it has still to be told.
func (m *Manager) settle(ctx context.Context, s Sandbox) error {
	if s.State != Running || !m.own.owes(s.ID) {
		return nil
	}
	if err := m.tell(ctx, s); err != nil {
		m.own.owe(s.ID, true)
		return err
	}
	return nil
}

// ownership is what is remembered beside the rows of what sandboxes have of their own.
type ownership struct {
	mu               sync.Mutex
	templateDefaults map[string]templateDefaults // by template
	owed             map[string]bool             // ids of guests that have still to be told of a change
}

// owe notes whether a running guest has still to be told of a change.
func (o *ownership) owe(id string, owed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if owed {
		o.owed[id] = true
	} else {
		delete(o.owed, id)
	}
}

// owes reports whether a running guest has still to be told of a change.
func (o *ownership) owes(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owed[id]
}

// cloneServices gives a list that shares nothing with list, as a store gives it back.
func cloneServices(list []catalog.Service) []catalog.Service {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		s.Command, s.Env = slices.Clone(s.Command), maps.Clone(s.Env)
		if len(s.Env) == 0 {
			s.Env = nil
		}
		if s.Health != nil {
			h := *s.Health
			s.Health = &h
		}
	}
	return list
}
