package proxy

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

var page = header{"Accept", "text/html,application/xhtml+xml", "Sec-Fetch-Mode", "navigate"}

// journey is a browser on its way through the hand-over.
type journey struct {
	*world
	nonce string // the cookie as the browser sends it back
	to    string
	hash  string
}

// begin opens an address without credentials, and follows up to the dashboard.
func (w *world) begin(address string, h header) journey {
	w.t.Helper()
	a := w.ask("GET", address, append(h, page...))
	w.wantStatus(a, 303)
	u := parseURL(w.t, a.Header.Get("Location"))
	if got := u.Scheme + "://" + u.Host + u.Path; got != w.hosts.DashboardURL()+"/handover" {
		w.t.Fatalf("sent to %s", u)
	}
	j := journey{world: w, to: u.Query().Get("to"), hash: u.Query().Get("nonce")}
	for _, c := range a.Cookies() {
		if c.Name == w.cookie(nonceCookie) {
			j.nonce = c.Name + "=" + c.Value
		}
	}
	return j
}

// dashboard is what web does for a person who is signed in.
func (j journey) dashboard(token string) (string, error) {
	h := Handover{Hosts: j.hosts, Sandboxes: j.boxes, Access: j.access, Codes: j.accounts}
	return h.URL(context.Background(), people[token], token, j.to, j.hash)
}

func (j journey) mustPass() string {
	j.t.Helper()
	back, err := j.dashboard(annToken)
	if err != nil {
		j.t.Fatal(err)
	}
	return back
}

func TestHandover_LeadsAPersonInAndBackToThePath(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	j := w.begin(port3000+"/a%20b?x=1&y=%2F", nil)
	if j.nonce == "" {
		t.Fatal("no nonce cookie")
	}
	a := w.ask("GET", j.mustPass(), append(header{"Cookie", j.nonce}, page...))
	w.wantStatus(a, 303)
	if got := a.Header.Get("Location"); got != port3000+"/a%20b?x=1&y=%2F" {
		t.Errorf("Location = %q", got)
	}
	var session string
	for _, c := range a.Cookies() {
		switch c.Name {
		case "sandboxd_host":
			session = c.Name + "=" + c.Value
			if !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.Secure || c.SameSite != 2 {
				t.Errorf("cookie = %q", c.Raw)
			}
		case "sandboxd_nonce":
			if c.MaxAge >= 0 {
				t.Errorf("the nonce stays: %q", c.Raw)
			}
		}
	}
	w.wantStatus(w.ask("GET", port3000+"/", header{"Cookie", session}), 200)
	w.wantStatus(w.ask("GET", "http://ml.localhost:8080/", header{"Cookie", session}), 401)
}

// A page on another sandbox's host can set a nonce of its own for the whole domain, and for the path of the way back.
func TestHandover_ATossedNonceLocksNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	name, foreign, _ := strings.Cut(w.begin(port3000+"/", nil).nonce, "=")
	for _, tossed := range []string{foreign, "evil"} {
		j := w.begin(port3000+"/", nil)
		a := w.ask("GET", j.mustPass(), append(header{"Cookie", name + "=" + tossed + "; " + j.nonce}, page...))
		w.wantStatus(a, 303)
	}
}

func TestHandover_OnHTTPSCookiesAreBoundToTheHost(t *testing.T) {
	w := newWorldAt(t, "https://box.example.com")
	r := w.request("GET", "http://ml.box.example.com/", nil, page)
	a := w.send(r)
	w.wantStatus(a, 303)
	raw := a.Header.Get("Set-Cookie")
	if !strings.HasPrefix(raw, "__Host-sandboxd_nonce=") || !contains(raw, "Secure", "HttpOnly", "Path=/", "SameSite=Lax") || strings.Contains(raw, "Domain") {
		t.Errorf("Set-Cookie = %q", raw)
	}
	if to := parseURL(t, a.Header.Get("Location")).Query().Get("to"); to != "https://ml.box.example.com/" {
		t.Errorf("to = %q", to)
	}
}

