//go:build e2e

package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// echoed is what the stand-ins say about a request.
type echoed struct {
	Via, Method, URI, Host string
	Header                 http.Header
}

// ask gives the answer of whoever a URL leads to, and what that says of the request. "" is for one that is no stand-in's.
func ask(client *http.Client, req *http.Request) (*http.Response, echoed, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, echoed{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, echoed{}, err
	}
	var e echoed
	if json.Unmarshal(body, &e) != nil {
		e.Via = ""
	}
	return resp, e, nil
}

// via says who answers at a URL.
func via(client *http.Client, url string) string {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, e, err := ask(client, req)
	switch {
	case err != nil:
		return err.Error()
	case e.Via == "":
		return resp.Status
	}
	return e.Via
}

// newSandboxdStandIn answers in sandboxd's place: it says what arrives, and echoes websockets.
func newSandboxdStandIn(t testing.TB) string {
	t.Helper()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !websocket.IsWebSocketUpgrade(r) {
			json.NewEncoder(w).Encode(map[string]any{"via": "sandboxd", "method": r.Method, "uri": r.RequestURI, "host": r.Host, "header": r.Header})
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		kind, text, err := conn.ReadMessage()
		if err == nil {
			conn.WriteMessage(kind, append([]byte("sandboxd: "), text...))
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// traefikBed is Traefik with everything around it: a sandboxd, forwardAuth and one awake sandbox.
type traefikBed struct {
	*traefikProcess
	auth *authStandIn
	box  directBox
}

func newTraefikBed(t *testing.T) traefikBed {
	t.Helper()
	k := newTraefik(t)
	bed := traefikBed{traefikProcess: k, auth: newAuthStandIn(t, k)}
	bed.box = newDirectBox(t, k, "lab")
	k.start(newSandboxdStandIn(t))
	bed.box.direct(k)
	return bed
}

func TestTraefik_ServesHTTPSAlone(t *testing.T) {
	k := newTraefik(t)
	k.start(newSandboxdStandIn(t))

	for _, host := range []string{k.domain, "lab." + k.domain} {
		_, port, err := net.SplitHostPort(k.web)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := k.client().Get("http://" + net.JoinHostPort(host, port) + "/x?y")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got, want := resp.Header.Get("Location"), k.url(host, "/x?y"); resp.StatusCode != http.StatusMovedPermanently || got != want {
			t.Errorf("plain HTTP gives %s to %q, want a redirect to %q", resp.Status, got, want)
		}
		resp, err = k.client2().Get(k.url(host, "/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" || resp.ProtoMajor != 2 {
			t.Errorf("%s with Strict-Transport-Security %q", resp.Proto, got)
		}
	}
	for _, config := range []*tls.Config{{RootCAs: k.roots, ServerName: "example.com"}, {RootCAs: k.roots, ServerName: k.domain, MaxVersion: tls.VersionTLS11}} {
		config.InsecureSkipVerify = true
		if conn, err := tls.Dial("tcp", k.websecure, config); err == nil {
			conn.Close()
			t.Errorf("a handshake for %s with %x succeeds", config.ServerName, config.MaxVersion)
		}
	}
}

func TestTraefik_LeadsToSandboxdWhatHasNoDirectRoute(t *testing.T) {
	k := newTraefikBed(t)
	client := k.client()
	for _, c := range []struct{ host, path, want string }{
		{k.domain, "/", "sandboxd"},
		{"lab." + k.domain, "/", "sandboxd"}, // the terminal
		{"3001-lab." + k.domain, "/", "sandboxd"},
		{"3000-other." + k.domain, "/", "sandboxd"},
		{"gone." + k.domain, "/", "sandboxd"},
		{k.box.host, "/", "gateway"},
		{strings.ToUpper(k.box.host), "/", "gateway"},
		{k.box.host, "/x/.sandboxd", "gateway"},
		{k.box.host, "/.sandboxd/enter?code=x", "sandboxd"},
		{k.box.host, "/%2esandboxd/enter", "sandboxd"},
	} {
		if got := via(client, k.url(c.host, c.path)); got != c.want {
			t.Errorf("%s%s leads to %s, want %s", c.host, c.path, got, c.want)
		}
	}
	for _, host := range []string{"a.b." + k.domain, "x" + k.domain, "localhost", "127.0.0.1", "lab_x." + k.domain} {
		req, err := http.NewRequest(http.MethodGet, k.url(k.domain, "/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, e, err := ask(client, req)
		if err != nil {
			t.Fatal(err)
		}
		if e.Via != "" || resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("the foreign host %s leads to %q with %s", host, e.Via, resp.Status)
		}
	}
	req, err := http.NewRequest(http.MethodConnect, k.url(k.box.host, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, e, err := ask(k.client2(), req); err == nil && e.Via == "gateway" {
		t.Errorf("CONNECT leads to the gateway: %s", resp.Status)
	}
}

func TestTraefik_LeadsEveryUpgradeToSandboxd(t *testing.T) {
	k := newTraefikBed(t)
	dialer := websocket.Dialer{NetDialContext: k.dial, TLSClientConfig: k.tlsConfig(), HandshakeTimeout: callLimit}
	for _, host := range []string{k.box.host, "lab." + k.domain} {
		conn, _, err := dialer.DialContext(t.Context(), "wss"+strings.TrimPrefix(k.url(host, "/"), "https"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != "sandboxd: hello" {
			t.Errorf("%s echoes %q, %v", host, got, err)
		}
	}
	if asked := k.auth.requests(); len(asked) == 0 {
		t.Error("nobody has asked forwardAuth, not even while the direct route was awaited")
	} else if got := asked[len(asked)-1].Header.Get("X-Forwarded-Method"); got != http.MethodGet || strings.Contains(asked[len(asked)-1].Header.Get("Connection"), "pgrade") {
		t.Errorf("forwardAuth was asked for an upgrade: %v", asked[len(asked)-1].Header)
	}
}

func TestTraefik_PathsAndQueriesGoOnAsTheyCame(t *testing.T) {
	k := newTraefikBed(t)
	for _, uri := range []string{"/a//b", "/a/../b", "/a/./b", "/a%2Fb%5Cc%25d%3Fe%23f", "/a;b=1", "/?q=a%3Bb&c=%20+", "/caf%C3%A9", "//x"} {
		for host, who := range map[string]string{k.box.host: "gateway", "lab." + k.domain: "sandboxd"} {
			req, err := http.NewRequest(http.MethodGet, k.url(host, "/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			path, query, _ := strings.Cut(uri, "?")
			req.URL.Opaque, req.URL.RawQuery = "//"+k.authority(host)+path, query
			if _, e, err := ask(k.client(), req); err != nil || e.URI != uri || e.Via != who || e.Host != k.authority(host) {
				t.Errorf("%s arrives at %s, %s as %s, %v", uri, e.Via, e.Host, e.URI, err)
			}
		}
	}
}

func TestTraefik_RoutesFollowTheContainer(t *testing.T) {
	k := newTraefikBed(t)
	client := k.client()
	engine(t, "stop", "-t", "0", k.box.container)
	k.until(startLimit, "the direct route is gone", func() bool { return via(client, k.url(k.box.host, "/")) == "sandboxd" })
	engine(t, "start", k.box.container)
	k.until(5*time.Second, "the direct route is back", func() bool { return via(client, k.url(k.box.host, "/")) == "gateway" })

	newDirectBoxOn(t, k.traefikProcess, "walled", "none") // as a strict sandbox, which nothing reaches
	other := newDirectBox(t, k.traefikProcess, "other")
	other.direct(k.traefikProcess)
	if got := via(client, k.url("3000-walled."+k.domain, "/")); got != "sandboxd" {
		t.Errorf("a sandbox without a network leads to %s", got)
	}
}

// Freezing is nothing that Traefik hears of, and what it hears of others must not take the route away: forwardAuth thaws.
func TestTraefik_AFrozenSandboxKeepsItsRoute(t *testing.T) {
	k := newTraefikBed(t)
	engine(t, "pause", k.box.container)
	other := newDirectBox(t, k.traefikProcess, "other")
	other.direct(k.traefikProcess)
	k.auth.answers(func(http.ResponseWriter, *http.Request) {
		if out, err := exec.Command("docker", "unpause", k.box.container).CombinedOutput(); err != nil {
			t.Errorf("thaw: %v: %s", err, out)
		}
	})
	if got := via(k.client(), k.url(k.box.host, "/")); got != "gateway" {
		t.Errorf("a frozen sandbox leads to %s", got)
	}
}

func TestTraefik_LeadsToNoContainerButSandboxes(t *testing.T) {
	k := newTraefikBed(t)
	newDirectBoxOn(t, k.traefikProcess, "foreign", "bridge", "--label", "sandboxd.instance=")
	other := newDirectBox(t, k.traefikProcess, "other")
	other.direct(k.traefikProcess) // so its events have been heard too
	if got := via(k.client(), k.url("3000-foreign."+k.domain, "/")); got != "sandboxd" {
		t.Errorf("a container that is no sandbox leads to %s", got)
	}
}
