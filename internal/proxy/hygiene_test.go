package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/hostname"
)

// seen is what a program in the sandbox got.
type seen struct {
	Method, Host, URI string
	Header            http.Header
}

func reflect(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(seen{r.Method, r.Host, r.RequestURI, r.Header})
}

func (w *world) seen(a answer) seen {
	w.t.Helper()
	w.wantStatus(a, 200)
	var s seen
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestHygiene_WhatIsOursNeverReachesTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	s := w.seen(w.ask("GET", port3000+"/", header{
		"Cookie", "a=1; " + w.signIn("3000-ml.localhost") + "; sandboxd=dash; __Host-sandboxd=d2; __HOST-Sandboxd_Host=x;b=2",
		"Cookie", "sandboxd_nonce=n; c=\"3\"", "X-Api-Key", "mine", "Authorization", "Basic abc",
		"X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil", "X-Forwarded-Proto", "gopher", "X-Forwarded-User", "root",
		"X_Forwarded_For", "6.6.6.6", "Forwarded", "for=6.6.6.6", "X-Real-Ip", "6.6.6.6", "X-Sandboxd-User", "root", "Remote-User", "root",
		"Connection", "X-Forwarded-Proto, X-Gone", "X-Gone", "1", "Accept", "*/*", "User-Agent", "test",
	}))
	want := http.Header{
		"Cookie": {"a=1; b=2; c=\"3\""}, "X-Api-Key": {"mine"}, "Authorization": {"Basic abc"},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"3000-ml.localhost:8080"}, "X-Forwarded-Proto": {"http"},
		"Accept": {"*/*"}, "User-Agent": {"test"}, "Accept-Encoding": {"gzip"},
	}
	if diff := cmp.Diff(want, s.Header); diff != "" {
		t.Error(diff)
	}
	if s.Host != "3000-ml.localhost:8080" {
		t.Errorf("Host = %q", s.Host)
	}
}

func TestHygiene_TokensNeverReachTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	cookie := w.signIn("3000-ml.localhost")
	for _, h := range []header{bearer, {"X-Api-Key", annToken}, {"Authorization", "Bearer " + annToken, "X-Api-Key", "SBX_other", "Cookie", cookie},
		{"Authorization", "Basic x sbx_hidden", "Cookie", cookie}, {"Authorization", "Bearer " + annToken, "Authorization", "Basic x"}} {
		s := w.seen(w.ask("GET", port3000+"/", h))
		if s.Header.Get("Authorization") != "" || s.Header.Get("X-Api-Key") != "" || s.Header.Get("Cookie") != "" {
			t.Errorf("%v: the sandbox got %v", h, s.Header)
		}
	}
}

func TestHygiene_PathAndQueryPassUnchanged(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	for _, uri := range []string{"/", "/a%2Fb/../c//d", "/?", "/?a=1;b=%zz&c", "/%E2%82%AC?q=%20+", "/.sandboxdx", "/x/.sandboxd/y"} {
		r := w.request("GET", port3000+"/", nil, bearer)
		r.URL.Opaque = "//3000-ml.localhost:8080" + uri
		if s := w.seen(w.send(r)); strings.TrimPrefix(s.URI, port3000) != uri {
			t.Errorf("%q arrived as %q", uri, s.URI)
		}
	}
}

func TestHygiene_OurPathsNeverReachTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) { t.Error("the sandbox was asked") })
	for _, uri := range []string{"/.sandboxd", "/.sandboxd/", "/.sandboxd/x", "/%2esandboxd/x", "//.sandboxd/x", "/a/../.sandboxd/x", "/a/%2e%2e/.sandboxd/x",
		"/./.sandboxd"} {
		r := w.request("GET", port3000+"/", nil, bearer)
		r.URL.Opaque = "//3000-ml.localhost:8080" + uri
		w.wantStatus(w.send(r), 404)
	}
	if a := w.ask("GET", port3000+"/.sandboxd/static/solo.js", nil); a.body != "asset /static/solo.js" {
		t.Errorf("asset: %d %q", a.StatusCode, a.body)
	}
}

func TestHygiene_CookiesStayWithinTheirHost(t *testing.T) {
	w := newWorld(t)
	good := []string{"a=1", "b=2; Path=/; HttpOnly; SameSite=None; Secure", "c=domain=x", "d=\"x y\"; Max-Age=5"}
	bad := []string{"a=1; Domain=localhost", "a=1;domain=.localhost", "a=1; DOMAIN = localhost", "a=1; domain", "a=1;\tDomain\t=x", "sandboxd=x",
		"sandboxd_host=x", "SANDBOXD_nonce=x; Path=/deep", "__Host-sandboxd=x; Secure; Path=/", "__hOST-sandboxd_host=x", "__Secure-Sandboxd=x",
		" sandboxd =x", "=sandboxd=x", "nameless", ""}
	w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Set-Cookie"] = append(append([]string{}, good...), bad...)
		rw.Header().Set("Clear-Site-Data", `"cookies"`)
		rw.Header().Set("Alt-Svc", `h2="evil.com:443"`)
		rw.Header().Set("Sandboxd-Notice", "stopped")
		rw.WriteHeader(418)
	})
	a := w.ask("GET", port3000+"/", bearer)
	w.wantStatus(a, 418)
	if diff := cmp.Diff(good, a.Header.Values("Set-Cookie")); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"Clear-Site-Data", "Alt-Svc", "Sandboxd-Notice"} {
		if a.Header.Get(name) != "" {
			t.Errorf("%s came through", name)
		}
	}
}

