package sandbox

import (
	"slices"
	"sync"
	"time"

	"sandboxd/internal/catalog"
)

// How a pool behaves in trouble.
const (
	poolBackoff    = time.Minute      // before the next try after a failure; doubles
	poolBackoffMax = 30 * time.Minute // its maximum
	poolHold       = 5 * time.Minute  // without refilling after the host was short of memory
)

// pool remembers the sandboxes that are ready to be claimed, and what else the rows do not say. A pooled sandbox has no
// owner until a claim, in its turn, gives it one, once.
type pool struct {
	nudge chan struct{} // holds a token when one has been claimed

	mu          sync.Mutex
	want        map[string]int           // how many, by template
	reconciling map[string]bool          // templates with a pass under way; true when it needs one more pass
	warm        map[string][]warmSandbox // those that a create can claim, by template
	failed      map[string]retry         // templates whose last create has failed
	held        time.Time                // until when none is created
}

// warmSandbox is a pooled sandbox that is ready.
type warmSandbox struct {
	ref         Ref
	fingerprint string
}

// retry is how a template's pool waits after a failure.
type retry struct {
	wait  time.Duration
	until time.Time
}

func newPool() *pool {
	return &pool{
		nudge: make(chan struct{}, 1), want: map[string]int{}, reconciling: map[string]bool{},
		warm: map[string][]warmSandbox{}, failed: map[string]retry{},
	}
}

// resize replaces the wanted sizes.
func (p *pool) resize(templates []catalog.Template) {
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
	one := warmSandbox{s.Ref(), s.Fingerprint}
	if list := p.warm[s.Spec.Template]; !slices.Contains(list, one) {
		p.warm[s.Spec.Template] = append(list, one)
	}
}

// take gives a warm sandbox of a template, with that fingerprint, to one caller alone.
func (p *pool) take(template, fingerprint string) (Ref, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.warm[template]
	i := slices.IndexFunc(list, func(s warmSandbox) bool { return s.fingerprint == fingerprint })
	if i < 0 {
		return Ref{}, false
	}
	ref := list[i].ref
	p.warm[template] = slices.Delete(list, i, i+1)
	return ref, true
}

// keep forgets the warm sandboxes of a template for which ok is false.
func (p *pool) keep(template string, ok func(id string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.DeleteFunc(p.warm[template], func(one warmSandbox) bool { return !ok(one.ref.id) })
	if p.warm[template] = list; len(list) == 0 {
		delete(p.warm, template)
	}
}

// withdraw lets no create claim s any more.
func (p *pool) withdraw(s Sandbox) {
	p.keep(s.Spec.Template, func(id string) bool { return id != s.ID })
}

func (p *pool) empty(template string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.warm[template]) == 0
}

// waits reports whether none of a template is created for now.
func (p *pool) waits(template string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Before(p.held) || now.Before(p.failed[template].until)
}

// hold has none created for a while.
func (p *pool) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = time.Now().Add(poolHold)
}

// created notes the result of creating one.
func (p *pool) created(template string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.failed, template)
		return
	}
	wait := poolBackoff
	if last := p.failed[template].wait; last > 0 {
		wait = min(2*last, poolBackoffMax)
	}
	p.failed[template] = retry{wait: wait, until: time.Now().Add(wait)}
}

// claims reports whether r leaves so much open that a pooled sandbox will do.
func (r Request) claims() bool {
	return r.Name == "" && r.Template != "" && r.Image == "" && r.Limits == Limits{} && len(r.Env) == 0
}
