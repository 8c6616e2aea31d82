package web

import (
	"context"
	"net/http"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/wire"
)

// renewed finds another sandbox under every name, and tells what it says to whoever asks.
type renewed struct {
	Services
	said chan error
}

func (r renewed) List(ctx context.Context, name string) (services.List, error) {
	err := sandbox.Admits(ctx, sandbox.Sandbox{ID: "somebody else's", Name: name})
	select {
	case r.said <- err:
	case <-ctx.Done():
	}
	return services.List{}, err
}

func (r renewed) WatchPorts(ctx context.Context, name string, emit func([]wire.PortOpen) error) error {
	_, err := r.List(ctx, name)
	if err != nil {
		return err
	}
	return emit([]wire.PortOpen{{Port: 4321}})
}

func TestLive_NothingOfAnotherSandboxOfTheNameIsTold(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	said := make(chan error)
	s.server.cfg.Services = renewed{said: said}
	pages := map[string]livePage{
		"workspace": &liveWorkspace{interior: s.server.interiorOf(box)},
		"services":  &liveServices{interior: s.server.interiorOf(box)},
	}
	for name, page := range pages {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			page.beside(ctx, func(n news) { t.Errorf("the page of the %s is told %+v", name, n) })
		}()
		for range map[string]int{"workspace": 1, "services": 2}[name] { // what listens, and how the services stand
			if err := <-said; !fault.Is(err, fault.Gone) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancel()
		<-ended
	}
}

func TestLiveServices_OfAnotherSandboxOfTheNameIsNotBegun(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	topic := s.topicOf("ada", "/sandboxes/mine/services")
	said := make(chan error, 1)
	s.server.cfg.Services = renewed{said: said}
	if p := s.refused("ada", topic); p.Status != http.StatusGone {
		t.Errorf("told %+v", p)
	}
	if err := <-said; !fault.Is(err, fault.Gone) {
		t.Errorf("got %v", err)
	}
}