func TestHandover_ACodeWorksOnceInItsBrowserAtItsHost(t *testing.T) {
	w := newWorld(t)
	j := w.begin(port3000+"/", nil)
	back := j.mustPass()
	elsewhere := strings.Replace(back, "3000-ml", "3001-ml", 1)
	stranger := w.begin(port3000+"/", nil).nonce
	for what, c := range map[string]struct {
		address string
		h       header
	}{
		"no cookie":      {back, nil},
		"another's":      {back, header{"Cookie", stranger}},
		"another host":   {elsewhere, header{"Cookie", j.nonce}},
		"no code":        {port3000 + "/.sandboxd/auth?to=/", header{"Cookie", j.nonce}},
		"a foreign code": {port3000 + "/.sandboxd/auth?to=/&code=guess", header{"Cookie", j.nonce}},
		"a huge code":    {port3000 + "/.sandboxd/auth?to=/&code=" + strings.Repeat("a", 1000), header{"Cookie", j.nonce}},
	} {
		a := w.ask("GET", c.address, append(c.h, page...))
		if a.StatusCode != 401 || len(a.Cookies()) != 0 || !contains(a.body, "Try again") {
			t.Errorf("%s: %d %v", what, a.StatusCode, a.Header)
		}
	}
	w.wantStatus(w.ask("POST", back, header{"Cookie", j.nonce}), 405)
	w.wantStatus(w.ask("GET", back, append(header{"Cookie", j.nonce}, page...)), 303)
	w.wantStatus(w.ask("GET", back, append(header{"Cookie", j.nonce}, page...)), 401)
}

func TestHandover_ASecondTabUsesTheSameNonceAndAUsedLinkLeadsTheKnownOn(t *testing.T) {
	w := newWorld(t)
	first := w.begin(port3000+"/1", nil)
	second := w.begin(port3000+"/2", header{"Cookie", first.nonce})
	if second.nonce != "" || second.hash != first.hash {
		t.Fatalf("the second tab got a nonce of its own: %+v", second)
	}
	w.wantStatus(w.ask("GET", first.mustPass(), append(header{"Cookie", first.nonce}, page...)), 303)
	known := w.signIn("3000-ml.localhost")
	a := w.ask("GET", second.mustPass(), append(header{"Cookie", known}, page...)) // the nonce is gone, the session is there
	w.wantStatus(a, 303)
	if got := a.Header.Get("Location"); got != port3000+"/2" {
		t.Errorf("Location = %q", got)
	}
}

func TestHandover_NeverLeadsToAnotherOrigin(t *testing.T) {
	w := newWorld(t)
	for _, to := range []string{"//evil.com", "/\\evil.com", "\\/evil.com", "http://evil.com/", "evil.com", "", "/%5cevil.com/\\", "/.sandboxd/auth?x",
		"javascript:alert(1)", "/\r\nX: y", "/" + strings.Repeat("a", 5000)} {
		j := w.begin(port3000+"/", nil)
		back := parseURL(t, j.mustPass())
		query := back.Query()
		query.Set("to", to)
		back.RawQuery = query.Encode()
		a := w.ask("GET", back.String(), append(header{"Cookie", j.nonce}, page...))
		w.wantStatus(a, 303)
		if got := a.Header.Get("Location"); got != port3000+"/" {
			t.Errorf("to=%q leads to %q", to, got)
		}
	}
}

func TestHandover_IssuesCodesOnlyForWhatThePersonMayUse(t *testing.T) {
	w := newWorld(t)
	j := w.begin("http://ml.localhost:8080/", nil)
	if _, err := j.dashboard(bobToken); !fault.Is(err, fault.NotFound) {
		t.Errorf("for a stranger: %v", err)
	}
	if _, err := j.dashboard(rootToken); err != nil {
		t.Errorf("for an admin: %v", err)
	}
	j.to = "http://nope.localhost:8080/"
	if _, err := j.dashboard(annToken); !fault.Is(err, fault.NotFound) {
		t.Errorf("for no sandbox: %v", err)
	}
}

