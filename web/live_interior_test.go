package web

import (
	"context"
	"net/http"
	"testing"

	"sandboxd/internal/wire"
)

func TestLive_NothingOfAnotherSandboxOfTheNameIsTold(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	h := s.handle("mine")
	s.access.replace()
	s.rooms.listen(wire.PortOpen{Port: 4321})
	pages := map[string]livePage{
		"workspace": &liveWorkspace{interior: interior{s.server, h}},
		"services":  &liveServices{interior: interior{s.server, h}},
	}
	for name, page := range pages {
		ctx, cancel := context.WithCancel(t.Context())
		_, before := s.access.count()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			page.beside(ctx, func(n news) {
				if n.volume == nil && (n.backup == nil || !anyBackup(n.backup)) && (n.update == nil || n.update.Run.ID != "") {
					t.Errorf("the page of the %s is told %+v", name, n)
				}
			})
		}()
		asks := map[string]int{"workspace": 1, "services": 2}[name] // what listens, and how the services stand
		until(t, name+" asks", func() bool { _, now := s.access.count(); return now >= before+asks })
		cancel()
		<-ended
	}
}

func TestLiveServices_OfAnotherSandboxOfTheNameIsNotBegun(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	topic := s.topicOf("ada", "/sandboxes/mine/services")
	s.access.replace()
	if p := s.refused("ada", topic); p.Status != http.StatusGone {
		t.Errorf("told %+v", p)
	}
}
