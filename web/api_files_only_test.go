package web

import (
	"context"
	"net/http"
	"testing"

	"sandboxd/internal/exec"
	"sandboxd/internal/files"
	"sandboxd/internal/sandbox"
)

// replaced finds another sandbox under every name than the one that was judged.
type replaced struct {
	*fakeGuest
	*fakeCommands
}

func (replaced) admits(ctx context.Context, name string) error {
	return sandbox.Admits(ctx, sandbox.Sandbox{ID: "somebody else's", Name: name})
}

func (g replaced) Open(ctx context.Context, name, doing string) (files.Opened, error) {
	if err := g.admits(ctx, name); err != nil {
		return files.Opened{}, err
	}
	return g.fakeGuest.Open(ctx, name, doing)
}

func (g replaced) Look(ctx context.Context, name string) (files.Guest, error) {
	if err := g.admits(ctx, name); err != nil {
		return nil, err
	}
	return g.fakeGuest.Look(ctx, name)
}

func (g replaced) Start(ctx context.Context, name string, s exec.Start) (exec.Process, error) {
	if err := g.admits(ctx, name); err != nil {
		return nil, err
	}
	return g.fakeCommands.Start(ctx, name, s)
}

func TestFilesAndCommands_WhoMayUseOneSandboxUsesNoOtherOfItsName(t *testing.T) {
	w := newFilesWorld(t)
	way := replaced{w.files, w.guests}
	w.server.cfg.Files, w.server.cfg.Commands = files.New(way), exec.New(way)
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