func TestHandover_RefusesAddressesThatAreNotOurs(t *testing.T) {
	w := newWorld(t)
	good := w.begin("http://ml.localhost:8080/", nil)
	for _, to := range []string{"", "/", "http://localhost:8080/", "http://evil.com/", "https://ml.localhost:8080/", "http://ml.localhost/",
		"http://ml.localhost:9090/", "http://ml.localhost.evil.com:8080/", "http://u@ml.localhost:8080/", "http://ML.localhost:8080/",
		"//ml.localhost:8080/", "javascript:alert(1)", "http:ml.localhost:8080", "http://ml.localhost:8080\\@evil.com/", "http://a b/"} {
		j := good
		j.to = to
		if back, err := j.dashboard(annToken); !fault.Is(err, fault.Invalid) {
			t.Errorf("to=%q: %q, %v", to, back, err)
		}
	}
	for _, hash := range []string{"", "short", strings.Repeat("a", 44), strings.Repeat("!", 43), good.hash + "="} {
		j := good
		j.hash = hash
		if _, err := j.dashboard(annToken); !fault.Is(err, fault.Invalid) {
			t.Errorf("nonce=%q: %v", hash, err)
		}
	}
	if len(w.accounts.codes) != 0 {
		t.Errorf("codes were issued: %v", w.accounts.codes)
	}
}

func FuzzSafePath(f *testing.F) {
	for _, seed := range []string{"/", "//x", "/\\x", "/a?b#c", "http://x", "/.sandboxd/auth", "/%2f%2fx", "/a/..//x", "/%2f ", "/%2fevil.example/<"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, to string) {
		got := safePath(to)
		base, err := url.Parse(port3000 + "/here")
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{got, port3000 + got} {
			ref, err := url.Parse(form)
			if err != nil {
				t.Fatalf("safePath(%q) = %q: %v", to, got, err)
			}
			end := base.ResolveReference(ref)
			if end.Scheme != "http" || end.Host != base.Host || end.User != nil || strings.ContainsAny(got, "\\\r\n") {
				t.Fatalf("safePath(%q) = %q leads to %s", to, got, end)
			}
		}
	})
}

func TestSignIn_LeadsThroughTheDashboardOnEverySandboxHost(t *testing.T) {
	w := newWorld(t)
	w.lock("guest", "hush")
	w.serve(tabHost("main"), tty("main"))
	w.serve(portHost(3000), greet)
	for _, host := range []string{terminal, port3000} {
		j := w.begin(host+hostname.SignInPath, nil)
		if j.to != host+"/" || j.nonce == "" {
			t.Fatalf("it leads to %q with the nonce %q", j.to, j.nonce)
		}
		a := w.ask("GET", j.mustPass(), append(header{"Cookie", j.nonce}, page...))
		w.wantStatus(a, 303)
		session := header{"Cookie", a.Cookies()[0].Name + "=" + a.Cookies()[0].Value}
		w.wantStatus(w.ask("GET", host+"/", session), 200)
		again := w.ask("GET", host+hostname.SignInPath, session)
		if again.StatusCode != 303 || again.Header.Get("Location") != host+"/" || len(again.Cookies()) != 0 {
			t.Errorf("signed in already: %d %v", again.StatusCode, again.Header)
		}
		w.wantStatus(w.ask("POST", host+hostname.SignInPath, session), 405)
	}
	if w.boxes.woken() != 0 || w.session.dials != 1 { // the page of the terminal is ours
		t.Errorf("%d wakes, %d dials", w.boxes.woken(), w.session.dials)
	}
	w.accounts.failWith(fault.New(fault.Unavailable, "The store is locked."))
	w.wantStatus(w.ask("GET", terminal+hostname.SignInPath, header{"Cookie", w.signIn("ml.localhost")}), 503)
}

func TestHandover_ADeletedSandboxIsGoneForThoseWhoHadIt(t *testing.T) {
	w := newWorld(t)
	w.boxes.put("ml", sandbox.Sandbox{})
	w.boxes.tombstones["ml"] = sandbox.Tombstone{Name: "ml", Owner: "u-ann", Deleted: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)}
	for _, address := range []string{"http://ml.localhost:8080/", port3000 + "/"} {
		j := w.begin(address, nil)
		for token, kind := range map[string]fault.Kind{annToken: fault.Gone, rootToken: fault.Gone, bobToken: fault.NotFound, oneToken: fault.NotFound} {
			_, err := j.dashboard(token)
			if !fault.Is(err, kind) || kind == fault.Gone != strings.Contains(fault.Message(err), "deleted on 3 November 2026") {
				t.Errorf("%s, %s: %v", address, token, err)
			}
		}
	}
}
