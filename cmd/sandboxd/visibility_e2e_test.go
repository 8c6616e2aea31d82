//go:build e2e

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"
)

// shareReplyBody is what the API tells of a link that has been made.
type shareReplyBody struct {
	ID, URL, Secret string
	Expires         time.Time
}

// sharePort makes a link to a port of lab.
func (s *server) sharePort(port, ttl string) shareReplyBody {
	s.t.Helper()
	var out shareReplyBody
	if status := s.call("POST", "/sandboxes/lab/ports/"+port+"/shares", map[string]any{"ttl": ttl, "label": "e2e"}, &out); status != http.StatusCreated {
		s.t.Fatalf("share: %d\n%s", status, s.tail())
	}
	return out
}

func (s *server) setVisibility(port, visibility string) {
	s.t.Helper()
	if status, text := s.raw("PUT", "/sandboxes/lab/ports/"+port, map[string]any{"visibility": visibility}); status != http.StatusOK {
		s.t.Fatalf("make %s %s: %d %s", port, visibility, status, text)
	}
}

// anonymous asks a sandbox's host for something with nothing but these headers.
func (s *server) anonymous(client *http.Client, url string, header http.Header) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", url, err, s.tail())
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s: %v", url, err)
	}
	return resp.StatusCode, string(text)
}

// outsider sends a request without a session or a token to a host of this server.
func (s *server) outsider(sub, path string, header http.Header) (int, string) {
	s.t.Helper()
	return s.anonymous(straight(s.addr), "http://"+s.host(sub)+path, header)
}

// submits posts something, as nobody does by itself: that wakes a sandbox that was put to rest by hand a moment ago.
func (s *server) submits(origin string, client *http.Client, header http.Header) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", origin+"/sum", strings.NewReader("something"))
	if err != nil {
		s.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// wantStatus wants a status of such a request.
func (s *server) wantStatus(what, sub, path string, header http.Header, status int) string {
	s.t.Helper()
	got, text := s.outsider(sub, path, header)
	if got != status {
		s.t.Errorf("%s: %s%s answers %d, want %d: %.300s", what, sub, path, got, status, text)
	}
	return text
}

// openSocket opens the echo service's WebSocket with nothing but these headers.
func (s *server) openSocket(header http.Header) *websocket.Conn {
	s.t.Helper()
	d := websocket.Dialer{NetDialContext: straight(s.addr).Transport.(*http.Transport).DialContext}
	conn, _, err := d.DialContext(s.t.Context(), "ws://"+s.host(echoPort+"-lab")+"/ws", header)
	if err != nil {
		s.t.Fatalf("dial: %v\n%s", err, s.tail())
	}
	s.t.Cleanup(func() { conn.Close() })
	s.echoes(conn, "here")
	return conn
}

// ends wants a WebSocket to be cut.
func (s *server) ends(what string, conn *websocket.Conn) {
	s.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(eventLimit))
	if _, _, err := conn.ReadMessage(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Errorf("%s: the WebSocket is still open: %v", what, err)
	}
}

// TestVisibility_PrivatePublicShared is the life of a port's visibility, as programs see it.
func TestVisibility_PrivatePublicShared(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	others := func(what string, header http.Header) {
		t.Helper()
		for _, sub := range []string{"lab", "code-lab", "3001-lab", "22-lab"} {
			s.wantStatus(what, sub, "/", header, http.StatusUnauthorized)
		}
	}
	const lab = echoPort + "-lab"
	s.wantStatus("private", lab, "/small", nil, http.StatusUnauthorized)
	s.wantStatus("private", "echo--lab", "/small", nil, http.StatusUnauthorized)
	s.wantStatus("private, a person", lab, "/", http.Header{"Accept": {"text/html"}}, http.StatusSeeOther)

	s.setVisibility(echoPort, "public")
	for _, state := range []string{"frozen", "asleep"} {
		s.sleeps("lab", state)
		others("public "+state, nil)
		if got := s.rest("lab").State; got != state {
			t.Errorf("what is private made it %s", got)
		}
		if status, text := s.submits("http://"+s.host(lab), straight(s.addr), nil); status != http.StatusOK {
			t.Errorf("public %s: %d %.300s", state, status, text)
		}
	}
	s.wantStatus("public, by its service", "echo--lab", "/small", nil, http.StatusOK)
	conn := s.openSocket(http.Header{"Origin": {"https://elsewhere.example"}})
	s.setVisibility(echoPort, "private")
	s.wantStatus("private again", lab, "/small", nil, http.StatusUnauthorized)
	s.ends("private again", conn)

	link := s.sharePort(echoPort, "1h")
	secret := http.Header{"X-Sandboxd-Share": {link.Secret}}
	s.sleeps("lab", "asleep")
	others("shared", secret)
	s.wantStatus("shared, without", lab, "/small", nil, http.StatusUnauthorized)
	if text := s.wantStatus("shared", lab, "/head", secret, http.StatusOK); strings.Contains(text, link.Secret) || strings.Contains(text, "X-Sandboxd") {
		t.Errorf("the program is told:\n%s", text)
	}
	conn = s.openSocket(secret)
	if status, text := s.raw("DELETE", "/sandboxes/lab/ports/"+echoPort+"/shares/"+link.ID, nil); status != http.StatusNoContent {
		t.Errorf("revoke: %d %s", status, text)
	}
	s.wantStatus("revoked", lab, "/small", secret, http.StatusUnauthorized)
	s.ends("revoked", conn)

	brief := s.sharePort(echoPort, "10s")
	conn = s.openSocket(http.Header{"X-Sandboxd-Share": {brief.Secret}})
	s.ends("expired", keepOpen(t, conn, brief.Expires))
	s.wantStatus("expired", lab, "/small", http.Header{"X-Sandboxd-Share": {brief.Secret}}, http.StatusUnauthorized)
}

