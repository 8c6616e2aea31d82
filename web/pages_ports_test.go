package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestPorts_TheMenuHasWhatListensIsDeclaredOrOpenToOthers(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.Spec.Template = "node-api" })
	s.declare("mine", catalog.Service{Name: "docs", Command: []string{"true"}, Port: 8001})
	s.rooms.listen(wire.PortOpen{Port: 3000, Process: "node"}, wire.PortOpen{Port: 5432, Process: "<b>postgres"})
	if err := s.ports.Set(t.Context(), box, 9000, sandbox.Public); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range s.get("ada", "/sandboxes/mine").all("div.port-line") {
		line := attr(n, "data-port") + " " + textOf(in(n, "span.clip"))
		if hasAttr(n, "data-open") {
			line += " open"
		}
		got = append(got, line+" "+strings.Split(attr(in(n, "a.port-who"), "aria-label"), ".")[0])
	}
	want := "3000 API open Private; 5432 <b>postgres open Private; 8001 docs Private; 9000 Port Public"
	if strings.Join(got, "; ") != want {
		t.Errorf("menu %s, want %s", strings.Join(got, "; "), want)
	}
}

func TestPorts_ShowUpAsTheyOpen(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	page := s.get("ada", "/sandboxes/mine")
	if !hasAttr(page.need("#ws-ports"), "data-live") {
		t.Error("the menu does not know what listens")
	}
	f, first := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	if has(first, "ws-links outerHTML") {
		t.Error("what the page shows is sent again")
	}
	s.rooms.listen(wire.PortOpen{Port: 3000, Process: "node"})
	if e := f.next(); !has(e, "ws-links outerHTML") || !strings.Contains(e, `data-port="3000" data-open`) {
		t.Errorf("brings %s", e)
	}
	s.rooms.listen()
	if e := f.next(); !has(e, "ws-links outerHTML") || strings.Contains(e, `data-port="3000"`) {
		t.Errorf("brings %s", e)
	}
	box.State = sandbox.Frozen
	s.boxes.report(box, sandbox.Progress{})
	if e := f.until(`"#ws-links"`); strings.Contains(e, "data-live") {
		t.Error("what listens in a frozen sandbox is said to be known")
	}
}

func TestPorts_AreMadePublicAndPrivateAgain(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	page := s.get("ada", "/sandboxes/mine/ports/3000").is(http.StatusOK)
	for _, words := range []string{"Only people who may use this sandbox", "no terminal, no files", "without signing in", "Creating one shares the port"} {
		if !strings.Contains(textOf(page.need("main")), words) {
			t.Errorf("does not say %q", words)
		}
	}
	done := s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "public")).is(http.StatusOK)
	if !s.ports.Public(box.ID, 3000) || !strings.Contains(textOf(done.need("main")), "Port 3000 is public.") {
		t.Errorf("says %s", textOf(done.need("main")))
	}
	sheet := s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "private"), "HX-Request", "true",
		"HX-Current-URL", "http://localhost:8080/sandboxes/mine").is(http.StatusOK)
	if s.ports.Public(box.ID, 3000) || !has(sheet.Body.String(), "ws-ports outerHTML") {
		t.Errorf("answers %s", sheet.Body)
	}
	again := s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "everybody")).is(http.StatusBadRequest)
	if !strings.Contains(textOf(again.need("main")), "private") {
		t.Errorf("says %s", textOf(again.need("main")))
	}
	for _, path := range []string{"0", "65536", "x", "-1", "99999999999999999999"} {
		s.get("ada", "/sandboxes/mine/ports/"+path).is(http.StatusNotFound)
	}
	s.get("bob", "/sandboxes/mine/ports/3000").is(http.StatusNotFound)
	for _, path := range []string{"", "/share", "/shares/x/revoke"} {
		s.post("bob", "/sandboxes/mine/ports/3000"+path, fields("visibility", "public", "ttl", "1h")).is(http.StatusNotFound)
	}
	if len(s.ports.List(box.ID)) != 0 {
		t.Errorf("open: %+v", s.ports.List(box.ID))
	}
}

func TestPorts_TheSheetDrawsAnewOnlyWhatThePageBehindItHas(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.put("ada", "still", func(b *sandbox.Sandbox) { b.State = sandbox.Stopped })
	for _, c := range []struct{ name, behind, brings string }{
		{"mine", "/sandboxes/mine?port=3000", "ws-ports outerHTML"},
		{"mine", "/sandboxes/mine/services", "ports outerHTML"},
		{"mine", "/sandboxes/mine/ports/3000", ""},
		{"mine", "/sandboxes/other/services", ""},
		{"still", "/sandboxes/still", ""},
		{"still", "/sandboxes/still/services", "ports outerHTML"},
	} {
		sheet := s.get("ada", "/sandboxes/"+c.name+"/ports/3000", "HX-Request", "true", "HX-Current-URL", "http://localhost:8080"+c.behind).is(http.StatusOK)
		if got := strings.Join(targets(sheet.Body.String()), ", "); got != c.brings {
			t.Errorf("over %s it brings %q, want %q", c.behind, got, c.brings)
		}
	}
}

func TestPorts_ALinkIsShownOnceAndCanBeRevoked(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	made := s.post("ada", "/sandboxes/mine/ports/3000/share", fields("ttl", "24h", "label", "Grace"), "HX-Request", "true").is(http.StatusOK)
	link := attr(made.need("#share-url"), "value")
	prefix, secret, _ := strings.Cut(link, "#")
	if prefix != "http://3000-mine.localhost:8080/.sandboxd/share" || len(secret) < 40 {
		t.Errorf("link %s", link)
	}
	if _, _, ok := s.ports.Redeem(box.ID, 3000, secret); !ok {
		t.Error("the link opens nothing")
	}
	page := s.get("ada", "/sandboxes/mine/ports/3000").is(http.StatusOK)
	if strings.Contains(page.Body.String(), secret) || !strings.Contains(textOf(page.need("main")), "Grace created") {
		t.Errorf("shows %s", textOf(page.need("main")))
	}
	for _, c := range []struct{ ttl, label, fault string }{
		{"1s", "", "#share-ttl-fault"}, {"soon", "", "#share-ttl-fault"}, {"24h", strings.Repeat("x", 500), "#share-label-fault"},
	} {
		again := s.post("ada", "/sandboxes/mine/ports/3000/share", fields("ttl", c.ttl, "label", c.label)).is(http.StatusBadRequest)
		if textOf(again.need(c.fault)) == "" || attr(again.need("#share-label"), "value") != c.label {
			t.Errorf("%s: %s", c.ttl, textOf(again.need("main")))
		}
	}
	id := s.ports.List(box.ID)[0].Shares[0].ID
	last := s.post("ada", "/sandboxes/mine/ports/3000/shares/"+id+"/revoke", nil).is(http.StatusOK)
	if says := textOf(last.doc); !strings.Contains(says, "No links.") || strings.Contains(says, "Creating one") {
		t.Errorf("without links it says %q", says)
	}
	if _, _, ok := s.ports.Redeem(box.ID, 3000, secret); ok {
		t.Error("a revoked link opens the port")
	}
	s.post("ada", "/sandboxes/mine/ports/3000/shares/"+id+"/revoke", nil).is(http.StatusNotFound)
}
