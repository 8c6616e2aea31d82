//go:build e2e

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestServer_WithAnotherDataFolderReachesItsSandboxes copies a data folder, as a restore on the same machine does. The copy is refused while the
// first server runs; then its start restarts what runs, with what is installed in it.
func TestServer_WithAnotherDataFolderReachesItsSandboxes(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	if out := s.exec("lab", map[string]any{"command": "echo home >file"}); out.ExitCode != 0 {
		t.Fatalf("%+v", out)
	}
	s.asRoot("lab", "echo installed >/opt/file")
	moved := &server{t: t, data: filepath.Join(t.TempDir(), "data"), addr: freeAddr(t), extra: s.extra, http: s.http, token: s.token, log: s.log}
	t.Cleanup(moved.destroy)
	if out, err := exec.Command("cp", "-a", s.data, moved.data).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	if out, err := exec.CommandContext(ctx, binary, moved.args("serve", "--listen", moved.addr)...).CombinedOutput(); err == nil || !strings.Contains(string(out), "Stop the old one for good") {
		t.Errorf("two servers of one instance: %v %s", err, out)
	}
	s.stop()
	moved.start()
	moved.until("it was restarted", func() bool {
		_, text := moved.raw("GET", "/sandboxes/lab", nil)
		return strings.Contains(string(text), "the data folder was moved") && strings.Contains(string(text), `"running"`)
	})
	if out := moved.exec("lab", map[string]any{"command": "cat file /opt/file"}); out.Stdout != "home\ninstalled\n" {
		t.Errorf("%+v", out)
	}
	moved.stop()
	moved.start()
	if _, text := moved.raw("GET", "/sandboxes/lab", nil); !strings.Contains(string(text), `"running"`) {
		t.Errorf("after one more start: %s", text)
	}
	if n := strings.Count(moved.tail(), "the data folder was moved, and"); n > 1 {
		t.Errorf("restarted %d times", n)
	}
}

// TestNav_IsReadOnAPhone wants the current link to be whole and in sight on each page, and none to cover another.
func TestNav_IsReadOnAPhone(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	for _, path := range []string{"/", "/templates", "/backups", "/logs", "/alerts", "/volumes", "/host"} {
		p.resize("phone", "light")
		p.does("go to "+path, chromedp.Navigate(dashboard+path))
		p.sees("the current link in sight, clear of what fades", `(() => {
			const nav = document.querySelector(".nav"), bar = nav.getBoundingClientRect(), fade = parseFloat(getComputedStyle(nav).paddingLeft);
			const links = [...nav.children].map((a) => ({ now: a.ariaCurrent === "page", at: a.getBoundingClientRect() })).sort((a, b) => a.at.left - b.at.left);
			const now = links.find((l) => l.now).at;
			const clear = bar.left >= document.querySelector(".brand").getBoundingClientRect().right && bar.right <= document.querySelector(".bar-end").getBoundingClientRect().left;
			return clear && fade > 8 && now.left >= bar.left + fade - 1 && now.right <= bar.right - fade + 1 && links.every((l, n) => n === 0 || l.at.left >= links[n - 1].at.right);
		})()`)
		p.settles()
		p.picture("nav"+strings.ReplaceAll(path, "/", "-"), "phone")
	}
	p.pictures("nav")
}