// keepOpen says something every second until then, which must be answered.
func keepOpen(t *testing.T, conn *websocket.Conn, until time.Time) *websocket.Conn {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Until(until) > time.Second {
		if err := conn.WriteMessage(websocket.TextMessage, []byte("still here")); err != nil {
			t.Fatalf("%s before its end: %v", time.Until(until), err)
		}
		if _, _, err := conn.ReadMessage(); err != nil {
			t.Fatalf("%s before its end: %v", time.Until(until), err)
		}
		<-tick.C
	}
	return conn
}

// TestVisibility_IsKeptAndGoesWithTheSandbox looks at a port after a restart of sandboxd, a new label, and a new sandbox of
// the same name.
func TestVisibility_IsKeptAndGoesWithTheSandbox(t *testing.T) {
	t.Parallel()
	program := echoProgram(t)
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", program)
	const lab = echoPort + "-lab"
	link := s.sharePort(echoPort, "1h")
	secret := http.Header{"X-Sandboxd-Share": {link.Secret}}
	s.call("PATCH", "/sandboxes/lab", map[string]any{"label": "Something else"}, nil)
	s.stop()
	s.start()
	s.wantStatus("after a restart", lab, "/small", secret, http.StatusOK)
	s.wantStatus("after a restart, without", lab, "/small", nil, http.StatusUnauthorized)
	s.setVisibility(echoPort, "public")
	s.stop()
	s.start()
	s.wantStatus("public after a restart", lab, "/small", nil, http.StatusOK)
	s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil)
	s.wantStatus("deleted", lab, "/small", nil, http.StatusUnauthorized)
	s.createEcho("lab", program)
	s.wantStatus("a new one of the name", lab, "/small", nil, http.StatusUnauthorized)
	s.wantStatus("a new one of the name, with the old link", lab, "/small", secret, http.StatusUnauthorized)
	var list struct {
		Ports []struct{ Visibility, Service string }
	}
	s.call("GET", "/sandboxes/lab/ports", nil, &list)
	for _, p := range list.Ports {
		if p.Visibility != "private" {
			t.Errorf("a new sandbox inherits %+v", p)
		}
	}
}

// TestVisibility_ServicesHaveHosts reaches a service by its name, also one that is declared later, and at its former host.
func TestVisibility_ServicesHaveHosts(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	bearer := http.Header{"Authorization": {"Bearer " + s.token}}
	if text := s.wantStatus("the service", "echo--lab", "/x", bearer, http.StatusOK); !strings.Contains(text, "Here is echo--lab.localhost:"+s.port()) {
		t.Errorf("it shows %s", text)
	}
	s.wantStatus("no service", "other--lab", "/", bearer, http.StatusNotFound)
	s.wantStatus("the service's former host", "echo-lab", "/x", bearer, http.StatusTemporaryRedirect)
	status, text := s.raw("PUT", "/sandboxes/lab/services/second", map[string]any{"command": []string{"/home/agent/echo", ":4000"}, "port": 4000})
	if status != http.StatusCreated {
		t.Fatalf("declare: %d %s", status, text)
	}
	s.until("the new service answers at its host", func() bool {
		status, _ := s.outsider("second--lab", "/small", bearer)
		return status == http.StatusOK
	})
	s.sleeps("lab", "asleep")
	s.wantStatus("the service of a sleeping sandbox", "echo--lab", "/small", bearer, http.StatusOK)
	var list struct {
		Ports []struct {
			Port       int
			Listening  bool
			Service    string
			ServiceURL string `json:"service_url"`
		}
	}
	s.until("both ports are listed as open", func() bool {
		s.call("GET", "/sandboxes/lab/ports", nil, &list)
		return len(list.Ports) == 2 && list.Ports[0].Listening && list.Ports[1].Listening
	})
	if p := list.Ports[1]; p.Port != 4000 || p.Service != "second" || p.ServiceURL != "http://second--lab.localhost:"+s.port()+"/" {
		t.Errorf("listed is %+v", p)
	}
	s.wantStatus("VS Code that is off", "code-lab", "/", bearer, http.StatusConflict)
}

