package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestForwardAuth_OutsidersPassAsThroughTheProxy(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.serve(portHost(3001), greet)
	w.serve(portHost(3002), greet)
	w.expose(3000, sandbox.Public)
	_, secret := w.shareLink(3001)
	shared := "http://3001-ml.localhost:8080"
	cookie := w.openLink(shared, secret)
	for what, c := range map[string]struct {
		method string
		port   string
		h      header
		status int
	}{
		"anybody at a public port":           {"GET", "3000", nil, 200},
		"anybody's page at a public port":    {"POST", "3000", header{"Origin", sibling, "Sec-Fetch-Site", "same-site"}, 200},
		"a preflight at a public port":       {"OPTIONS", "3000", header{"Origin", sibling}, 200},
		"a stranger at a public port":        {"GET", "3000", header{"Authorization", "Bearer " + bobToken}, 200},
		"anybody at a shared port":           {"GET", "3001", nil, 401},
		"anybody's page at a shared port":    {"GET", "3001", page, 303},
		"a share's cookie":                   {"GET", "3001", cookie, 200},
		"a share's cookie from a neighbour":  {"POST", "3001", append(header{"Origin", sibling}, cookie...), 403},
		"a share's secret":                   {"PUT", "3001", header{hostname.ShareHeader, secret}, 200},
		"a wrong secret":                     {"GET", "3001", header{hostname.ShareHeader, strings.Repeat("A", 43)}, 401},
		"a share's cookie at another port":   {"GET", "3002", cookie, 401},
		"a share's secret at another port":   {"GET", "3002", header{hostname.ShareHeader, secret}, 401},
		"a share's secret at a private port": {"GET", "3003", header{hostname.ShareHeader, secret}, 401},
	} {
		a := w.decide(w.question(c.method, c.port+"-ml.localhost:8080", "/x", c.h))
		plain := w.ask(c.method, "http://"+c.port+"-ml.localhost:8080/x", c.h)
		if a.StatusCode != c.status || plain.StatusCode != c.status || (a.Header.Get(wire.PassHeader) != "") != (c.status == 200) {
			t.Errorf("%s: Traefik is told %d, the proxy says %d, want %d", what, a.StatusCode, plain.StatusCode, c.status)
		}
		if pass := a.Header.Get(wire.PassHeader); pass != "" && !wire.IsOutsiderPass(pass) {
			t.Errorf("%s: the gateway is not told that it is an outsider", what)
		}
		if c.status >= 400 && a.body != plain.body {
			t.Errorf("%s: %s, but %s", what, a.body, plain.body)
		}
	}
}

func TestForwardAuth_NothingOfAShareGoesOn(t *testing.T) {
	w := newWorld(t)
	_, secret := w.shareLink(3000)
	cookie := w.openLink(port3000, secret)[1]
	a := w.decide(w.question("GET", direct3000, "/", header{"Cookie", "a=1; " + cookie, hostname.ShareHeader, secret, "X-Api-Key", "mine"}))
	w.wantStatus(a, 200)
	a.Header.Del(wire.PassHeader)
	want := http.Header{"Cookie": {"a=1"}, "X-Api-Key": {"mine"}, "X-Forwarded-Host": {direct3000}, "X-Forwarded-Proto": {"http"}}
	if diff := cmp.Diff(want, a.Header); diff != "" {
		t.Error(diff)
	}
	a = w.decide(w.question("GET", direct3000, "/", header{"Cookie", cookie}))
	if a.StatusCode != 200 || len(a.Header.Values("Cookie")) != 0 {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

func TestForwardAuth_OutsidersWakeAndEndWithTheirPort(t *testing.T) {
	w := newWorld(t)
	w.expose(3000, sandbox.Public)
	w.boxes.set("ml", sandbox.Asleep, "")
	w.wantStatus(w.decide(w.question("GET", "3001-ml.localhost:8080", "/", nil)), 401)
	if w.boxes.woken() != 0 {
		t.Error("a private port has woken it")
	}
	w.wantStatus(w.decide(w.question("GET", direct3000, "/", nil)), 200)
	if w.boxes.woken() != 1 {
		t.Errorf("%d wakes", w.boxes.woken())
	}
	w.expose(3000, sandbox.Private)
	w.wantStatus(w.decide(w.question("GET", direct3000, "/", nil)), 401)
	share, secret := w.shareLink(3000)
	h := header{hostname.ShareHeader, secret}
	w.wantStatus(w.decide(w.question("GET", direct3000, "/", h)), 200)
	if err := w.ports.Revoke(t.Context(), ml, 3000, share.ID); err != nil {
		t.Fatal(err)
	}
	w.wantStatus(w.decide(w.question("GET", direct3000, "/", h)), 401)
	if until := time.Until(share.Expires); until < time.Hour {
		t.Fatalf("it has expired anyhow: %v", until)
	}
}

func TestForwardAuth_ServicesAndVSCodeAreOurs(t *testing.T) {
	w := newWorld(t)
	w.boxes.declare("ml", map[string]int{"web": 3000})
	w.expose(3000, sandbox.Public)
	for _, host := range []string{"web-ml.localhost:8080", "code-ml.localhost:8080"} {
		w.wantStatus(w.decide(w.question("GET", host, "/", bearer)), 421)
	}
	w.wantStatus(w.decide(w.question("GET", direct3000, hostname.SharePath, nil)), 421)
}