func TestHygiene_EarlyHintsAreHeldBack(t *testing.T) {
	w := newWorld(t)
	w.lie(portHost(3000), "HTTP/1.1 103 Early Hints\r\nSet-Cookie: sandboxd=x; Domain=localhost\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	conn := w.raw("GET / HTTP/1.1\r\nHost: 3000-ml.localhost:8080\r\nX-API-Key: " + annToken + "\r\nConnection: close\r\n\r\n")
	all, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 OK\r\n") || strings.Contains(string(all), "Set-Cookie") {
		t.Errorf("%q, %v", all, err)
	}
}

// raw writes bytes to the front as a client without manners would.
func (w *world) raw(text string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.front.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

func TestHygiene_AmbiguousRequestsReachTheSandboxAtMostOnce(t *testing.T) {
	w := newWorld(t)
	hits := make(chan string, 10)
	w.serve(portHost(3000), func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		hits <- fmt.Sprintf("%s %s %q te=%v", r.Method, r.URL.Path, body, r.TransferEncoding)
	})
	head := "POST /one HTTP/1.1\r\nHost: 3000-ml.localhost:8080\r\nX-API-Key: " + annToken + "\r\n"
	inner := "GET /smuggled HTTP/1.1\r\nHost: 3000-ml.localhost:8080\r\n\r\n"
	cases := map[string]string{
		"both lengths": "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + inner,
		"odd coding":   "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"two codings":  "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"bad length":   "Content-Length: +5\r\n\r\nhello" + inner,
		"huge header":  "X-Big: " + strings.Repeat("a", 2<<20) + "\r\n\r\n",
		"space":        "Content-Length : 5\r\n\r\nhello" + inner,
	}
	for what, rest := range cases {
		t.Run(what, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			go func() { _, _ = io.WriteString(conn, head+rest) }()
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && (res.StatusCode < 400 || res.StatusCode >= 500 && res.StatusCode != 501) {
				t.Errorf("answered with %d", res.StatusCode)
			}
		})
	}
	select {
	case hit := <-hits:
		t.Errorf("the sandbox was asked: %s", hit)
	default:
	}
}

func TestHygiene_ContentLengthBesideChunkedIsDropped(t *testing.T) {
	w := newWorld(t)
	hits := make(chan string, 10)
	w.serve(portHost(3000), func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		hits <- fmt.Sprintf("%s %s %q cl=%d", r.Method, r.URL.Path, body, r.ContentLength)
	})
	conn := w.raw("POST /one HTTP/1.1\r\nHost: 3000-ml.localhost:8080\r\nX-API-Key: " + annToken +
		"\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n")
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	close(hits)
	for hit := range hits {
		if hit != `POST /one "hello" cl=-1` {
			t.Errorf("the sandbox got %s", hit)
		}
	}
}

func TestHygiene_MethodsThatAreForProxiesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) { t.Error("the sandbox was asked") })
	w.wantStatus(w.ask("TRACE", port3000+"/", bearer), 405)
	conn := w.raw("CONNECT 3000-ml.localhost:8080 HTTP/1.1\r\nHost: 3000-ml.localhost:8080\r\nX-API-Key: " + annToken + "\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 405 {
		t.Errorf("CONNECT: %v %v", res, err)
	}
}

func TestHygiene_UpgradesOtherThanWebSocketBecomeOrdinaryRequests(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	for _, upgrade := range []string{"h2c", "websocket, h2c", "TLS/1.0"} {
		s := w.seen(w.ask("GET", port3000+"/", append(header{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", upgrade, "HTTP2-Settings", "AAMA"}, bearer...)))
		if len(s.Header["Upgrade"])+len(s.Header["Connection"])+len(s.Header["Http2-Settings"]) != 0 {
			t.Errorf("%s: the sandbox got %v", upgrade, s.Header)
		}
	}
}

func FuzzDropOurCookies(f *testing.F) {
	for _, seed := range []string{"a=1; b=2", "sandboxd=1;a=2", ";;=;", "__Host-sandboxd_host=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r := http.Request{Header: http.Header{"Cookie": {line}}}
		dropOurCookies(r.Header)
		for _, c := range r.Cookies() {
			if ourCookie(c.Name) {
				t.Fatalf("%q leaves %q", line, c.Name)
			}
		}
	})
}

func TestHygiene_AProbesStateOutlivesEarlyHints(t *testing.T) {
	w := newWorld(t)
	w.lie(portHost(3000), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nX-Sandboxd-State: lie\r\nContent-Length: 2\r\n\r\nok")
	a := w.ask("GET", port3000+"/", append(header{hostname.ObserveHeader, "1"}, bearer...))
	if state := a.Header.Values(stateHeader); len(state) != 1 || state[0] != "running" {
		t.Errorf("%d, states %q", a.StatusCode, state)
	}
}
