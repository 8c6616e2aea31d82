package web

import (
	"net/http"
	"testing"
)

func TestFilesAndCommands_WhoMayUseOneSandboxUsesNoOtherOfItsName(t *testing.T) {
	w := newFilesWorld(t)
	w.access.replace()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/files?path=notes.txt", ""},
		{"GET", "/files?path=notes.txt&stat=true&refresh=true", ""},
		{"PUT", "/files?path=notes.txt", "evil"},
		{"DELETE", "/files?path=notes.txt", ""},
		{"GET", "/files:trash", ""},
		{"POST", "/files:search", `{"query":"x"}`},
		{"GET", "/files:watch?path=src", ""},
		{"POST", "/exec", `{"command":"true"}`},
	} {
		w.call("ada", c.method, "/api/v1/sandboxes/lab"+c.path, c.body).problem(http.StatusGone, "gone", "")
	}
	if got := w.files.content("/home/agent/notes.txt"); got != "hello" {
		t.Errorf("it was written: %q", got)
	}
}
