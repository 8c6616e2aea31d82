//go:build e2e

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	raceNames  = 4  // contended for side by side
	raceRounds = 25 // creates and deletes of each
)

// ownManifest has a service that says whose sandbox it is in.
const ownManifest = `name: own
title: Own
description: Says whose it is.
icon: box
image: debian:trixie-slim
profile: dev
size: {cpus: 1, memory: 128MiB, pids: 64, disk: 1GiB}
ports: [{port: 3000, title: Own}]
services:
  - name: own
    port: 3000
    autostart: true
    command: [perl, -MIO::Socket::INET, -e, '$l = IO::Socket::INET->new(LocalAddr => "127.0.0.1:3000", Listen => 64, ReuseAddr => 1);
      while ($c = $l->accept) { 1 while ($_ = <$c>) && !/^\r?$/; print $c "HTTP/1.0 200 OK\r\n\r\n$ENV{OWNER}"; close $c }']
`

// contender is one of two users who make and delete sandboxes of the same names.
type contender struct {
	*server
	name    string
	proxied *http.Client
	reached [2]atomic.Int64 // how often what they asked for was answered by a sandbox
}

// TestReplaced_NobodyReachesTheNextOwnersSandbox has two users make and delete sandboxes of the same names in turn, while both
// go on asking for what is inside: whatever answers must be the asker's own.
func TestReplaced_NobodyReachesTheNextOwnersSandbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTemplate(t, dir, "own", ownManifest)
	s := newServer(t, "--prebuild", "", "--templates", dir)
	both := make([]*contender, 2)
	for i, name := range []string{"ada", "bob"} {
		s.addUser(name)
		token := strings.TrimSpace(s.cli("token", "create", "race", "--user", name))
		both[i] = &contender{server: &server{t: t, data: s.data, addr: s.addr, http: s.http, token: token, log: s.log}, name: name, proxied: straight(s.addr)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asking, racing sync.WaitGroup
	for n := range raceNames {
		box := fmt.Sprintf("race-%d", n)
		for _, c := range both {
			asking.Go(func() { c.keepAsking(ctx, 0, func() (int, string, error) { return c.requestOwn(ctx, box) }) })
			asking.Go(func() { c.keepAsking(ctx, 1, func() (int, string, error) { return c.execOwn(box) }) })
		}
		racing.Go(func() {
			for round := range raceRounds {
				both[round%2].turn(box)
			}
		})
	}
	racing.Wait()
	cancel()
	asking.Wait()
	for _, c := range both {
		port, command := c.reached[0].Load(), c.reached[1].Load()
		t.Logf("%s was answered %d times by the port, and %d by a command", c.name, port, command)
		if port == 0 || command == 0 {
			t.Errorf("%s was answered %d times by the port, and %d by a command: nothing was tried", c.name, port, command)
		}
	}
}

// addUser adds a member.
func (s *server) addUser(name string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), callLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, s.args("user", "add", name)...)
	cmd.Stdin = strings.NewReader("a-long-test-password\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("add user %s: %v\n%s", name, err, out)
	}
}

// turn makes the sandbox as soon as its name is free, and deletes it as soon as its port has answered.
func (c *contender) turn(box string) {
	in := map[string]any{"name": box, "template": "own", "env": map[string]string{"OWNER": c.name}}
	for deadline := time.Now().Add(eventLimit); ; <-time.After(5 * time.Millisecond) {
		status, body, err := c.try("POST", "/sandboxes?wait=ready", in)
		if err == nil && status == http.StatusCreated {
			break
		}
		if err != nil || status != http.StatusConflict || time.Now().After(deadline) {
			c.t.Errorf("%s cannot create %s: %d %s, %v", c.name, box, status, body, err)
			return
		}
	}
	c.until("the port of "+box+" answers", func() bool {
		status, _, err := c.requestOwn(c.t.Context(), box)
		return err == nil && status == http.StatusOK
	})
	if status, body, err := c.try("DELETE", "/sandboxes/"+box, nil); err != nil || status != http.StatusAccepted {
		c.t.Errorf("%s cannot delete %s: %d %s, %v", c.name, box, status, body, err)
	}
}

// keepAsking asks until ctx ends, and wants every answer from inside a sandbox to be of the asker's own.
func (c *contender) keepAsking(ctx context.Context, way int, ask func() (status int, owner string, err error)) {
	for ctx.Err() == nil {
		status, owner, err := ask()
		if err == nil && status == http.StatusOK {
			c.reached[way].Add(1)
			if owner != c.name {
				c.t.Errorf("%s has reached a sandbox that says it is %q", c.name, owner)
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *contender) requestOwn(ctx context.Context, box string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.host("3000-"+box)+"/", nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-Api-Key", c.token)
	resp, err := c.proxied.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func (c *contender) execOwn(box string) (int, string, error) {
	status, body, err := c.try("POST", "/sandboxes/"+box+"/exec", map[string]any{"command": []string{"printenv", "OWNER"}})
	_, rest, _ := strings.Cut(string(body), `"stdout":"`)
	owner, _, _ := strings.Cut(rest, `\n`)
	return status, owner, err
}
