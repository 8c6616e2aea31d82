package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const webHost = "http://web--ml.localhost:8080"

func TestService_ItsHostLeadsToItsPort(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	w.boxes.declare("ml", map[string]int{"web": 3000, "worker": 0})
	s := w.seen(w.ask("GET", webHost+"/a?b=1", bearer))
	if s.Host != "web--ml.localhost:8080" || s.URI != "/a?b=1" || s.Header.Get("X-Forwarded-Host") != s.Host {
		t.Errorf("%+v", s)
	}
	for _, host := range []string{"http://worker--ml.localhost:8080", "http://other--ml.localhost:8080", "http://web--nope.localhost:8080", "http://web--other.localhost:8080"} {
		w.wantStatus(w.ask("GET", host, bearer), 404)
	}
	theirs := w.ask("GET", webHost, header{"Authorization", "Bearer " + bobToken})
	none := w.ask("GET", "http://web--nope.localhost:8080", header{"Authorization", "Bearer " + bobToken})
	if theirs.StatusCode != 404 || theirs.body != none.body {
		t.Errorf("a stranger is told %d %s", theirs.StatusCode, theirs.body)
	}
}

func TestService_ACookieIsForThatHostAndLeadsThroughTheDashboard(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.boxes.declare("ml", map[string]int{"web": 3000})
	w.wantStatus(w.ask("GET", webHost, header{"Cookie", w.signIn("3000-ml.localhost")}), 401)
	w.wantStatus(w.ask("GET", port3000, header{"Cookie", w.signIn("web--ml.localhost")}), 401)
	j := w.begin(webHost+"/a?x=1", nil)
	if _, err := j.dashboard(bobToken); !fault.Is(err, fault.NotFound) {
		t.Errorf("for a stranger: %v", err)
	}
	a := w.ask("GET", j.mustPass(), append(header{"Cookie", j.nonce}, page...))
	w.wantStatus(a, 303)
	if got := a.Header.Get("Location"); got != webHost+"/a?x=1" {
		t.Errorf("Location = %q", got)
	}
	w.wantStatus(w.ask("GET", webHost, header{"Cookie", a.Cookies()[0].Name + "=" + a.Cookies()[0].Value}), 200)
}

// A former host of a service redirects those who may use it, and tells no one else that it exists.
func TestService_ItsFormerHostLeadsToItsHost(t *testing.T) {
	w := newWorld(t)
	w.serve(tabHost("main"), tty("main"))
	w.boxes.declare("ml", map[string]int{"web": 3000, "worker": 0})
	const former, to = "http://web-ml.localhost:8080/a%20b?c=1", webHost + "/a%20b?c=1"
	led := func(what string, a answer) {
		t.Helper()
		if got := a.Header.Get("Location"); a.StatusCode != 307 || got != to || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d to %q", what, a.StatusCode, got)
		}
	}
	led("by token", w.ask("GET", former, bearer))
	led("another method", w.ask("POST", former, bearer))
	led("signed in there", w.ask("GET", former, append(header{"Cookie", w.signIn("web-ml.localhost")}, page...)))
	w.wantStatus(w.ask("GET", former, header{"Authorization", "Bearer " + bobToken}), 404)
	w.wantStatus(w.ask("GET", former, nil), 401)
	for _, host := range []string{"worker-ml", "nope-ml", "web-nope", "web-other"} {
		w.wantStatus(w.ask("GET", "http://"+host+".localhost:8080", bearer), 404)
	}
	j := w.begin(former, nil)
	if got := j.mustPass(); got != to {
		t.Errorf("by way of the dashboard: %q", got)
	}
	if _, err := j.dashboard(bobToken); !fault.Is(err, fault.NotFound) {
		t.Errorf("a stranger by way of the dashboard: %v", err)
	}
	w.expose(3000, sandbox.Public)
	led("anyone, to a public port", w.ask("GET", former, nil))
	w.boxes.put("web-ml", sandbox.Sandbox{ID: "3", Name: "web-ml", Owner: "u-ann", State: sandbox.Running})
	w.wantStatus(w.ask("GET", former, nil), 401)
	w.wantStatus(w.ask("GET", "http://web-ml.localhost:8080/", bearer), 200)
}

func TestService_AStreamEndsWhenItsServiceMoves(t *testing.T) {
	for _, now := range []map[string]int{{"web": 4000}, {"api": 3000}, {}} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), echoSocket)
			w.boxes.declare("ml", map[string]int{"web": 3000})
			conn := w.socket(webHost+"/ws", bearer)
			time.Sleep(10 * time.Second)
			w.boxes.declare("ml", now)
			begun := time.Now()
			if _, _, err := conn.ReadMessage(); err == nil || time.Since(begun) > 3*time.Second {
				t.Errorf("%v: it ends after %v: %v", now, time.Since(begun), err)
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}
