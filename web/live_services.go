package web

import (
	"context"
	"sync"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/views"
)

// servicesEvery is the time between two looks at the services while their page is open.
const servicesEvery = time.Second

// liveServices keeps the page of a sandbox's services up to date.
type liveServices struct {
	interior
	box     sandbox.Sandbox
	list    services.List
	listens listening
	gone    bool
	drawn   [3]string // prints of what the page shows: state, services, ports
}

func (s *serviceHandlers) openLiveServices(ctx context.Context, r *request) (livePage, error) {
	h, err := named(ctx, s.Server, r)
	if showsDeleted(r, err) {
		return &deletedPage{last: new(liveServices).tellGone}, nil
	}
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	list, err := s.cfg.Services.List(ctx, h)
	if err != nil {
		return nil, err
	}
	return &liveServices{interior: interior{s.Server, h}, box: box, list: list}, nil
}

// begin draws all: a page of services is small, and seldom open.
func (l *liveServices) begin(ctx context.Context, out *parts) error { return l.tell(ctx, false, out) }

// beside looks how the services stand, which nobody tells, and watches what listens.
func (l *liveServices) beside(ctx context.Context, hand func(news)) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { l.interior.beside(ctx, hand) })
	tick := time.NewTicker(servicesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if list, err := l.server.cfg.Services.List(ctx, l.handle); err == nil {
			hand(news{services: &list})
		}
	}
}

func (l *liveServices) take(n news) bool {
	switch {
	case n.box != nil && n.box.Sandbox.ID == l.box.ID:
		l.box, l.gone = n.box.Sandbox, l.gone || n.box.Deleted
	case n.services != nil:
		l.list = *n.services
	case n.ports != nil:
		l.listens = listening{open: *n.ports, known: true}
	default:
		return false
	}
	return true
}

func (l *liveServices) tell(ctx context.Context, _ bool, out *parts) error {
	if l.gone {
		l.tellGone(out)
		return nil
	}
	s := l.server.services
	state := s.workspace.state(l.box, s.cfg.Sandboxes.Progress(l.box.ID))
	list, ports := s.serviceList(ctx, l.box, l.list), s.ports.portList(l.box, l.listens)
	now := [3]string{printOf(state), printOf(l.list, l.box.State), printOf(ports)} // not how long ago something was: the page counts
	if now[0] != l.drawn[0] {
		out.add("services-state", views.Replace, views.ServicesState(state))
	}
	if now[1] != l.drawn[1] {
		out.add("services", views.Replace, views.ServicesPart(list))
	}
	if now[2] != l.drawn[2] && l.listens.known {
		out.add("ports", views.Replace, views.PortsPart(ports))
	}
	l.drawn = now
	return nil
}

// tellGone takes away all that could be done with the sandbox, once.
func (l *liveServices) tellGone(out *parts) {
	if l.drawn[0] == printOf(deletedState) {
		return
	}
	l.drawn[0] = printOf(deletedState)
	out.add("services-state", views.Replace, views.ServicesState(deletedState))
	out.add("services", views.Replace, views.ServicesGone())
	for _, id := range []string{"services-add", "ports"} {
		out.add(id, views.Remove, templ.NopComponent)
	}
}
