//go:build e2e

package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// echoed is what the stand-ins say about a request.
type echoed struct {
	Via, Method, URI, Host string
	Header                 http.Header
}

// ask gives the answer of the server at a URL, and what it says of the request. "" is for one that is no stand-in's.
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

func TestTraefik_LeadsEverySandboxsHostToSandboxd(t *testing.T) {
	k := newTraefik(t)
	k.start(newSandboxdStandIn(t))
	client := k.client()
	for _, host := range []string{k.domain, "lab." + k.domain, "3000-lab." + k.domain, strings.ToUpper("3000-lab." + k.domain), "code-lab." + k.domain, "gone." + k.domain} {
		for _, path := range []string{"/", "/.sandboxd/enter?code=x"} {
			if got := via(client, k.url(host, path)); got != "sandboxd" {
				t.Errorf("%s%s leads to %s", host, path, got)
			}
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
	dialer := websocket.Dialer{NetDialContext: k.dial, TLSClientConfig: k.tlsConfig(), HandshakeTimeout: callLimit}
	for _, host := range []string{"3000-lab." + k.domain, "lab." + k.domain} {
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
}

// What a visitor says of where they come from is not believed; Traefik says it, and sandboxd believes Traefik.
func TestTraefik_RequestsGoOnAsTheyCame(t *testing.T) {
	k := newTraefik(t)
	k.start(newSandboxdStandIn(t))
	host := "3000-lab." + k.domain
	for _, uri := range []string{"/a//b", "/a/../b", "/a/./b", "/a%2Fb%5Cc%25d%3Fe%23f", "/a;b=1", "/?q=a%3Bb&c=%20+", "/caf%C3%A9", "//x"} {
		req, err := http.NewRequest(http.MethodGet, k.url(host, "/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		path, query, _ := strings.Cut(uri, "?")
		req.URL.Opaque, req.URL.RawQuery = "//"+k.authority(host)+path, query
		req.Header = http.Header{"X-Forwarded-For": {"6.6.6.6"}, "Cookie": {"a=1"}, "Authorization": {"Bearer x"}}
		_, e, err := ask(k.client(), req)
		if err != nil || e.URI != uri || e.Host != k.authority(host) {
			t.Errorf("%s arrives as %s at %s, %v", uri, e.URI, e.Host, err)
		}
		for name, want := range map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https", "Cookie": "a=1", "Authorization": "Bearer x"} {
			if got := e.Header.Get(name); got != want {
				t.Errorf("%s arrives as %q", name, got)
			}
		}
	}
}
