package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/text"
)

// pushLimit is how long an edit waits for a running guest to take it in. After that the next reconcile tries again.
const pushLimit = 5 * time.Second

// defaultsFor is how long a template is believed without reading it again.
const defaultsFor = time.Second

// settings gives the settings of a sandbox, from itself, its template or the server, and changes its own.
type settings struct {
	*operations
	templates Templates
	guests    Guests
	host      Limits
	runtime   Runtime
	quota     Quota        // nil where there is no storage pool
	rest      catalog.Rest // the server's

	defaults sync.Map // templateDefaults by template
	unpushed sync.Map // ids of guests whose last push has failed
}

// templateDefaults is the part of a template that is asked for often, when it was read last.
type templateDefaults struct {
	rest     catalog.Rest
	services []catalog.Service
	ide      bool
	read     time.Time
}

func (g *settings) defaultsOf(template string) templateDefaults {
	if template == "" {
		return templateDefaults{}
	}
	if known, ok := g.defaults.Load(template); ok && time.Since(known.(templateDefaults).read) < defaultsFor {
		return known.(templateDefaults)
	}
	now := templateDefaults{read: time.Now()}
	if t, err := g.templates.Template(template); err == nil {
		now.rest, now.services, now.ide = t.Standby.Rest, t.Services, t.IDE
	}
	g.defaults.Store(template, now)
	return now
}

// template gives the template or plain image that spec names.
func (g *settings) template(spec Spec) (catalog.Template, error) {
	if spec.Template == "" {
		return catalog.PlainImage(spec.Image), nil
	}
	return g.templates.Template(spec.Template)
}

// Overrides are a sandbox's own settings in place of its template's. It is a value: do not change its slices and pointers.
type Overrides struct {
	Services    []catalog.Service // in place of the template's, when HasServices
	HasServices bool
	IDE         *bool // whether VS Code is offered; nil leaves it to the template
}

// Empty reports whether the template alone counts.
func (o Overrides) Empty() bool { return !o.HasServices && o.IDE == nil }

// services gives the list that counts beside the template's.
func (o Overrides) services(template []catalog.Service) []catalog.Service {
	if o.HasServices {
		return o.Services
	}
	return template
}

func (o Overrides) ide(template bool) bool {
	if o.IDE != nil {
		return *o.IDE
	}
	return template
}

// Services gives the services that count for s: its own list, else its template's. A template that is gone or broken has
// none. The list is the caller's, the memory its entries refer to is not. It is quick enough to be asked for every request.
func (g *settings) Services(s Sandbox) []catalog.Service {
	if s.Overrides.HasServices {
		return slices.Clone(s.Overrides.Services)
	}
	return slices.Clone(g.defaultsOf(s.Spec.Template).services)
}

// OffersIDE reports whether VS Code is offered in s: as it says itself, else its template.
func (g *settings) OffersIDE(s Sandbox) bool {
	return s.Overrides.ide(s.Overrides.IDE == nil && g.defaultsOf(s.Spec.Template).ide)
}

// Where a time of rest comes from.
const (
	FromSandbox  = "sandbox"
	FromTemplate = "template"
	FromServer   = "server"
)

// Resting is when an unused sandbox is put to rest, and where each time comes from. Its times are never 0.
type Resting struct {
	catalog.Rest
	FreezeFrom string // FromSandbox, FromTemplate or FromServer
	StopFrom   string
}

// Resting gives the times that count for s: its own, else its template's, else the server's. A template that is gone
// or broken says nothing. It is quick enough to be asked for every sandbox of a list.
func (g *settings) Resting(s Sandbox) Resting {
	template := g.defaultsOf(s.Spec.Template).rest
	from := func(own, template catalog.After) string {
		switch {
		case own != 0:
			return FromSandbox
		case template != 0:
			return FromTemplate
		}
		return FromServer
	}
	return Resting{
		Rest:       s.Rest.Over(template).Over(g.rest),
		FreezeFrom: from(s.Rest.FreezeAfter, template.FreezeAfter), StopFrom: from(s.Rest.StopAfter, template.StopAfter),
	}
}

// Rename changes the free text beside a sandbox's name. While a long operation is under way the change waits its turn
// and shows when that is over.
func (g *settings) Rename(ctx context.Context, ref Ref, label string) (Sandbox, error) {
	if err := CheckLabel(label); err != nil {
		return Sandbox{}, err
	}
	return g.do(ctx, ref, g.edit(false, func(s *Sandbox) error { s.Label = text.Trim(label); return nil }))
}

// RestChange changes a sandbox's own times of rest: nil leaves a time as it is, 0 leaves it to the template or the server.
type RestChange struct{ FreezeAfter, StopAfter *catalog.After }

// Over gives r with the times of c in place of its own.
func (c RestChange) Over(r catalog.Rest) catalog.Rest {
	if c.FreezeAfter != nil {
		r.FreezeAfter = *c.FreezeAfter
	}
	if c.StopAfter != nil {
		r.StopAfter = *c.StopAfter
	}
	return r
}