// TestVisibility_ALinkInABrowser is what the person sees who is given a link.
func TestVisibility_ALinkInABrowser(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	host := "http://" + s.host(echoPort+"-lab")
	link := s.sharePort(echoPort, "1h")
	p := newPerson(t)
	s.sleeps("lab", "asleep")
	p.does("open the link without its end", chromedp.Navigate(host+"/.sandboxd/share"))
	p.sees("that it is not complete", `document.querySelector("h1").innerText === "This link is not complete"`)
	p.pictures("share-incomplete")
	p.does("open a link that is none", chromedp.Navigate("about:blank"), chromedp.Navigate(host+"/.sandboxd/share#"+strings.Repeat("A", 43)))
	p.sees("that it does not work", `document.querySelector("h1").innerText === "This link does not work" && location.hash === ""`)
	p.pictures("share-wrong")
	if got := s.rest("lab").State; got != "asleep" {
		t.Errorf("the link's page made it %s", got)
	}
	p.does("open the link", chromedp.Navigate("about:blank"), chromedp.Navigate(link.URL))
	shows := fmt.Sprintf(`document.querySelector("h1")?.innerText === "Here is %s" && location.href === %q`, s.host(echoPort+"-lab"), host+"/")
	p.sees("the shared page", shows)
	if entries := p.reads(`JSON.stringify([document.cookie, document.referrer, navigation.entries().map((e) => e.url)])`); strings.Contains(entries, link.Secret) {
		t.Errorf("the page can read the link: %s", entries)
	}
	p.does("go on to another page", chromedp.Navigate(host+"/some/page"))
	p.sees("that one", `document.querySelector("#path")?.innerText === "/some/page"`)
	p.reads(`void fetch("/head").then((r) => r.text()).then((text) => { window.head = text })`)
	p.sees("what the program is told of it", `typeof window.head === "string" && !window.head.includes("sandboxd")`)
	other := p.window()
	for _, sub := range []string{"3001-lab", "lab", "code-lab", "echo--lab"} {
		other.does("try "+sub, chromedp.Navigate("http://"+s.host(sub)+"/"))
		other.sees("the login at "+sub, at("/login"))
	}
	s.call("DELETE", "/sandboxes/lab/ports/"+echoPort+"/shares/"+link.ID, nil, nil)
	p.does("reload after its end", chromedp.Reload())
	p.sees("that it was revoked", `document.querySelector("h1").innerText === "This link was revoked"`)
	p.pictures("share-revoked")
	p.does("sign in", chromedp.Click(`nav a`))
	p.sees("the login", at("/login"))
	p.publicAsleepAndOff(s, host)
}

// publicAsleepAndOff looks at what outsiders are shown of a public port, and at VS Code's host where that is off.
func (p *person) publicAsleepAndOff(s *server, host string) {
	p.t.Helper()
	stranger := newPerson(p.t)
	s.setVisibility(echoPort, "public")
	s.sleeps("lab", "asleep")
	stranger.does("open a public port", chromedp.Navigate(host+"/public"))
	stranger.sees("its page", `document.querySelector("#path")?.innerText === "/public"`)
	s.setVisibility("3999", "public")
	stranger.does("open one where nothing listens", chromedp.Navigate("http://"+s.host("3999-lab")+"/"))
	stranger.sees("that nothing is there, and no more", `document.querySelector("h1").innerText === "Nothing is served here now" && document.querySelectorAll("a").length === 0`)
	stranger.pictures("public-nothing")
	s.call("POST", "/sandboxes/lab/stop?wait=stopped", nil, nil)
	stranger.does("open the public port", chromedp.Navigate(host+"/"))
	stranger.sees("that it is stopped", `document.querySelector("h1").innerText === "lab is stopped"`)
	stranger.pictures("public-stopped")
	s.call("POST", "/sandboxes/lab/start?wait=ready", nil, nil)
	p.signsIn("http://localhost:" + s.port())
	p.does("open what is not there", chromedp.Navigate("http://localhost:"+s.port()+"/no/such/page"))
	p.sees("so, and the way on", `document.querySelector("h1").innerText.startsWith("Not found") && document.querySelector(".error-page a.button").pathname === "/"`)
	p.pictures("not-found")
	p.does("open VS Code", chromedp.Navigate("http://"+s.host("code-lab")+"/"))
	p.sees("that it is off, and where to switch it on", `document.querySelector("h1").innerText === "VS Code is off in lab" && document.querySelector("nav a").pathname === "/sandboxes/lab"`)
	p.pictures("code-off")
}

