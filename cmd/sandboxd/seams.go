package main

import (
	"context"
	"net/http"
	"net/netip"

	"sandboxd/internal/catalog"
	"sandboxd/internal/hostname"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// openDelivery puts together what people and programs ask.
func openDelivery(ctx context.Context, a *app) (err error) {
	if a.models, err = newModels(ctx, a); err != nil {
		return err
	}
	a.handler, err = a.newHandler()
	return err
}

// guests is the hub in the domain's words.
type guests struct{ hub *link.Hub }

// Expect implements sandbox.Guests.
func (g guests) Expect(id string, s sandbox.Setup) (string, error) {
	services := make([]wire.Service, 0, len(s.Services))
	for _, v := range s.Services {
		services = append(services, wireService(v))
	}
	return g.hub.Expect(id, wire.Setup{Name: s.Name, Env: s.Env, Services: services, IDE: s.IDE, MachineID: s.MachineID,
		Models: true})
}

func wireService(v catalog.Service) wire.Service {
	out := wire.Service{Name: v.Name, Command: v.Command, Port: v.Port, Cwd: v.Cwd, Env: v.Env, Autostart: v.Autostart}
	if v.Health != nil {
		out.Health = &wire.Health{Path: v.Health.Path, Interval: v.Health.Interval}
	}
	return out
}

// Ready implements sandbox.Guests.
func (g guests) Ready(ctx context.Context, id string) error { return g.hub.Ready(ctx, id) }

// HangUp implements sandbox.Guests.
func (g guests) HangUp(ctx context.Context, id string) error { return g.hub.HangUp(ctx, id) }

// Forget implements sandbox.Guests.
func (g guests) Forget(id string) error { return g.hub.Forget(id) }

// split sends a request to the dashboard or to the sandboxes' proxy, by its Host. A Host that is none of ours is
// refused by the latter, so that no foreign name that points here (DNS rebinding) reaches anything.
type split struct {
	hosts     hostname.Hosts
	dashboard http.Handler
	boxes     http.Handler
	trusted   []netip.Prefix // proxies whose word on who asks is believed
}

// ServeHTTP implements http.Handler.
func (s split) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if target, err := s.hosts.Parse(r.Host); err == nil && target.Kind == hostname.Dashboard {
		s.dashboard.ServeHTTP(w, s.fromClient(r))
		return
	}
	s.boxes.ServeHTTP(w, r) // also unknown hosts: it answers them
}

// fromClient sets RemoteAddr to the client's address, also behind a trusted proxy: login attempts are counted by it.
func (s split) fromClient(r *http.Request) *http.Request {
	client := hostname.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"), s.trusted)
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !client.IsValid() || client == peer.Addr().Unmap() {
		return r
	}
	r = r.WithContext(r.Context())
	r.RemoteAddr = netip.AddrPortFrom(client, peer.Port()).String()
	return r
}