// check gives c with its times as they are stored. Invalid names the one that is out of bounds.
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

// checkRest gives r as it is stored. Invalid names the time that is out of bounds.
func checkRest(r catalog.Rest) (catalog.Rest, error) {
	freeze, freezeErr := catalog.ParseAfter("freeze_after", r.FreezeAfter.String())
	stop, stopErr := catalog.ParseAfter("stop_after", r.StopAfter.String())
	return catalog.Rest{FreezeAfter: freeze, StopAfter: stop}, errors.Join(freezeErr, stopErr)
}

// SetRest changes when a sandbox is put to rest. While a long operation is under way the change waits its turn and shows
// when that is over; changes of one time each do not undo each other. Invalid names the field that is wrong.
func (g *settings) SetRest(ctx context.Context, ref Ref, c RestChange) (Sandbox, error) {
	c, err := c.check()
	if err != nil {
		return Sandbox{}, err
	}
	return g.do(ctx, ref, g.edit(false, func(s *Sandbox) error { s.Rest = c.Over(s.Rest); return nil }))
}

// ChangeServices gives a sandbox its own list of services: the result of change on the list that counts now. nil gives it
// its template's again. A guest that is connected is told at once, any other when it connects. change is called in the
// sandbox's turn, so that of two edits none is lost; its error changes nothing and is returned. It must not block. Kinds:
// Invalid (the message names the service, the field is the service's).
func (g *settings) ChangeServices(ctx context.Context, ref Ref, change func([]catalog.Service) ([]catalog.Service, error)) (Sandbox, error) {
	return g.attend(ctx, ref, g.on(ref, g.edit(true, func(s *Sandbox) error {
		list, err := change(g.Services(*s))
		if err != nil {
			return err
		}
		s.Overrides.Services, s.Overrides.HasServices = cloneServices(list), list != nil
		return catalog.CheckServices(s.Overrides.Services)
	})))
}

// SetIDE switches VS Code on or off in a sandbox, in place of its template. The guest is told as for ChangeServices.
func (g *settings) SetIDE(ctx context.Context, ref Ref, on bool) (Sandbox, error) {
	return g.attend(ctx, ref, g.on(ref, g.edit(true, func(s *Sandbox) error { s.Overrides.IDE = &on; return nil })))
}

// edit changes settings of a sandbox, and pushes the setup to its guest if that shows the change.
func (g *settings) edit(pushes bool, apply func(*Sandbox) error) change {
	return unlessDeleting(func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if err := apply(&s); err != nil {
			return err
		}
		if err := g.rows.Update(ctx, s); err != nil {
			return err
		}
		g.publish(Event{Sandbox: s})
		if pushes {
			if err := g.push(ctx, s); err != nil {
				g.log.Warn("guest did not take in a change; trying again later", "sandbox", s.Name, "error", err)
			}
		}
		accept(s)
		return nil
	})
}

// push sends a running guest its setup. A frozen one gets it when it is thawed, any other before it is started.
func (g *settings) push(ctx context.Context, s Sandbox) (err error) {
	g.unpushed.Delete(s.ID)
	if s.State != Running && s.State != Frozen {
		return nil
	}
	defer func() {
		if err != nil {
			g.unpushed.Store(s.ID, true)
		}
	}()
	if err := g.expect(s); err != nil || s.State == Frozen {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	return g.guests.Ready(ctx, s.ID)
}

// pushPending reports whether the last push to the guest of that id has failed.
func (g *settings) pushPending(id string) bool {
	_, pending := g.unpushed.Load(id)
	return pending
}

// expect lets s's guest dial in. A template that is gone or broken by now does not stop a sandbox that was created
// from it: it runs without the declared services.
func (g *settings) expect(s Sandbox) error {
	t, err := g.template(s.Spec)
	if err != nil {
		g.log.Warn("template of a sandbox cannot be read", "sandbox", s.Name, "error", err)
	}
	_, err = g.guests.Expect(s.ID, setup(s, t))
	return err
}

// clonedFrom is the variable that tells the programs of a clone that it is one.
const clonedFrom = "SANDBOXD_CLONED_FROM"

// setup is the one of s's guest. The creator's environment goes only this way, so that the engine's records do not hold it.
func setup(s Sandbox, t catalog.Template) Setup {
	env := maps.Clone(t.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, s.Spec.Env)
	if s.ClonedFrom != "" {
		env[clonedFrom] = s.ClonedFrom
	}
	machine := sha256.Sum256([]byte("machine " + s.ID))
	return Setup{
		Name: s.Name, Env: env, Services: s.Overrides.services(t.Services), IDE: s.Overrides.ide(t.IDE), MachineID: hex.EncodeToString(machine[:16]),
	}
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
