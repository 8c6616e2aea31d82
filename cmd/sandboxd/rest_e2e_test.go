//go:build e2e

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
)

// uploadSize is what is sent into a sandbox that sleeps.
const uploadSize = 200 << 20

// get gives the status and body of a request with the token.
func (s *server) get(sub, path string, header http.Header) (int, string, http.Header) {
	s.t.Helper()
	resp, err := s.request("GET", sub, path, header, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// TestRest_FreezesAndSleepsByItselfAndEveryWayInWakes lets a sandbox go unused until it is frozen, and then stopped,
// and uses each way in.
func TestRest_FreezesAndSleepsByItselfAndEveryWayInWakes(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--settle", "1s", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	reaches := func(state string) {
		t.Helper()
		s.until("lab is "+state, func() bool { return s.rest("lab").State == state })
	}
	page := func() error {
		status, text, _ := s.get("3000-lab", "/some/page", nil)
		if status != http.StatusOK || !strings.Contains(text, "/some/page") {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	}
	command := func() error {
		if out := s.exec("lab", map[string]any{"command": "echo here"}); out.Stdout != "here\n" {
			return fmt.Errorf("%+v", out)
		}
		return nil
	}
	start := func() error {
		status, text := s.raw("POST", "/sandboxes/lab/start?wait=ready", nil)
		if status != http.StatusOK {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	}
	socket := func() error {
		conn := s.dialEcho(s.addr, s.host("3000-lab"))
		s.echoes(conn, "hello")
		return conn.Close()
	}
	for state, stop := range map[string]string{"frozen": "10m", "asleep": "15s"} {
		if status, text := s.raw("PATCH", "/sandboxes/lab", map[string]any{"freeze_after": "2s", "stop_after": stop}); status != http.StatusOK {
			t.Fatalf("patch: %d %s", status, text)
		}
		for way, open := range map[string]func() error{"page": page, "exec": command, "start": start, "websocket": socket} {
			reaches(state)
			if err := open(); err != nil {
				t.Errorf("%s of a sandbox that is %s: %v", way, state, err)
			}
			if got := s.rest("lab").State; got != "running" && got != "frozen" {
				t.Errorf("after %s it is %s", way, got)
			}
		}
	}
	s.sleeps("lab", "asleep")
	for range 3 { // what only looks never wakes
		s.call("GET", "/sandboxes", nil, nil)
		status, _, head := s.get("3000-lab", "/", http.Header{"X-Sandboxd-Observe": {"1"}})
		if status != http.StatusServiceUnavailable || head.Get("Retry-After") == "" {
			t.Errorf("a probe that observes: %d, %v", status, head)
		}
	}
	if got := s.rest("lab").State; got != "asleep" {
		t.Errorf("after a look it is %s", got)
	}
}

// TestRest_ManyWaitersStartOnce lets a hundred ask at once for a page of a sandbox that sleeps.
func TestRest_ManyWaitersStartOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	s.sleeps("lab", "asleep")
	since := time.Now()
	var g errgroup.Group
	for range 100 {
		g.Go(func() error {
			resp, err := s.request("GET", "3000-lab", "/small", nil, nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); resp.StatusCode != http.StatusOK || n != 1000 || err != nil {
				return fmt.Errorf("%s, %d bytes, %v", resp.Status, n, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if got := startsSince(t, s, "lab", since); got != 1 {
		t.Errorf("it was started %d times", got)
	}
}

// startsSince counts in the engine's record how often a sandbox was started.
func startsSince(t *testing.T, s *server, name string, since time.Time) int {
	t.Helper()
	stamp := func(at time.Time) string { return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()) }
	out := engine(t, "events", "--since", stamp(since), "--until", stamp(time.Now()), "--filter", "container="+s.container(name),
		"--filter", "event=start", "--format", "{{.Action}}")
	return strings.Count(out, "start")
}

// TestRest_AnUploadIntoASleepingSandboxArrivesWhole sends 200 MB to a sandbox that is asleep, and to one that is frozen.
func TestRest_AnUploadIntoASleepingSandboxArrivesWhole(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	path := filepath.Join(t.TempDir(), "upload")
	want := randomFile(t, path, uploadSize)
	for _, state := range []string{"asleep", "frozen"} {
		s.sleeps("lab", state)
		s.uploads(s.addr, "lab", path, want)
	}
}

// randomFile writes size random bytes and gives what the echo service says of them.
func randomFile(t *testing.T, path string, size int64) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, h), rand.Reader, size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", size, hex.EncodeToString(h.Sum(nil)))
}

func (s *server) uploads(addr, name, path, want string) {
	s.t.Helper()
	f, err := os.Open(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	resp, err := s.request("PUT", echoPort+"-"+name, "/sum", nil, f)
	if err != nil {
		s.t.Fatalf("upload into %s: %v\n%s", name, err, s.tail())
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(got) != want {
		s.t.Fatalf("upload into %s: %s %.200s, %v; want %s\n%s", name, resp.Status, got, err, want, s.tail())
	}
}

// TestRest_AnOpenWebSocketGoesThroughAFreeze freezes a sandbox under an open connection, again and again.
func TestRest_AnOpenWebSocketGoesThroughAFreeze(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	conn := s.dialEcho(s.addr, s.host("3000-lab"))
	for n := range 5 {
		s.echoes(conn, fmt.Sprintf("before %d", n))
		s.sleeps("lab", "frozen")
		s.echoes(conn, fmt.Sprintf("after %d", n))
		if got := s.rest("lab").State; got != "running" {
			t.Errorf("after a message it is %s", got)
		}
	}
}

// TestRest_WhatIsInUseStaysUpAndSaysWhy keeps a sandbox with the shortest times busy in several ways.
func TestRest_WhatIsInUseStaysUpAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--settle", "1s", "--templates", echoTemplates(t, "freeze_after: 2s", "stop_after: 4s"))
	s.createEcho("lab", echoProgram(t))
	kinds := func() string {
		var all []string
		for _, r := range s.rest("lab").Because {
			all = append(all, r.Kind)
		}
		return strings.Join(all, " ")
	}
	stays := func(what, kind string, use func()) {
		t.Helper()
		var done sync.WaitGroup
		done.Go(use)
		s.until("it is kept awake by "+kind, func() bool { return strings.Contains(kinds(), kind) })
		if state := s.rest("lab").State; state != "running" {
			t.Errorf("%s: it is %s", what, state)
		}
		done.Wait()
		if state := s.rest("lab").State; state != "running" {
			t.Errorf("after %s it is %s", what, state)
		}
		s.until("it rests after "+what, func() bool { return s.rest("lab").State != "running" })
	}
	stays("a command", "exec", func() { s.exec("lab", map[string]any{"command": "sleep 8"}) })
	stays("an event stream", "stream", func() {
		resp, err := s.request("GET", "3000-lab", "/events", nil, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.CopyN(io.Discard, resp.Body, 3000); err != nil {
			t.Error(err)
		}
	})
	var hold struct{ ID string }
	if status := s.call("POST", "/sandboxes/lab/holds", map[string]any{"reason": "nightly job", "ttl": "1h"}, &hold); status != http.StatusCreated {
		t.Fatalf("hold: %d", status)
	}
	if status, text := s.raw("POST", "/sandboxes/lab/start?wait=ready", nil); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, text)
	}
	held := time.NewTimer(8 * time.Second) // only time shows that it does not rest
	<-held.C
	if r := s.rest("lab"); r.State != "running" || len(r.Because) != 1 || r.Because[0].Kind != "hold" || r.Because[0].Detail != "nightly job" {
		t.Errorf("under a hold: %+v", r)
	}
	s.call("DELETE", "/sandboxes/lab/holds/"+hold.ID, nil, nil)
	s.until("it rests after the hold", func() bool { return s.rest("lab").State != "running" })
}

// TestRest_WhatIsPausedFromOutsideUnderACommandGoesOn freezes a sandbox behind sandboxd's back.
func TestRest_WhatIsPausedFromOutsideUnderACommandGoesOn(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	container := s.container("lab")
	is := func(state, paused string) {
		t.Helper()
		s.until("it is "+state, func() bool {
			return engine(t, "inspect", "--format", "{{.State.Paused}}", container) == paused && s.rest("lab").State == state
		})
	}
	pauses := func() { // a busy machine may be too slow for the engine
		t.Helper()
		s.until("the engine pauses it", func() bool { return exec.Command("docker", "pause", container).Run() == nil })
	}
	var out execBody
	var done sync.WaitGroup
	done.Go(func() { out = s.exec("lab", map[string]any{"command": "sleep 3; echo here"}) })
	s.usedBy("lab", "exec")
	pauses()
	is("running", "false")
	done.Wait()
	if out.Stdout != "here\n" || out.TimedOut {
		t.Errorf("the command ends with %+v", out)
	}
	s.flowsOn("lab", func() {
		pauses()
		is("running", "false")
	})
	s.until("nobody waits for it", func() bool { return !s.hasReason("lab", "stream") })
	for range 5 {
		pauses()
		is("frozen", "true")
		engine(t, "unpause", container)
		is("running", "false")
	}
	pauses()
	is("frozen", "true")
	if out := s.exec("lab", map[string]any{"command": "echo again"}); out.Stdout != "again\n" {
		t.Errorf("the next command ends with %+v", out)
	}
}

// usedBy waits until a use of that kind keeps a sandbox awake.
func (s *server) usedBy(name, kind string) {
	s.t.Helper()
	s.until(name+" is used by "+kind, func() bool { return s.hasReason(name, kind) })
}

func (s *server) hasReason(name, kind string) bool {
	s.t.Helper()
	for _, r := range s.rest(name).Because {
		if r.Kind == kind {
			return true
		}
	}
	return false
}

// flowsOn holds a stream open, stops it by stop again and again, and reads on.
func (s *server) flowsOn(name string, stop func()) {
	s.t.Helper()
	resp, err := s.request("GET", echoPort+"-"+name, "/events", nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	for range 3 {
		if _, err := io.CopyN(io.Discard, resp.Body, 1500); err != nil { // of 208 in a second
			s.t.Fatal(err)
		}
		s.usedBy(name, "stream")
		stop()
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 1500); err != nil {
		s.t.Error(err)
	}
}

// TestRest_TheBrowserSeesThePageItAskedFor puts a sandbox to sleep and opens its subdomain in a real browser.
func TestRest_TheBrowserSeesThePageItAskedFor(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	p := newPerson(t)
	p.signsIn("http://localhost:" + s.port())
	for _, state := range []string{"asleep", "frozen"} {
		s.sleeps("lab", state)
		p.does("open the page", chromedp.Navigate("http://"+s.host("3000-lab")+"/the/page?x=1#part"))
		p.sees("the page it asked for", `document.querySelector("h1")?.innerText.startsWith("Here is 3000-lab") && location.pathname + location.search + location.hash === "/the/page?x=1#part"`)
	}
	p.keepsAwakeAndSleeps(s)
	s.sleeps("lab", "asleep")
	p.does("open the workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("that it is asleep", `document.body.innerText.toLowerCase().includes("asleep")`)
	if state := s.rest("lab").State; state != "asleep" {
		t.Errorf("opening its page made it %s", state)
	}
	p.pictures("workspace-asleep")
}

// places is a script that gives where the buttons of the workspace's header are, by their words.
const places = `Object.fromEntries([...document.querySelectorAll(".bar :is(a, button, summary)")]
	.filter((e) => !e.closest(".menu-list, #ws-state") && e.checkVisibility({visibilityProperty: true}))
	.map((e) => [(e.ariaLabel ?? e.textContent).replace(/[\d\s]+/g, ""), Math.round(e.getBoundingClientRect().left)]))`

// keepsAwakeAndSleeps keeps a sandbox awake until tomorrow in the person's zone, and puts it to sleep all the same.
func (p *person) keepsAwakeAndSleeps(s *server) {
	p.t.Helper()
	p.does("live in Tokyo", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
		return chromedp.Void{}, err
	})
	p.does("open the workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("that a port is open", `document.querySelector("#ws-ports .count")?.textContent === "1"`)
	p.runs("open the menu of its state", `document.querySelector("#ws-state summary").click()`)
	p.runs("keep it awake until tomorrow", `document.querySelector("#ws-state [value=tomorrow]").click()`)
	p.sees("until when", `/awake until\s+\w{3} 09:00/.test(document.querySelector("#ws-state .at-why").textContent) && document.querySelector("#ws-state [open] .rest-kept") !== null`)
	p.pictures("workspace-keep-awake")
	p.runs("open any other time", `[...document.querySelectorAll(".keep-times a")].at(-1).click()`)
	p.sees("the field that it asks for", `document.activeElement.id === "keep-for" && document.querySelector("#ws-state [open]") === null`)
	p.pictures("rest-custom")
	p.runs("close it", `document.querySelector("[data-sheet-close]").click(); document.activeElement.blur()`)
	p.runs("remember where the buttons are", `window.before = `+places)
	p.runs("put it to sleep", `document.querySelector("#ws-acts > form button").click()`)
	p.sees("that it sleeps", `document.querySelector("#ws-state .state-word").textContent === "Asleep" && document.querySelector("#ws-still button") !== null`)
	p.settles()
	if moved := p.reads(`((after) => ["Share", "Ports"].filter((k) => !(k in after)).concat(Object.keys(after).filter((k) => k in before && after[k] !== before[k])))(` + places + `)`); moved != "" {
		p.t.Errorf("asleep, the header has moved or lost %s: %s, before %s", moved, p.reads("JSON.stringify("+places+")"), p.reads("JSON.stringify(before)"))
	}
	var left struct{ Holds []any }
	if s.call("GET", "/sandboxes/lab/holds", nil, &left); len(left.Holds) > 0 {
		p.t.Errorf("Sleep now has left %v", left.Holds)
	}
}

// TestRest_TheLastStateIsToldOfWhatWasDeleted asks for a sandbox that is gone, which nothing brings back.
func TestRest_TheLastStateIsToldOfWhatWasDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo"})
	if status, text := s.raw("DELETE", "/sandboxes/lab?wait=gone", nil); status != http.StatusNoContent {
		t.Fatalf("delete: %d %s", status, text)
	}
	if status, text, _ := s.get("3000-lab", "/", nil); status != http.StatusGone {
		t.Errorf("its host: %d %s", status, text)
	}
	status, text := s.raw("POST", "/sandboxes/lab/exec", map[string]any{"command": "true"})
	var problem struct{ Code string }
	if err := json.Unmarshal(text, &problem); err != nil || status != http.StatusGone || problem.Code != "gone" {
		t.Errorf("exec: %d %s", status, text)
	}
	if status, _ := s.raw("GET", "/sandboxes/never", nil); status != http.StatusNotFound {
		t.Errorf("one that never was: %d", status)
	}
}
