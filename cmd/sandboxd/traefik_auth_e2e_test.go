//go:build e2e

package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTraefik_ForwardAuthIsToldWhatIsAskedFor(t *testing.T) {
	k := newTraefikBed(t)
	k.auth.answers(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n != 0 || err != nil {
			t.Errorf("forwardAuth got %d bytes of the body, %v", n, err)
		}
	})
	req, err := http.NewRequest(http.MethodPost, k.url(k.box.host, "/a/b?c=d"), bytes.NewReader([]byte("a body")))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Cookie": "a=1", "Authorization": "Bearer x", "X-Own": "y", "X-Forwarded-For": "6.6.6.6",
		"X-Forwarded-Host": "evil.example", "X-Forwarded-Uri": "/evil", "X-Forwarded-Method": "DELETE", "X-Forwarded-Proto": "http"} {
		req.Header.Set(name, value)
	}
	if _, e, err := ask(k.client(), req); err != nil || e.Method != http.MethodPost {
		t.Errorf("the request arrives as %s, %v", e.Method, err)
	}
	asked := k.auth.requests()
	if len(asked) != 1 {
		t.Fatalf("forwardAuth was asked %d times", len(asked))
	}
	got := asked[0].Header
	want := map[string]string{"X-Forwarded-Method": "POST", "X-Forwarded-Proto": "https", "X-Forwarded-Host": k.authority(k.box.host),
		"X-Forwarded-Uri": "/a/b?c=d", "X-Forwarded-For": "127.0.0.1", "Cookie": "a=1", "Authorization": "Bearer x", "X-Own": "y"}
	for name, value := range want {
		if diff := cmp.Diff([]string{value}, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if asked[0].Method != http.MethodGet || asked[0].URL.Path != "/" {
		t.Errorf("forwardAuth is asked by %s %s", asked[0].Method, asked[0].URL)
	}
}

// What forwardAuth's answer does not carry of the listed headers is taken from the request, and what pretends to come
// from sandboxd or from a proxy never gets through.
func TestTraefik_TheGatewayGetsOnlyWhatForwardAuthLetsThrough(t *testing.T) {
	k := newTraefikBed(t)
	smuggled := []string{"X-Sandboxd-Pass", "X-Sandboxd-Anything", "X-Sandboxd-Share", "x_sandboxd_pass", "Sandboxd-User", "sandboxd_user", "X-Api-Key", "x_api_key",
		"Authorization", "Cookie", "Forwarded", "X-Real-Ip", "x_real_ip", "X-Client-Ip", "True-Client-Ip", "Remote-User", "remote_user",
		"X-Remote-User", "X-Auth-Request-Email", "x_auth_request_user", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Groups",
		"X-Forwarded-Preferred-Username", "X-Forwarded-Access-Token", "X-Forwarded-Server", "X-Forwarded-Port", "X-Forwarded-Prefix"}
	request := func() *http.Request {
		req, err := http.NewRequest(http.MethodGet, k.url(k.box.host, "/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range smuggled {
			req.Header[name] = []string{"smuggled=1"}
		}
		req.Header["X-Forwarded-For"] = []string{"6.6.6.6"}
		req.Header["X-Own"] = []string{"mine"}
		req.Header["User-Agent"] = []string{"test"}
		return req
	}
	clients := map[string]*http.Client{"HTTP/1.1": k.client(), "HTTP/2": k.client2()}
	whatArrives := func(protocol string, want http.Header) {
		t.Helper()
		_, e, err := ask(clients[protocol], request())
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(e.Header, func(name string, _ []string) bool { return name == "Accept-Encoding" })
		if diff := cmp.Diff(want, e.Header); diff != "" || e.Via != "gateway" {
			t.Errorf("over %s %s got\n%s", protocol, e.Via, diff)
		}
	}
	always := http.Header{"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {k.authority(k.box.host)}, "X-Forwarded-Proto": {"https"},
		"X-Own": {"mine"}, "User-Agent": {"test"}}
	for _, protocol := range slices.Sorted(maps.Keys(clients)) {
		k.auth.answers(func(http.ResponseWriter, *http.Request) {})
		whatArrives(protocol, always)
		k.auth.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Sandboxd-Pass", "pass")
			w.Header().Set("Cookie", "theme=dark")
			w.Header().Set("Authorization", "Basic b3duOmtleQ==")
			w.Header().Set("X-Api-Key", "own")
			w.Header().Set("X-Forwarded-For", "9.9.9.9") // who asked a proxy that stands before Traefik
			w.Header().Set("X-Not-Listed", "x")
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
			w.WriteHeader(http.StatusNoContent)
		})
		full := maps.Clone(always)
		maps.Copy(full, http.Header{"X-Sandboxd-Pass": {"pass"}, "Cookie": {"theme=dark"}, "Authorization": {"Basic b3duOmtleQ=="}, "X-Api-Key": {"own"},
			"X-Forwarded-For": {"9.9.9.9, 127.0.0.1"}})
		whatArrives(protocol, full)
	}
}

func TestTraefik_ARefusalIsShownAsItIs(t *testing.T) {
	k := newTraefikBed(t)
	for _, status := range []int{http.StatusSeeOther, http.StatusUnauthorized, http.StatusForbidden, http.StatusGone, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		k.auth.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", k.publicURL()+"/enter")
			w.Header().Set("Set-Cookie", "__Host-sandboxd_nonce=1; Path=/; Secure")
			w.Header().Set("Retry-After", "2")
			w.Header().Set("Content-Security-Policy", "default-src 'none'")
			w.WriteHeader(status)
			io.WriteString(w, "why")
		})
		resp, err := k.client().Post(k.url(k.box.host, "/"), "text/plain", bytes.NewReader([]byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		h := resp.Header
		if err != nil || resp.StatusCode != status || string(body) != "why" || h.Get("Location") != k.publicURL()+"/enter" ||
			h.Get("Set-Cookie") == "" || h.Get("Retry-After") != "2" || h.Get("Content-Security-Policy") == "" {
			t.Errorf("got %s %v %q, %v", resp.Status, h, body, err)
		}
	}
}

// A direct route without anybody to ask is closed, not open; so is one whose sandbox answers too much.
func TestTraefik_WithoutForwardAuthNothingPasses(t *testing.T) {
	k := newTraefikBed(t)
	k.auth.answers(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20)) })
	if got := via(k.client(), k.url(k.box.host, "/")); got != "401 Unauthorized" {
		t.Errorf("with an endless answer of forwardAuth: %s", got)
	}
	k.auth.server.Close()
	if got := via(k.client(), k.url(k.box.host, "/")); got != "500 Internal Server Error" {
		t.Errorf("without forwardAuth: %s", got)
	}
	if got := via(k.client(), k.url("lab."+k.domain, "/")); got != "sandboxd" {
		t.Errorf("without forwardAuth sandboxd's own route leads to %s", got)
	}
}
