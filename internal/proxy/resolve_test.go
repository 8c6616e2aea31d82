package proxy

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const webHost = "http://web-ml.localhost:8080"

func TestService_ItsHostLeadsToItsPort(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	w.boxes.declare("ml", map[string]int{"web": 3000, "worker": 0})
	s := w.seen(w.ask("GET", webHost+"/a?b=1", bearer))
	if s.Host != "web-ml.localhost:8080" || s.URI != "/a?b=1" || s.Header.Get("X-Forwarded-Host") != s.Host {
		t.Errorf("%+v", s)
	}
	for _, host := range []string{"http://worker-ml.localhost:8080", "http://other-ml.localhost:8080", "http://web-nope.localhost:8080", "http://web-other.localhost:8080"} {
		w.wantStatus(w.ask("GET", host, bearer), 404)
	}
	theirs := w.ask("GET", webHost, header{"Authorization", "Bearer " + bobToken})
	none := w.ask("GET", "http://web-nope.localhost:8080", header{"Authorization", "Bearer " + bobToken})
	if theirs.StatusCode != 404 || theirs.body != none.body {
		t.Errorf("a stranger is told %d %s", theirs.StatusCode, theirs.body)
	}
}

func TestService_ACookieIsForThatHostAndLeadsThroughTheDashboard(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.boxes.declare("ml", map[string]int{"web": 3000})
	w.wantStatus(w.ask("GET", webHost, header{"Cookie", w.signIn("3000-ml.localhost")}), 401)
	w.wantStatus(w.ask("GET", port3000, header{"Cookie", w.signIn("web-ml.localhost")}), 401)
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
	j.to = "http://nope-ml.localhost:8080/"
	if _, err := j.dashboard(annToken); !fault.Is(err, fault.NotFound) {
		t.Errorf("to no service: %v", err)
	}
}

func TestService_ASandboxOfThatVeryNameComesFirst(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.serve(tabHost("main"), tty("main"))
	w.boxes.declare("ml", map[string]int{"web": 3000})
	w.expose(3000, sandbox.Public)
	w.wantStatus(w.ask("GET", webHost, nil), 200)
	w.boxes.put("web-ml", sandbox.Sandbox{ID: "3", Name: "web-ml", Owner: "u-ann", State: sandbox.Running})
	w.wantStatus(w.ask("GET", webHost, nil), 401)
	if a := w.ask("GET", webHost, bearer); a.StatusCode != 200 || a.body == "hello" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestService_OfSeveralSandboxesTheFirstHasTheHost(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(1), func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("one")) })
	w.serve(portHost(2), func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("two")) })
	for name, port := range map[string]int{"c": 1, "b-c": 2} {
		created := time.Unix(int64(port), 0)
		w.boxes.put(name, sandbox.Sandbox{ID: "id-" + name, Name: name, Owner: "u-ann", State: sandbox.Running, Created: created})
		w.boxes.declare(name, map[string]int{map[int]string{1: "a-b", 2: "a"}[port]: port})
	}
	for _, want := range []string{"one", "two"} {
		if a := w.ask("GET", "http://a-b-c.localhost:8080", bearer); a.body != want {
			t.Errorf("%d %q, want %q", a.StatusCode, a.body, want)
		}
		w.boxes.put("c", sandbox.Sandbox{ID: "id-c", Name: "c", Owner: "u-ann", State: sandbox.Running, Created: time.Unix(9, 0)})
	}
}

func TestService_AnOlderSandboxTakesNoHostByDeclaringItLater(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(1), func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("one")) })
	w.serve(portHost(2), func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("two")) })
	w.boxes.put("b-c", sandbox.Sandbox{ID: "id-b-c", Name: "b-c", Owner: "u-ann", State: sandbox.Running, Created: time.Unix(5, 0)})
	w.boxes.declare("b-c", map[string]int{"a": 2})
	for since, want := range map[int64]string{9: "two", 4: "one"} {
		w.boxes.put("c", sandbox.Sandbox{ID: "id-c", Name: "c", Owner: "u-ann", State: sandbox.Running, Created: time.Unix(1, 0),
			Own: sandbox.Own{Since: map[string]time.Time{"a-b": time.Unix(since, 0)}}})
		w.boxes.declare("c", map[string]int{"a-b": 1})
		if a := w.ask("GET", "http://a-b-c.localhost:8080", bearer); a.body != want {
			t.Errorf("declared at %d: %d %q, want %q", since, a.StatusCode, a.body, want)
		}
	}
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
