//go:build bench

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// How much is measured of the log.
const (
	benchLoudTime = 30 * time.Second
	benchSeen     = 200
	loudRate      = 1000 // lines in a second
	talker        = "/talker"
)

// logs measures the guest of a sandbox whose service writes a thousand lines a second, and how soon a line is seen beside that.
func (b *benches) logs() {
	s := newServer(b.t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	engine(b.t, "cp", staticProgram(b.t, "talker"), s.container("lab")+":"+talker)
	s.talks("loud")
	s.until("its lines are kept", func() bool { return s.newest("loud") > loudRate })
	b.group(s, "guest", func() { b.loud(s) })
	b.group(s, "tail", func() { b.seen(s) })
}

// talks declares a service of lab that writes lines of a kind that talker knows.
func (s *server) talks(kind string) {
	s.t.Helper()
	if err := s.ask("PUT", "/sandboxes/lab/services/"+kind, map[string]any{"command": []string{talker, kind}}); err != nil {
		s.t.Fatal(err)
	}
}

// newest gives the number at the beginning of a service's newest line; 0 for none.
func (s *server) newest(service string) (n int) {
	s.t.Helper()
	var found struct{ Lines []struct{ Text string } }
	if status := s.call("GET", "/logs?sandbox=lab&limit=1&service="+service, nil, &found); status != http.StatusOK {
		s.t.Fatalf("logs: %d", status)
	}
	if len(found.Lines) > 0 {
		fmt.Sscanf(found.Lines[0].Text, "%d", &n)
	}
	return n
}

// loud measures the guest's processor time and memory.
func (b *benches) loud(s *server) {
	t := b.t
	pid := guestPID(t, s, "lab")
	lines, used, began := s.newest("loud"), processTime(t, pid), time.Now()
	<-time.After(benchLoudTime)
	used, lines = processTime(t, pid)-used, s.newest("loud")-lines
	took := time.Since(began)
	t.Logf("%d lines in %s", lines, took)
	if least := int(took.Seconds()*loudRate) * 9 / 10; lines < least {
		t.Errorf("%d lines, want at least %d", lines, least)
	}
	b.sizeIn("% of a core", "guest, 1,000 lines/s", "≤ 1 % of a core", 100*used.Seconds()/took.Seconds())
	b.size("guest, 1,000 lines/s, resident", "≤ 8 MiB", statusMiB(t, pid, "VmRSS"))
}

// processTime is the processor time that a process has used, which the kernel tells in hundredths of a second.
func processTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest) // from the third on
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err != nil || err2 != nil {
		t.Fatalf("%s", text)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// seen measures how long it takes until a line that was written is seen by one who follows.
func (b *benches) seen(s *server) {
	t := b.t
	ctx, end := context.WithTimeout(t.Context(), eventLimit+benchSeen*time.Second)
	defer end()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/api/v1/logs?follow=true&service=clock", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	s.talks("clock")
	var took []time.Duration
	lines := bufio.NewScanner(resp.Body)
	for len(took) < benchSeen && lines.Scan() {
		var l struct{ Text string }
		if lines.Text() == "" {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if at, err := strconv.ParseInt(l.Text, 10, 64); err == nil {
			took = append(took, time.Since(time.Unix(0, at)))
		}
	}
	if len(took) < benchSeen {
		t.Fatalf("%d lines, %v", len(took), lines.Err())
	}
	b.add("line written to seen in the tail", "p95 ≤ 300 ms", took, nil)
}
