package web

import (
	"context"
	"maps"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// openPortsShape is the ports of a sandbox as programs see them, in ascending order.
type openPortsShape struct {
	Ports []openPortShape `json:"ports"`
	Known bool            `json:"listening_known"` // false when the sandbox does not tell what listens: more may than is listed
}

// openPortShape is a port on which something listens, that is declared, or that is not private.
type openPortShape struct {
	Port       int                `json:"port"`
	Listening  *bool              `json:"listening"`   // false while the sandbox does not run, null when it cannot be told
	Process    string             `json:"process"`     // that listens; "" when that cannot be told
	Service    string             `json:"service"`     // that declares it, or ""
	Title      string             `json:"title"`       // that its template gives it, or ""
	Visibility sandbox.Visibility `json:"visibility"`  // private, shared or public
	URL        string             `json:"url"`         // of the port
	ServiceURL string             `json:"service_url"` // the same by the service's name, or ""
	Shares     []shareShape       `json:"shares"`      // links that have not ended, oldest first
}

// shareShape is a link to a port. Its secret is told once, to who makes it.
type shareShape struct {
	ID      string    `json:"id"`
	Label   string    `json:"label"`
	By      string    `json:"by"` // user name; "" for one who is gone
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// newShareReply is a link that has just been made.
type newShareReply struct {
	shareShape
	URL    string `json:"url"`    // for people
	Secret string `json:"secret"` // for programs, as a header
}

func newShareShape(ctx context.Context, names *owners, h sandbox.Share) (shareShape, error) {
	by, err := names.name(ctx, h.Owner)
	return shareShape{ID: h.ID, Label: h.Label, By: by, Created: h.Created.UTC(), Expires: h.Expires.UTC()}, err
}

// openPort is a port of which nothing more is known.
func (s *portHandlers) openPort(name string, port int) openPortShape {
	return openPortShape{Port: port, Visibility: sandbox.Private, URL: s.cfg.Hosts.PortURL(name, port), Shares: []shareShape{}}
}

// find gives the port of that number, or other when it is not listed.
func (l openPortsShape) find(port int, other openPortShape) openPortShape {
	for _, p := range l.Ports {
		if p.Port == port {
			return p
		}
	}
	if l.Known {
		other.Listening = new(bool)
	}
	return other
}

// portsOf merges the ports that listen in a sandbox, that its template and its services declare, and that are not private.
func (s *portHandlers) portsOf(ctx context.Context, h access.Handle) (openPortsShape, error) {
	box := h.Sandbox()
	all := map[int]openPortShape{}
	note := func(port int, change func(p *openPortShape)) {
		p, ok := all[port]
		if !ok {
			p = s.openPort(box.Name, port)
		}
		change(&p)
		all[port] = p
	}
	listening, known, err := s.listening(ctx, h)
	if err != nil {
		return openPortsShape{}, err
	}
	for _, one := range listening {
		note(one.Port, func(p *openPortShape) { p.Process = one.Process })
	}
	if t, err := s.cfg.Templates.Template(box.Spec.Template); err == nil { // one that is gone declares nothing
		for _, one := range t.Ports {
			note(one.Number, func(p *openPortShape) { p.Title = one.Title })
		}
	}
	for _, one := range s.cfg.Sandboxes.Services(box) {
		if one.Port != 0 {
			note(one.Port, func(p *openPortShape) {
				p.Service, p.ServiceURL = one.Name, s.cfg.Hosts.ServiceURL(one.Name, box.Name)
			})
		}
	}
	names := newOwners(s.cfg.Accounts)
	for _, one := range s.cfg.Ports.List(box.ID) {
		shares := make([]shareShape, 0, len(one.Shares))
		for _, h := range one.Shares {
			shape, err := newShareShape(ctx, names, h)
			if err != nil {
				return openPortsShape{}, err
			}
			shares = append(shares, shape)
		}
		note(one.Number, func(p *openPortShape) { p.Visibility, p.Shares = one.Visibility, shares })
	}
	out := openPortsShape{Ports: make([]openPortShape, 0, len(all)), Known: known}
	for _, number := range slices.Sorted(maps.Keys(all)) {
		port := all[number]
		if known {
			listens := slices.ContainsFunc(listening, func(one wire.PortOpen) bool { return one.Port == number })
			port.Listening = &listens
		}
		out.Ports = append(out.Ports, port)
	}
	return out, nil
}

// listening gives what listens in a sandbox; known is false when that cannot be told: who may use its ports is shown without.
func (s *portHandlers) listening(ctx context.Context, h access.Handle) (open []wire.PortOpen, known bool, err error) {
	open, err = s.cfg.Services.Ports(ctx, h)
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) {
		return nil, false, nil
	}
	return open, err == nil, err
}
