package web

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/acp/install"
	"sandboxd/internal/exec"
)

// keepAgents installs agents with a program that does nothing.
func keepAgents(t *testing.T, log *slog.Logger, commands exec.Starter) *install.Service {
	t.Helper()
	c := install.NewCatalog(filepath.Join(t.TempDir(), "agents.json"), log)
	s := install.New(install.Config{Catalog: c, Exec: exec.New(exec.Config{Starter: commands}), Log: log})
	accesstest.Run(t, s.Run)
	return s
}

const labAgents = "/api/v1/sandboxes/lab/agents"

func TestAgents_AreListedInstalledAndRemoved(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.files.files[install.Root+"/qwen/"] = ""
	w.files.files[install.Root+"/qwen/version"] = "0.24.3\n"
	golden(t, "agents", w.call("ada", "GET", labAgents, "").is(http.StatusOK).Body.Bytes())
	started := w.guests.onStart()
	w.call("ada", "POST", labAgents+"/gemini/install", "").is(http.StatusAccepted)
	<-started
	if got := w.guests.lastAsked().Command; !slices.Contains(got, "@google/gemini-cli") || !slices.Contains(got, install.Root) {
		t.Errorf("it ran %q", got[3:])
	}
	w.call("ada", "DELETE", labAgents+"/gemini", "").is(http.StatusNoContent)
	w.call("ada", "POST", labAgents+"/none/install", "").is(http.StatusNotFound)
	w.call("ada", "DELETE", labAgents+"/..%2Fx", "").is(http.StatusNotFound)
}

func TestAgents_OfAnothersSandboxAreNotThere(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, r := range []string{"GET " + labAgents, "POST " + labAgents + "/gemini/install", "DELETE " + labAgents + "/gemini"} {
		method, path, _ := strings.Cut(r, " ")
		w.call("bob", method, path, "").is(http.StatusNotFound)
	}
}
