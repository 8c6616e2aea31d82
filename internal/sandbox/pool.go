package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// How a pool behaves in trouble.
const (
	poolBackoff    = time.Minute      // before the next try after a failure; doubles
	poolBackoffMax = 30 * time.Minute // what it doubles to
	poolHold       = 5 * time.Minute  // without refilling after the host has asked for one back
)

// pool is what is remembered of sandboxes that are made in advance. Which there are the rows say; what is here only
// spares a create the search. A pooled sandbox is nobody's until a claim, in its turn, makes it somebody's, once.
type pool struct {
	nudge chan struct{} // holds a token when one has been claimed

	mu          sync.Mutex
	want        map[string]int           // how many, by template
	reconciling map[string]bool          // templates whose pool is worked on; true when it must be looked at once more
	warm        map[string][]warmSandbox // those that a create can claim, by template
	rested      map[string]recovery      // templates whose last sandbox could not be made
	held        time.Time                // until when none is made
}

// warmSandbox is a pooled sandbox that stands ready, and what it was made from.
type warmSandbox struct {
	id, name, fingerprint string
}

// recovery is how a template's pool waits after a failure.
type recovery struct {
	wait  time.Duration
	until time.Time
}

func newPool() pool {
	return pool{
		nudge: make(chan struct{}, 1), want: map[string]int{}, reconciling: map[string]bool{},
		warm: map[string][]warmSandbox{}, rested: map[string]recovery{},
	}
}

// wish replaces what is wanted.
func (p *pool) wish(templates []catalog.Template) {
	want := map[string]int{}
	for _, t := range templates {
		if t.Standby.Pool > 0 {
			want[t.Name] = t.Standby.Pool
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want = want
}

func (p *pool) wanted(template string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.want[template]
}

// offer lets a create claim s from now on.
func (p *pool) offer(s Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := warmSandbox{id: s.ID, name: s.Name, fingerprint: s.Fingerprint}
	if list := p.warm[s.Spec.Template]; !slices.Contains(list, one) {
		p.warm[s.Spec.Template] = append(list, one)
	}
}

// take gives a warm sandbox of a template, with that fingerprint, to one caller alone.
func (p *pool) take(template, fingerprint string) (warmSandbox, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.warm[template]
	i := slices.IndexFunc(list, func(s warmSandbox) bool { return s.fingerprint == fingerprint })
	if i < 0 {
		return warmSandbox{}, false
	}
	one := list[i]
	p.warm[template] = slices.Delete(list, i, i+1)
	return one, true
}

// retain forgets the warm sandboxes of a template that are not in list any more.
func (p *pool) retain(template string, list []Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := func(one warmSandbox) bool {
		return !slices.ContainsFunc(list, func(s Sandbox) bool { return s.ID == one.id })
	}
	if p.warm[template] = slices.DeleteFunc(p.warm[template], gone); len(p.warm[template]) == 0 {
		delete(p.warm, template)
	}
}

func (p *pool) empty(template string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.warm[template]) == 0
}

// withdraw lets nobody claim s any more.
func (p *pool) withdraw(s Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.DeleteFunc(p.warm[s.Spec.Template], func(one warmSandbox) bool { return one.id == s.ID })
	if p.warm[s.Spec.Template] = list; len(list) == 0 {
		delete(p.warm, s.Spec.Template)
	}
}

// waits reports whether none of a template is made for now.
func (p *pool) waits(template string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Before(p.held) || now.Before(p.rested[template].until)
}

// hold makes none for a while.
func (p *pool) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = time.Now().Add(poolHold)
}

// made notes what came of making one.
func (p *pool) made(template string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.rested, template)
		return
	}
	wait := poolBackoff
	if last := p.rested[template].wait; last > 0 {
		wait = min(2*last, poolBackoffMax)
	}
	p.rested[template] = recovery{wait: wait, until: time.Now().Add(wait)}
}

// claims reports whether r leaves so much open that a sandbox made in advance is as good as one made for it.
func (r Request) claims() bool {
	return r.Name == "" && r.Template != "" && r.Image == "" && r.Limits == Limits{} && len(r.Env) == 0
}

