//go:build e2e

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"
)

// behind is a server behind the real Traefik, as compose.yaml puts them together.
type behind struct {
	*server
	k *traefikProcess
}

func newBehind(t *testing.T, extra ...string) behind {
	t.Helper()
	k := newTraefik(t)
	s := newServerNamed(t, k.authority(k.domain), append([]string{"--prebuild", "", "--templates", echoTemplates(t), "--public-url", k.publicURL(),
		"--trusted-proxies", "127.0.0.1/32"}, extra...)...)
	k.start(s.addr)
	b := behind{s, k}
	s.createEchoAt("lab", echoProgram(t), b.echoHost())
	return b
}

// echoHost is the Host of the echo service of lab.
func (b behind) echoHost() string { return b.k.authority(echoPort + "-lab." + b.k.domain) }

// ask asks for something of lab's by way of Traefik, with the token.
func (b behind) ask(method, path string, body *os.File) (*http.Response, error) {
	req, err := http.NewRequestWithContext(b.t.Context(), method, "https://"+b.echoHost()+path, nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		info, err := body.Stat()
		if err != nil {
			return nil, err
		}
		req.Body, req.ContentLength = body, info.Size()
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.k.client().Do(req)
}

// page asks for a page and wants it.
func (b behind) page(path string) {
	b.t.Helper()
	resp, err := b.ask("GET", path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), path) {
		b.t.Fatalf("%s: %s %.300s, %v\n%s\nTraefik:\n%s", path, resp.Status, text, err, b.tail(), b.k.tail())
	}
}

// reports waits until lab is in a state.
func (b behind) reports(state string) {
	b.t.Helper()
	b.until("lab is "+state, func() bool { return b.rest("lab").State == state })
}

// TestBehind_EveryRouteWakes puts a sandbox to rest behind Traefik and asks at once, again and again: whichever route
// Traefik has at that moment, the answer is the page.
func TestBehind_EveryRouteWakes(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	for n := range 4 {
		for _, state := range []string{"frozen", "asleep"} {
			b.sleeps("lab", state)
			for m := range 5 {
				b.page(fmt.Sprintf("/%s/%d/%d", state, n, m))
			}
		}
	}
}

// TestBehind_TheProgramIsToldNothingOfOurs looks at what reaches the program and what comes out.
func TestBehind_TheProgramIsToldNothingOfOurs(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	resp, err := b.ask("GET", "/head", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	for _, secret := range []string{b.token, "X-Sandboxd", "Authorization"} {
		if strings.Contains(text, secret) {
			t.Errorf("the program is told %q:\n%s", secret, text)
		}
	}
	for _, line := range []string{"host: " + b.echoHost(), "X-Forwarded-Proto: https", "X-Forwarded-For: 127.0.0.1\r"} {
		if !strings.Contains(text, line) {
			t.Errorf("the program is not told %q:\n%s", line, text)
		}
	}
	var cookies []string
	for _, c := range resp.Cookies() {
		cookies = append(cookies, c.Name)
	}
	if strings.Join(cookies, " ") != "own" {
		t.Errorf("of its cookies come out: %v", cookies)
	}
}

// TestBehind_AStrangerWakesNobody asks without a credential for a sandbox that is at rest.
func TestBehind_AStrangerWakesNobody(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	for _, state := range []string{"frozen", "asleep"} {
		b.sleeps("lab", state)
		for range 5 {
			resp, err := b.k.client().Get("https://" + b.echoHost() + "/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if got := b.rest("lab").State; got != state {
			t.Errorf("a stranger made it %s", got)
		}
	}
}

// TestBehind_AnOpenWebSocketGoesThroughAFreeze is the same as without Traefik.
func TestBehind_AnOpenWebSocketGoesThroughAFreeze(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	d := websocket.Dialer{NetDialContext: b.k.dial, TLSClientConfig: b.k.tlsConfig()}
	conn, _, err := d.DialContext(t.Context(), "wss://"+b.echoHost()+"/ws", http.Header{"Authorization": {"Bearer " + b.token}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for n := range 5 {
		b.echoes(conn, fmt.Sprintf("before %d", n))
		b.sleeps("lab", "frozen")
		b.echoes(conn, fmt.Sprintf("after %d", n))
	}
}

// TestBehind_AnUploadIntoASleepingSandboxArrivesWhole is the same as without Traefik.
func TestBehind_AnUploadIntoASleepingSandboxArrivesWhole(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	path := filepath.Join(t.TempDir(), "upload")
	want := randomFile(t, path, uploadSize)
	for _, state := range []string{"asleep", "frozen", "running"} {
		if state != "running" {
			b.sleeps("lab", state)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.ask("PUT", "/sum", f)
		if err != nil {
			t.Fatalf("%s: %v\n%s", state, err, b.tail())
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %s %.200s, %v; want %s", state, resp.Status, got, err, want)
		}
	}
}

// TestBehind_ALongDownloadKeepsItAwake reads slowly, for longer than the shortest times.
func TestBehind_ALongDownloadKeepsItAwake(t *testing.T) {
	t.Parallel()
	b := newBehind(t, "--settle", "1s")
	if status, text := b.raw("PATCH", "/sandboxes/lab", map[string]any{"freeze_after": "5s", "stop_after": "10s"}); status != http.StatusOK {
		t.Fatalf("patch: %d %s", status, text)
	}
	resp, err := b.ask("GET", "/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 30*200); err != nil { // half a minute
		t.Error(err)
	}
	if got := b.rest("lab"); got.State != "running" {
		t.Errorf("while it sends events it is %+v", got)
	}
	resp.Body.Close()
	b.reports("asleep")
}

// TestBehind_TheBrowserSeesThePageItAskedFor signs in behind Traefik and opens a sleeping subdomain.
func TestBehind_TheBrowserSeesThePageItAskedFor(t *testing.T) {
	b := newBehind(t)
	p := newPerson(t, chromedp.Flag("ignore-certificate-errors", true))
	p.signsIn(b.k.publicURL())
	for _, state := range []string{"asleep", "frozen"} {
		b.sleeps("lab", state)
		p.does("open the page", chromedp.Navigate("https://"+b.echoHost()+"/the/page?x=1#part"))
		p.sees("the page it asked for", `document.querySelector("h1")?.innerText.startsWith("Here is 3000-lab") && location.pathname + location.search + location.hash === "/the/page?x=1#part"`)
	}
}
