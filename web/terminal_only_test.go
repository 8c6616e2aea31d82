package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sandboxd/internal/catalog"
)

func TestTerminalsAndServices_WhoMayUseOneSandboxUsesNoOtherOfItsName(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"true"}})
	s.access.replace()
	server := httptest.NewServer(s.server)
	defer server.Close()
	for _, query := range []string{"", "?wake=0"} {
		_, res, err := s.viewer(server, "ada", "/sandboxes/mine/terminals/main/ws"+query, server.URL)
		if err == nil || res.StatusCode != http.StatusGone {
			t.Errorf("a terminal%s: %v, %v", query, res, err)
		}
	}
	s.get("ada", "/sandboxes/mine/terminals").is(http.StatusGone)
	s.get("ada", "/sandboxes/mine/terminals/main/text").is(http.StatusGone)
	s.post("ada", "/sandboxes/mine/terminals/main/close", nil).is(http.StatusGone)
	s.post("ada", "/sandboxes/mine/services/web/stop", nil).is(http.StatusGone)
	if p := s.refused("ada", "/sandboxes/mine/services"); p.Status != http.StatusGone {
		t.Errorf("told %+v", p)
	}
	if len(s.terminals.closed) != 0 || len(s.rooms.asked()) != 0 {
		t.Errorf("done: %v, %v", s.terminals.closed, s.rooms.asked())
	}
}
