// Package visibility keeps who else may use a sandbox's port, beside the users of the sandbox: nobody (private), holders
// of a valid link (shared), or anybody (public).
//
// It knows nothing of hosts, cookies and requests (proxy does), and decides for no sandbox as a whole: what it opens is one
// port, never the terminal or VS Code, and whose it is to open one delivery has found out before.
//
// Invariant: a port without a rule is private, and a rule belongs to a sandbox's id, never to its name: a new
// sandbox inherits nothing. What a call has ended opens nothing once the call has returned. No secret is kept.
package visibility

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Bounds per sandbox. A link ends by itself, so that none is forgotten for ever.
const (
	maxPorts  = 64 // that are not private
	maxShares = 32 // of one port
	minTTL    = 10 * time.Second
	maxTTL    = 365 * 24 * time.Hour
)

// sweepEvery is how often shares are forgotten that have expired, or have gone with their sandbox.
const sweepEvery = 5 * time.Minute

// storeLimit is how long one look or write of the store may take.
const storeLimit = 5 * time.Second

// Ports says which ports are open to whom. Safe for concurrent use.
type Ports struct {
	store sandbox.PortStore
	log   *slog.Logger
	turn  chan struct{} // held while writing, so that store and memory change in the same order

	mu   sync.RWMutex
	byID map[string]map[int]port // by sandbox, by port; the inner maps and their values are never changed
}

// port is the rule and the shares of one port.
type port struct {
	visibility sandbox.Visibility
	shares     []sandbox.Share // oldest first
}

// Port is a port that is not private.
type Port struct {
	Number     int
	Visibility sandbox.Visibility
	Shares     []sandbox.Share // that have not expired, oldest first
}

// New makes the visibilities over store; log gets what no caller can be told. It does no I/O: Load does.
func New(store sandbox.PortStore, log *slog.Logger) *Ports {
	return &Ports{store: store, log: log, turn: make(chan struct{}, 1), byID: map[string]map[int]port{}}
}

// Load reads the stored rules. Until then all ports are private.
func (p *Ports) Load(ctx context.Context) error {
	return p.write(ctx, func(ctx context.Context) error {
		_, err := p.reload(ctx)
		return err
	})
}

// Run removes expired shares, until ctx ends.
func (p *Ports) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := p.Sweep(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("shares that are over are kept for now", "error", err)
		}
	}
}

// Sweep removes expired shares, and forgets those that the store has lost with their sandbox.
func (p *Ports) Sweep(ctx context.Context) error {
	return p.write(ctx, func(ctx context.Context) error {
		shares, err := p.reload(ctx)
		now := time.Now()
		for _, s := range shares {
			if err == nil && !now.Before(s.Expires) {
				err = p.store.DeleteShare(ctx, s.ID)
			}
		}
		return err
	})
}

// reload makes the memory what the store has, and gives all shares. It needs the turn.
func (p *Ports) reload(ctx context.Context) ([]sandbox.Share, error) {
	rules, shares, err := p.store.Rules(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[string]map[int]port{}
	for _, r := range rules {
		if byID[r.SandboxID] == nil {
			byID[r.SandboxID] = map[int]port{}
		}
		byID[r.SandboxID][r.Port] = port{visibility: r.Visibility}
	}
	for _, s := range shares {
		if one, ok := byID[s.SandboxID][s.Port]; ok {
			one.shares = append(one.shares, s)
			byID[s.SandboxID][s.Port] = one
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID = byID
	return shares, nil
}

// write does something in turn, bounded in time.
func (p *Ports) write(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to change a port's visibility: %w", ctx.Err())
	}
	defer func() { <-p.turn }()
	return do(ctx)
}

// of gives a port's rule and shares; the zero value for a private one.
func (p *Ports) of(sandboxID string, number int) port {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byID[sandboxID][number]
}

// keep remembers a port; the zero value makes it private.
func (p *Ports) keep(sandboxID string, number int, one port) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := maps.Clone(p.byID[sandboxID])
	if all == nil {
		all = map[int]port{}
	}
	if all[number] = one; one.visibility == "" {
		delete(all, number)
	}
	if p.byID[sandboxID] = all; len(all) == 0 {
		delete(p.byID, sandboxID)
	}
}

// List gives the ports of a sandbox that are not private, in ascending order.
func (p *Ports) List(sandboxID string) []Port {
	p.mu.RLock()
	all := p.byID[sandboxID]
	p.mu.RUnlock()
	now := time.Now()
	var out []Port
	for _, number := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Port{Number: number, Visibility: all[number].visibility, Shares: all[number].live(now)})
	}
	return out
}

// live gives the shares that have not expired.
func (p port) live(now time.Time) []sandbox.Share {
	var out []sandbox.Share
	for _, s := range p.shares {
		if now.Before(s.Expires) {
			out = append(out, s)
		}
	}
	return out
}

// Set makes a port private, shared or public. Private ends every access that was given to it before: its shares are gone.
// Shared opens it to no one as long as there is no share; one that was public keeps its shares. Invalid with
// the field ("port", "visibility"), Conflict when s is being deleted or has too many such ports, NotFound when it is gone.
func (p *Ports) Set(ctx context.Context, s sandbox.Sandbox, number int, v sandbox.Visibility) error {
	switch v {
	case sandbox.Private, sandbox.Shared, sandbox.Public:
	default:
		return fault.Field("visibility", "A port is %q, %q or %q.", sandbox.Private, sandbox.Shared, sandbox.Public)
	}
	if err := checkPort(number); err != nil {
		return err
	}
	err := p.write(ctx, func(ctx context.Context) error {
		if v == sandbox.Private {
			err := p.store.DeleteRule(ctx, s.ID, number)
			if err == nil {
				p.keep(s.ID, number, port{})
			}
			return err
		}
		if err := p.room(s, number); err != nil {
			return err
		}
		err := p.store.PutRule(ctx, sandbox.PortRule{SandboxID: s.ID, Port: number, Visibility: v})
		if err == nil {
			p.keep(s.ID, number, port{visibility: v, shares: p.of(s.ID, number).shares})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make port %d of %s %s: %w", number, s.Name, v, err)
	}
	return nil
}

func checkPort(number int) error {
	if number < 1 || number > 65535 {
		return fault.Field("port", "A port is a number between 1 and 65535.")
	}
	return nil
}

// room reports why a port of s cannot be opened, if so. It needs the turn.
func (p *Ports) room(s sandbox.Sandbox, number int) error {
	if s.State == sandbox.Deleting {
		return fault.New(fault.Conflict, "%s is being deleted.", s.Name)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, ok := p.byID[s.ID][number]; !ok && len(p.byID[s.ID]) >= maxPorts {
		return fault.New(fault.Conflict, "%s has %d ports already that are not private. Make one of them private first.", s.Name, maxPorts)
	}
	return nil
}

// Public reports whether anybody may use a port.
func (p *Ports) Public(sandboxID string, number int) bool {
	return p.of(sandboxID, number).visibility == sandbox.Public
}
