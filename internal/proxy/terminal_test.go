package proxy

import (
	"io"
	"net/http"
	"testing"
)

const terminal = "http://ml.localhost:8080"

// tty stands for ttyd: a page, and the address that it was asked for.
func tty(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ws" {
			echoSocket(w, r)
			return
		}
		_, _ = io.WriteString(w, name+" "+r.URL.RequestURI())
	}
}

func TestTerminal_ServesTtydBelowThePathOfItsTab(t *testing.T) {
	w := newWorld(t)
	w.serve(tabHost("main"), tty("main"))
	w.serve(tabHost("two-2"), tty("two"))
	for path, want := range map[string]string{
		"/token": "main /token", "/x%2Fy?a=1": "main /x%2Fy?a=1",
		"/t/two-2/token": "two /token", "/t/two-2/a%2Fb": "two /a%2Fb", "/t/main/token": "main /token",
	} {
		if a := w.ask("GET", terminal+path, bearer); a.StatusCode != 200 || a.body != want {
			t.Errorf("%s: %d %q, want %q", path, a.StatusCode, a.body, want)
		}
	}
	a := w.ask("GET", terminal+"/t/two-2", bearer)
	w.wantStatus(a, 303)
	if got := a.Header.Get("Location"); got != terminal+"/t/two-2/" {
		t.Errorf("Location = %q", got)
	}
}

func TestTerminal_ItsSocketIsReachedFromItsOwnPageOnly(t *testing.T) {
	w := newWorld(t)
	w.serve(tabHost("main"), tty("main"))
	w.serve(tabHost("two"), tty("two"))
	cookie := w.signIn("ml.localhost")
	for _, path := range []string{"/ws", "/t/two/ws"} {
		if _, _, err := w.dial(terminal+path, header{"Cookie", cookie, "Origin", terminal}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, res, err := w.dial(terminal+path, header{"Cookie", cookie, "Origin", port3000}); err == nil || res.StatusCode != 403 {
			t.Errorf("%s from the sandbox's own port: %v, %v", path, res, err)
		}
	}
}

func TestTerminal_BadTabNamesNeverReachTheGuest(t *testing.T) {
	w := newWorld(t)
	for _, tab := range []string{"", "-a", "A", "a_b", "a%20b", "%2e%2e", "a.b", "0123456789012345678901234567890123"} {
		a := w.ask("GET", terminal+"/t/"+tab+"/", bearer)
		if a.StatusCode != 404 || w.session.dials != 0 {
			t.Errorf("%q: %d, %d dials", tab, a.StatusCode, w.session.dials)
		}
	}
}

func TestTerminal_ATabThatTheGuestRefusesIsSaidToBeNone(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", terminal+"/t/gone/token", asPerson)
	w.wantStatus(a, 404)
	if !contains(a.body, "No such terminal") {
		t.Error(a.body)
	}
}

func TestTerminal_ThePageIsOursWithAndWithoutTtyd(t *testing.T) {
	for _, ttyd := range []bool{true, false} {
		w := newWorld(t)
		w.session.ttyd = ttyd
		w.serve(tabHost("main"), tty("main"))
		for path, base := range map[string]string{"/": "/", "/?fontSize=12": "/", "/t/two/": "/t/two/"} {
			a := w.ask("GET", terminal+path, bearer)
			w.wantStatus(a, 200)
			if !contains(a.body, `data-socket="`+base+`ws?page=sandboxd"`, `data-text="`+base+`text"`, `data-sandbox="ml"`, `<title>Terminal · ml</title>`,
				`<link rel="icon" type="image/svg+xml" href="/.sandboxd/static/icon.svg">`, `src="/.sandboxd/static/solo.js"`, `href="/.sandboxd/static/solo.css"`) ||
				!contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'", "script-src 'self'", "frame-ancestors 'none'") {
				t.Errorf("%s: %v\n%s", path, a.Header, a.body)
			}
		}
		if w.session.dials != 0 {
			t.Error("the guest was asked for a page")
		}
		if _, _, err := w.dial(terminal+"/ws", header{"Cookie", w.signIn("ml.localhost"), "Origin", terminal}); err != nil {
			t.Error(err)
		}
	}
}

func TestTerminal_GivesThePageTheScrollback(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", terminal+"/t/two/text", bearer)
	w.wantStatus(a, 200)
	if a.body != "text of two" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("X-Terminal-Full") != "" {
		t.Errorf("%v %q", a.Header, a.body)
	}
	a = w.ask("GET", terminal+"/text?part=unless-full", bearer)
	w.wantStatus(a, 200)
	if a.body != "" || a.Header.Get("X-Terminal-Full") != "1" {
		t.Errorf("with a pager: %v %q", a.Header, a.body)
	}
	if a := w.ask("GET", terminal+"/text", nil); a.StatusCode == 200 {
		t.Errorf("a stranger reads it: %q", a.body)
	}
}
