//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/gateway/gatewaytest"
)

// TestTrials_OneOfThreeIsKept has a person send a message to three clones, compare them, and keep one: the sandbox has its file then, the
// others are gone, and the snapshot from before takes it back.
func TestTrials_OneOfThreeIsKept(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	var scripts []gatewaytest.Script
	for range 3 {
		scripts = append(scripts, gatewaytest.Script{Text: "I write it.", Calls: use("write_file", map[string]any{"path": "answer.txt", "content": "forty-two\n"})})
	}
	for range 3 { // the agents share the scripts: one that comes late has no call left
		scripts = append(scripts, gatewaytest.Script{Text: "It is written."})
	}
	w.provider.Play(scripts...)
	w.chooses("When the agent asks", "auto")
	w.writes("Write the answer.")
	w.pushes("sandbox-chat .chat-head", "Try it several times")
	w.sees("how often", `document.querySelector("dialog[open] input[type=number]")?.value === "3"`)
	w.pictures("tries-begin")
	w.pushes("dialog[open]", "Start")
	w.sees("the page of the tries", `document.querySelectorAll("#tries .try").length === 3`)
	w.sees("that all are done", `[...document.querySelectorAll("#tries .try .state-word")].every((e) => e.textContent === "Done")`)
	w.pictures("tries")
	changed := w.reads(`[...document.querySelectorAll("#tries .try")].map((e) => e.querySelector("li")?.textContent.replace(/\s+/g, " ").trim() ?? "").join("|")`)
	at := -1
	for i, files := range strings.Split(changed, "|") {
		if strings.Contains(files, "answer.txt") && strings.Contains(files, "+1") {
			at = i
		}
	}
	if at < 0 {
		t.Fatalf("the tries changed %q", changed)
	}
	name := fmt.Sprintf("lab-try-%d", at+1)
	w.runs("keep it", fmt.Sprintf(`document.querySelector('a[aria-label="Keep this one: %s"]').click()`, name))
	w.pushes("dialog[open]", "Keep this one")
	w.sees("that it was kept", `document.querySelector("#tries .state-word").textContent === "One was kept"`)
	w.pictures("tries-kept")
	if out := w.server.exec("lab", map[string]any{"command": "cat ~/answer.txt"}); out.Stdout != "forty-two\n" {
		t.Errorf("lab has %+v", out)
	}
	for n := range 3 {
		if got := w.server.call(http.MethodGet, fmt.Sprintf("/sandboxes/lab-try-%d", n+1), nil, nil); (got == http.StatusOK) != (n == at) {
			t.Errorf("lab-try-%d: status %d", n+1, got)
		}
	}
	var list struct {
		Snapshots []struct{ ID, Kind string }
	}
	w.server.call(http.MethodGet, "/sandboxes/lab/snapshots", nil, &list)
	for _, snap := range list.Snapshots {
		if snap.Kind == "safety" {
			w.server.call(http.MethodPost, "/sandboxes/lab/snapshots/"+snap.ID+"/restore", nil, nil)
			break
		}
	}
	if got := w.server.call(http.MethodGet, "/sandboxes/lab/files?path=answer.txt", nil, nil); got != http.StatusNotFound {
		t.Errorf("after it was taken back, the file is there: status %d", got)
	}
}
