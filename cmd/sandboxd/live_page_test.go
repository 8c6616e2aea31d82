//go:build e2e || bench

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// livePages are all pages of one sandbox and the server around it.
var livePages = []string{
	"/", "/templates", "/sandboxes/otter", "/sandboxes/otter/rest", "/sandboxes/otter/services", "/", "/templates", "/sandboxes/otter", "/",
	"/templates/base", "/logs?sandbox=otter&service=clock", "/sandboxes/otter/ports/8000", "/new", "/settings",
	"/sandboxes/otter/vscode", "/settings/tokens", "/sandboxes/otter/rename", "/settings/users", "/sandboxes/otter/delete",
}

// navigationLimit bounds one navigation on a busy machine. It is shorter than eventLimit, as a navigation that waits for a leaked
// connection ends after a minute. navigationGoal is what `make bench` holds it to.
const (
	navigationLimit = 30 * time.Second
	navigationGoal  = 2 * time.Second
)

// current is a script that tells that the page is up to date, if it changes at all.
const current = `document.querySelector("#live:not([data-current])") === null`

// openLive starts a server with one sandbox, which has a service that writes all the time, and opens its workspace.
func openLive(t *testing.T) *filesPage {
	t.Helper()
	p := openFiles(t, "head -c 64M /dev/urandom > big")
	if status, body := p.s.raw("PUT", "/sandboxes/otter/services/clock", map[string]any{"command": "while date; do sleep 0.2; done"}); status >= 300 {
		t.Fatalf("service: %d %s", status, body)
	}
	return p
}

// goes runs a script that leads to a path, and gives how long it took until that page was there and up to date.
func (p *filesPage) goes(path, script string) time.Duration {
	p.t.Helper()
	p.runs("mark the page", `window.left = true; window.kept = false; addEventListener("pageshow", () => { window.left = false; window.kept = true; }, { once: true })`)
	began := time.Now()
	where, _, _ := strings.Cut(path, "?")
	p.runs("go to "+path, "setTimeout(() => "+script+")")
	p.seesWithin("the page "+path, fmt.Sprintf(`!window.left && location.pathname === %q && document.readyState === "complete" && %s`, where, current), navigationLimit)
	return time.Since(began)
}

func (p *filesPage) follows(path string) time.Duration {
	p.t.Helper()
	return p.goes(path, fmt.Sprintf("location.assign(%q)", path))
}

// summary says how long navigations took.
func summary(took []time.Duration) string {
	slices.Sort(took)
	return fmt.Sprintf("%d navigations: p50 %s, p95 %s, longest %s", len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
}