// TestBehind_PublicAndSharedPorts is the same by way of Traefik.
func TestBehind_PublicAndSharedPorts(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	url := "https://" + b.echoHost()
	ask := func(path string, header http.Header) (int, string) {
		return b.anonymous(b.k.client(), url+path, header)
	}
	want := func(what string, header http.Header, status int) {
		t.Helper()
		if got, text := ask("/small", header); got != status {
			t.Errorf("%s: %d, want %d: %.200s", what, got, status, text)
		}
	}
	want("private", nil, http.StatusUnauthorized)
	b.setVisibility(echoPort, "public")
	want("public, anybody", nil, http.StatusOK)
	for _, state := range []string{"frozen", "asleep"} {
		b.sleeps("lab", state)
		if status, text := b.submits(url, b.k.client(), nil); status != http.StatusOK {
			t.Errorf("public %s: %d %.200s", state, status, text)
		}
	}
	want("public, a foreign page", http.Header{"Origin": {"https://elsewhere.example"}, "Sec-Fetch-Site": {"cross-site"}}, http.StatusOK)
	b.setVisibility(echoPort, "private")
	want("private again", nil, http.StatusUnauthorized)

	link := b.sharePort(echoPort, "1h")
	if !strings.HasPrefix(link.URL, url+"/.sandboxd/share#") {
		t.Errorf("the link is %s", link.URL)
	}
	cookie := b.redeem(url, link.Secret)
	for what, header := range map[string]http.Header{"the secret": {"X-Sandboxd-Share": {link.Secret}}, "the cookie": {"Cookie": {"a=1; " + cookie}}} {
		if status, text := ask("/head", header.Clone()); status != http.StatusOK || strings.Contains(text, "andboxd") || strings.Contains(text, link.Secret) {
			t.Errorf("by %s the program is told: %d\n%s", what, status, text)
		}
	}
	want("without", nil, http.StatusUnauthorized)
	want("a neighbour's page with the cookie", http.Header{"Cookie": {cookie}, "Origin": {"https://3000-evil." + b.k.domain}, "Sec-Fetch-Site": {"same-site"}}, http.StatusForbidden)
	b.sleeps("lab", "asleep")
	if status, text := b.submits(url, b.k.client(), http.Header{"Cookie": {cookie}}); status != http.StatusOK {
		t.Errorf("asleep, by the cookie: %d %.200s", status, text)
	}
	b.call("DELETE", "/sandboxes/lab/ports/"+echoPort+"/shares/"+link.ID, nil, nil)
	want("revoked, the cookie", http.Header{"Cookie": {cookie}}, http.StatusUnauthorized)
	want("revoked, the secret", http.Header{"X-Sandboxd-Share": {link.Secret}}, http.StatusUnauthorized)
	if status, text := b.anonymous(b.k.client(), "https://"+b.k.authority("echo--lab."+b.k.domain)+"/small", http.Header{"Authorization": {"Bearer " + b.token}}); status != http.StatusOK {
		t.Errorf("the service's host: %d %.200s", status, text)
	}
}

// redeem posts a link's secret as its page does, and gives the cookie.
func (b behind) redeem(origin, secret string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), "POST", origin+"/.sandboxd/share", strings.NewReader(secret))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	resp, err := b.k.client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if cookies := resp.Cookies(); resp.StatusCode == http.StatusNoContent && len(cookies) == 1 && cookies[0].Name == "__Host-sandboxd_share" && cookies[0].Secure {
		return cookies[0].Name + "=" + cookies[0].Value
	}
	b.t.Fatalf("redeem: %s %v", resp.Status, resp.Header)
	return ""
}
