//go:build e2e || bench

package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newPoolServer is newServer with a storage pool.
func newPoolServer(t testing.TB, size string, extra ...string) *server {
	t.Helper()
	s := prepare(t, "", extra...)
	s.cli("pool", "create", size)
	s.begin()
	return s
}

// pooled lists the folders in the storage pool, but for those of volumes, of which /shared is always there.
func (s *server) pooled() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.data, "pool", "volumes", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(path string) bool { return strings.HasSuffix(path, "-volume") })
}

// homeOf gives the folder that is a sandbox's home, on this host.
func (s *server) homeOf(name string) string {
	s.t.Helper()
	id := engine(s.t, "ps", "-aq", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "label=sandboxd.name="+name)
	return strings.TrimSpace(engine(s.t, "inspect", "-f", `{{range .Mounts}}{{if eq .Destination "/home/agent"}}{{.Source}}{{end}}{{end}}`, strings.TrimSpace(id)))
}

// asRoot runs a shell command as root in a sandbox.
func (s *server) asRoot(name, command string) {
	s.t.Helper()
	id := engine(s.t, "ps", "-q", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "label=sandboxd.name="+name)
	engine(s.t, "exec", "-u", "0", strings.TrimSpace(id), "sh", "-c", command)
}

type backupBody struct {
	ID, State, Problem string
	Size, Files        int64
}

type snapshotBody struct {
	ID, Name, Parent, Kind, State, Problem string
	Files, Bytes                           int64
	Consistent                             bool
}

// snapshots lists those of a sandbox, the newest first.
func (s *server) snapshots(name string) []snapshotBody {
	s.t.Helper()
	var list struct{ Snapshots []snapshotBody }
	if status := s.call("GET", "/sandboxes/"+name+"/snapshots", nil, &list); status != http.StatusOK {
		s.t.Fatalf("snapshots of %s: %d", name, status)
	}
	return list.Snapshots
}

// snapshot takes one.
func (s *server) snapshot(name, called string) snapshotBody {
	s.t.Helper()
	var b snapshotBody
	if status := s.call("POST", "/sandboxes/"+name+"/snapshots?wait=ready", map[string]any{"name": called}, &b); status != http.StatusCreated || b.State != "ready" {
		s.t.Fatalf("snapshot of %s: %d %+v", name, status, b)
	}
	return b
}

// reverts makes a sandbox as a snapshot of it.
func (s *server) reverts(name, id string) {
	s.t.Helper()
	if status, body := s.raw("POST", "/sandboxes/"+name+"/snapshots/"+id+"/restore", nil); status != http.StatusOK {
		s.t.Fatalf("restore of %s: %d %s", name, status, body)
	}
}

// clones makes clones, and gives their names.
func (s *server) clones(name string, ask map[string]any) (names []string) {
	s.t.Helper()
	var made struct {
		Sandboxes []sandboxBody
		Failed    []string
	}
	if status := s.call("POST", "/sandboxes/"+name+"/clone", ask, &made); status != http.StatusCreated || len(made.Failed) > 0 {
		s.t.Fatalf("clone of %s: %d %+v", name, status, made)
	}
	for _, b := range made.Sandboxes {
		names = append(names, b.Name)
	}
	return names
}
