//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// manyPages is how many pages are open at once, and manyPagesMiB how much memory sandboxd may take for them, in MiB.
const (
	manyPages    = 200
	manyPagesMiB = 60
)

// TestLive_TwoHundredPagesTakeLittleMemory opens workspaces as browsers do: the page, its connection, and what it follows.
func TestLive_TwoHundredPagesTakeLittleMemory(t *testing.T) {
	profiles := freeAddr(t)
	s := newServer(t, "--prebuild", "", "--pprof-address", profiles)
	names := []string{"one", "two", "three", "four", "five", "six", "seven"} // in each as many may watch its folders as pages show it
	ids := map[string]string{}
	for _, name := range names {
		s.create(map[string]any{"name": name, "image": "debian:trixie-slim"})
		ids[name] = strings.TrimPrefix(s.container(name), "sandboxd-"+s.instance()+"-")
	}
	before := residentMiB(t, s.cmd.Process.Pid)
	heard := s.openPages(names, ids)
	s.untilWithin(callLimit, "every page has been told of its sandbox and its folder", func() bool { return heard.all(1, 2) })
	opened := residentMiB(t, s.cmd.Process.Pid)
	most := opened
	for n := range 10 {
		heard.forget()
		for _, name := range names {
			s.call("PATCH", "/sandboxes/"+name, map[string]any{"label": fmt.Sprint("change ", n)}, nil)
		}
		s.untilWithin(callLimit, "every page has been told", func() bool { return heard.all(1) })
		most = max(most, residentMiB(t, s.cmd.Process.Pid))
	}
	t.Logf("resident: %.0f MiB before, %.0f MiB with %d pages, %.0f MiB at most while they change", before, opened, manyPages, most)
	if most-before > manyPagesMiB { // not of all that it takes: more and more of that is the program itself
		t.Errorf("sandboxd takes %.0f MiB more, at most %d are wanted", most-before, manyPagesMiB)
	}
	resp, err := http.Get("http://" + profiles + "/debug/pprof/heap?gc=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var profile bytes.Buffer
	if _, err := profile.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("its profile: %s %v", resp.Status, err)
	}
	if err := os.WriteFile(artefact(t, "live-heap.pb.gz"), profile.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// openPages opens workspaces of these sandboxes in turn, and gives what they are told until the test ends. So many pages of one
// sandbox are more than may watch its folders.
func (s *server) openPages(names []string, ids map[string]string) *count {
	s.t.Helper()
	client := s.login("admin", journeyPassword)
	dialer := websocket.Dialer{Jar: client.Jar, HandshakeTimeout: callLimit}
	var reading sync.WaitGroup
	s.t.Cleanup(reading.Wait)
	heard := newCount()
	for n := range manyPages {
		name := names[n%len(names)]
		resp, err := client.Get("http://" + s.addr + "/sandboxes/" + name)
		if err != nil {
			s.t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			s.t.Fatalf("the page: %s %v", resp.Status, err)
		}
		conn, _, err := dialer.Dial("ws://"+s.addr+"/live", http.Header{"Origin": {"http://" + s.addr}})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { conn.Close() })
		reading.Go(func() { heard.read(n, conn) })
		for id, topic := range []string{"/sandboxes/" + name + "?sandbox_id=" + ids[name], "/sandboxes/" + name + "/files?path=" + url.QueryEscape("/home/agent")} {
			if err := conn.WriteJSON(map[string]any{"id": id + 1, "topic": topic}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return heard
}

// count tells what pages have heard, by page and channel.
type count struct {
	mu    sync.Mutex
	heard map[[2]int]bool
}

func newCount() *count { return &count{heard: map[[2]int]bool{}} }

// read notes what comes to a page until its connection ends.
func (c *count) read(page int, conn *websocket.Conn) {
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			return
		}
		var e struct {
			ID   int    `json:"id"`
			Kind string `json:"kind"`
		}
		if json.Unmarshal(text, &e) == nil && e.Kind != "ended" {
			c.mu.Lock()
			c.heard[[2]int{page, e.ID}] = true
			c.mu.Unlock()
		}
	}
}

func (c *count) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.heard)
}

func (c *count) all(channels ...int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for page := range manyPages {
		for _, id := range channels {
			if !c.heard[[2]int{page, id}] {
				return false
			}
		}
	}
	return true
}