// fingerprint names what a sandbox of a spec is made from as things stand now: image, limits and set-up. A
// pooled sandbox keeps it, so that after a restart it is still known what that was made from. It does not ask the engine.
func (m *Manager) fingerprint(spec Spec) (string, error) {
	t, err := m.template(spec)
	if err != nil {
		return "", err
	}
	ref, err := m.c.Images.Reference(t)
	if err != nil {
		return "", err
	}
	s := Sandbox{ID: "0000000000000000", Name: "pool", Spec: spec}
	text, err := json.Marshal(struct {
		Box   Box
		Setup Setup
	}{m.box(s, t, ref, ""), setup(s, t)})
	if err != nil {
		return "", fmt.Errorf("describe what template %s makes: %w", t.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// errClaimed says that a sandbox is not pooled, or not any more.
var errClaimed = errors.New("not in the pool")

// claim makes a pooled sandbox the one that s asks for, when there is one that is as good as made now. ok is false when
// there is none, or it could not be thawed: then s is to be made.
func (m *Manager) claim(ctx context.Context, s Sandbox) (got Sandbox, ok bool, err error) {
	if m.pool.empty(s.Spec.Template) {
		return Sandbox{}, false, nil
	}
	fingerprint, err := m.fingerprint(s.Spec)
	if err != nil {
		return Sandbox{}, false, nil // whoever makes one says so
	}
	defer m.wakePools()
	for {
		one, found := m.pool.take(s.Spec.Template, fingerprint)
		if !found {
			return Sandbox{}, false, nil
		}
		got, err = m.attendTo(ctx, one.name, func(ctx context.Context, accept func(Sandbox)) error {
			return m.assign(ctx, one, s, accept)
		})
		switch {
		case err == nil:
			return got, true, nil
		case errors.Is(err, errClaimed):
			continue
		case ctx.Err() != nil || errors.Is(err, errClosing):
			return Sandbox{}, false, err
		}
		m.c.Log.Warn("pooled sandbox could not be claimed; making one instead", "sandbox", one.name, "error", err)
		_, err = m.begin(one.name, func(ctx context.Context, _ func(Sandbox)) error { return m.discard(ctx, one.id, one.name) })
		return Sandbox{}, false, err
	}
}

// assign makes a pooled sandbox s, in its turn: thawed first, so that it can be used once it is announced. A crash before the
// row is kept leaves it nobody's.
func (m *Manager) assign(ctx context.Context, one warmSandbox, s Sandbox, accept func(Sandbox)) error {
	row, err := m.rows.ByName(ctx, one.name)
	if err != nil || row.ID != one.id || !row.Pooled || !row.Own.empty() || row.State != Running && row.State != Frozen {
		return errors.Join(errClaimed, err)
	}
	thawing, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	if row.State == Frozen {
		err = m.unfreeze(thawing, row.ID)
	}
	if err == nil {
		err = m.c.Guests.Ready(thawing, row.ID)
	}
	if err != nil {
		return err
	}
	row.Owner, row.Label, row.Rest, row.Created = s.Owner, s.Label, s.Rest, s.Created
	row.Pooled, row.Fingerprint = false, ""
	if row, err = m.set(ctx, row, Running, ""); err != nil {
		return err
	}
	accept(row)
	return nil
}

// discard deletes a sandbox in its turn if it still is pooled, else it gives errClaimed.
func (m *Manager) discard(ctx context.Context, id, name string) error {
	if err := m.life.Err(); err != nil {
		return err
	}
	s, err := m.rows.ByName(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && (s.ID != id || !s.Pooled) {
		return errClaimed
	}
	if err != nil {
		return err
	}
	m.pool.withdraw(s)
	if s, err = m.set(ctx, s, Deleting, ""); err != nil {
		return err
	}
	return m.remove(ctx, s)
}

// drop deletes a pooled sandbox. errClaimed when it is somebody's by now.
func (m *Manager) drop(ctx context.Context, s Sandbox) error {
	m.pool.withdraw(s)
	return m.perform(ctx, s.Name, func(ctx context.Context) error { return m.discard(ctx, s.ID, s.Name) })
}

// perform does work in name's turn and waits for its end.
func (m *Manager) perform(ctx context.Context, name string, work func(ctx context.Context) error) error {
	p, err := m.begin(name, func(ctx context.Context, _ func(Sandbox)) error { return work(ctx) })
	if err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
