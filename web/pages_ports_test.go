package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestPorts_TheMenuHasWhatListensIsDeclaredOrOpenToOthers(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.Spec.Template = "node-api" })
	s.declare("mine", catalog.Service{Name: "docs", Command: []string{"true"}, Port: 8001})
	s.rooms.listen(wire.PortOpen{Port: 3000, Process: "node"}, wire.PortOpen{Port: 5432, Process: "<b>postgres"}, wire.PortOpen{Port: 8001, Process: "docs"})
	if err := s.ports.Set(t.Context(), box, 9000, sandbox.Public); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range s.get("ada", "/sandboxes/mine").all("div.port-line") {
		line := attr(n, "data-port") + " " + textOf(in(n, "span.clip"))
		if hasAttr(n, "data-open") {
			line += " open"
		}
		if hasAttr(n, "data-service") { // it is not offered when it opens
			line += " service"
		}
		got = append(got, line+" "+attr(in(n, "a.port-who"), "data-who"))
	}
	want := "3000 API open Private; 5432 <b>postgres open Private; 8001 docs open service Private; 9000 Port Public"
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
	for _, words := range []string{"Only people who may use this sandbox", "no terminal, no files", "Anyone who knows the address", "Link expires after"} {
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
	for _, path := range []string{"", "/shares/x/revoke"} {
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
	s.server.cfg.Now = time.Now // the ports count a link's hours by it
	box := s.put("ada", "mine", nil)
	made := s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "shared", "ttl", "24h", "label", "Grace"), "HX-Request", "true").is(http.StatusOK)
	link := attr(made.need("#share-url"), "value")
	prefix, secret, _ := strings.Cut(link, "#")
	if prefix != "http://3000-mine.localhost:8080/.sandboxd/share" || len(secret) < 40 {
		t.Errorf("link %s", link)
	}
	if len(made.all("figure.qr")) != 0 {
		t.Error("a phone is sent to its own localhost")
	}
	if _, _, ok := s.ports.Redeem(box.ID, 3000, secret); !ok {
		t.Error("the link opens nothing")
	}
	page := s.get("ada", "/sandboxes/mine/ports/3000").is(http.StatusOK)
	if says := textOf(page.need("main")); strings.Contains(page.Body.String(), secret) || !strings.Contains(says, "Grace opens port 3000 only expires in") {
		t.Errorf("shows %s", says)
	}
	id := s.ports.List(box.ID)[0].Shares[0].ID
	last := s.post("ada", "/sandboxes/mine/ports/3000/shares/"+id+"/revoke", nil).is(http.StatusOK)
	if got := openToNow(last); got != "private current" {
		t.Errorf("without links the sheet shows %s", got)
	}
	if _, _, ok := s.ports.Redeem(box.ID, 3000, secret); ok {
		t.Error("a revoked link opens the port")
	}
	s.post("ada", "/sandboxes/mine/ports/3000/shares/"+id+"/revoke", nil).is(http.StatusNotFound)
}

// openToNow is what the sheet of a port has chosen, and what it says of the port now if that is another.
func openToNow(v view) string {
	var choice, current string
	for _, n := range v.all("input") {
		if attr(n, "name") != "visibility" {
			continue
		}
		if hasAttr(n, "checked") {
			choice = attr(n, "value")
		}
		if hasAttr(n, "data-current") {
			current = attr(n, "value")
		}
	}
	if choice == current {
		return choice + " current"
	}
	return choice + " not " + current
}

func TestPorts_TheSheetHasOneFormWithWhatIsCurrentMarked(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	sheet := func(query, want string) {
		t.Helper()
		page := s.get("ada", "/sandboxes/mine/ports/3000"+query).is(http.StatusOK)
		if got := openToNow(page); got != want || strings.Count(textOf(page.need("main")), "Current") != 1 {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	sheet("", "private current")
	sheet("?choice=public", "public not private")
	sheet("?choice=everybody", "private current")
	for _, c := range []struct{ ttl, custom, label, fault string }{
		{"1s", "", "", "#share-ttl-fault"}, {"soon", "", "", "#share-ttl-fault"}, {"custom", "soon", "Grace", "#share-ttl-fault"},
		{"custom", "", "Grace", "#share-ttl-fault"}, {"24h", "", strings.Repeat("x", 500), "#share-label-fault"},
	} {
		again := s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "shared", "ttl", c.ttl, "ttl_custom", c.custom, "label", c.label)).is(http.StatusBadRequest)
		if textOf(again.need(c.fault)) == "" || attr(again.need("#share-label"), "value") != c.label || attr(again.need("#share-ttl-custom"), "value") != c.custom || openToNow(again) != "shared not private" {
			t.Errorf("%s %s: %s", c.ttl, c.custom, textOf(again.need("main")))
		}
	}
	s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "public")).is(http.StatusOK)
	sheet("", "public current")
	s.post("ada", "/sandboxes/mine/ports/3000", fields("visibility", "shared", "ttl", "custom", "ttl_custom", "90m")).is(http.StatusOK)
	sheet("", "shared current")
	p := s.ports.List(box.ID)[0]
	if s.ports.Public(box.ID, 3000) || len(p.Shares) != 1 || p.Shares[0].Expires.Sub(p.Shares[0].Created) != 90*time.Minute {
		t.Errorf("a link to a public port leaves it so, or lasts for another time: %+v", p)
	}
	if says := textOf(s.get("ada", "/sandboxes/mine/ports/3000").need("main")); !strings.Contains(says, "Its link stops working.") || !strings.Contains(says, "this computer only") {
		t.Errorf("it does not say what private ends, or where links work: %s", says)
	}
}

func TestPorts_TheSheetSaysWhatSleepEnds(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.put("ada", "awake", func(b *sandbox.Sandbox) { b.Rest.StopAfter = catalog.Never })
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"true"}, Port: 3000, Autostart: true}, catalog.Service{Name: "docs", Command: []string{"true"}, Port: 8001})
	const want = "Unused, the sandbox sleeps after 4 h. Opening the port wakes it, but programs started by hand do not come back; services do."
	for path, want := range map[string]string{"/sandboxes/mine/ports/3000": "", "/sandboxes/mine/ports/8001": want, "/sandboxes/mine/ports/5000": want, "/sandboxes/awake/ports/5000": ""} {
		got := ""
		if n := s.get("ada", path).is(http.StatusOK).find("p.port-sleeps"); n != nil {
			got = textOf(n)
		}
		if got != want {
			t.Errorf("%s says %q, want %q", path, got, want)
		}
	}
}

func TestShare_AsksForThePortAndLeadsOnToItsForm(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	if link := s.get("ada", "/sandboxes/mine").need("a.share"); attr(link, "href") != "/sandboxes/mine/share?sandbox_id="+box.ID {
		t.Errorf("the header leads to %s", attr(link, "href"))
	}
	asked := s.get("ada", "/sandboxes/mine/share?port=30000x").is(http.StatusOK)
	if field := asked.need("#share-port"); attr(field, "value") != "30000x" || attr(field, "aria-invalid") != "true" {
		t.Errorf("what was typed: %v", field.Attr)
	}
	form := s.get("ada", "/sandboxes/mine/share?port=3000").is(http.StatusOK)
	if got := textOf(form.need("#port-title")); got != "Share port 3000 of mine" {
		t.Errorf("it leads to %q", got)
	}
	s.get("bob", "/sandboxes/mine/share?port=3000").is(http.StatusNotFound)
}
