package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
)

const plainYAML = "name: %NAME%\ntitle: A title\ndescription: Some words.\n"

// tree writes files below a new folder and gives it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// minimal gives the files of a template that is right.
func minimal(name, more, dockerfile string) map[string]string {
	return map[string]string{
		name + "/template.yaml": strings.ReplaceAll(plainYAML, "%NAME%", name) + more,
		name + "/Dockerfile":    dockerfile,
	}
}

func join(all ...map[string]string) map[string]string {
	files := map[string]string{}
	for _, m := range all {
		for name, text := range m {
			files[name] = text
		}
	}
	return files
}

func open(t *testing.T, folders ...string) *Catalog {
	t.Helper()
	c, err := Open(folders...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const fullManifest = `name: full
title: Full
description: |
  Everything that can be said.
icon: rocket
profile: strict
size: {cpus: 1.5, memory: 512MiB, pids: 256, disk: 1.5GiB}
env:
  GREETING: "hello"
  PORT: 8080
ports:
  - port: 8080
    title: Web
services:
  - name: web
    command: [python3, -m, http.server]
    port: 8080
    cwd: /srv
    env: {A: b}
    autostart: true
    health:
      path: /healthz
      interval: 30s
  - name: side
    command: [side]
    port: 9090
    health: {}
ide: true
freeze_after: 10m
stop_after: never
pool: 3
`

func TestTemplate_ReadsEveryField(t *testing.T) {
	dir := tree(t, map[string]string{
		"full/template.yaml": fullManifest,
		"full/Dockerfile":    "FROM debian:trixie-slim\n",
		"full/README.md":     "# Full\n",
	})
	c := open(t, dir)
	got, err := c.Template("full")
	if err != nil {
		t.Fatal(err)
	}
	want := Template{
		Name: "full", Title: "Full", Description: "Everything that can be said.", Icon: "rocket", Profile: Strict,
		Size:  Size{CPUs: 1.5, Memory: 512 << 20, Pids: 256, Disk: 3 << 29},
		Env:   map[string]string{"GREETING": "hello", "PORT": "8080"},
		Ports: []Port{{8080, "Web"}, {9090, "side"}},
		Services: []Service{
			{Name: "web", Command: []string{"python3", "-m", "http.server"}, Port: 8080, Cwd: "/srv", Env: map[string]string{"A": "b"}, Autostart: true,
				Health: &Health{Path: "/healthz", Interval: 30 * time.Second}},
			{Name: "side", Command: []string{"side"}, Port: 9090, Health: &Health{}},
		},
		IDE:     true,
		Source:  Source{Folder: filepath.Join(dir, "full")},
		Standby: Standby{Rest: Rest{FreezeAfter: After(10 * time.Minute), StopAfter: Never}, Pool: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("template differs (-want +got):\n%s", diff)
	}
	if readme := c.List()[0].Readme; readme != "# Full\n" {
		t.Errorf("readme is %q", readme)
	}
}

func TestTemplate_HasDefaults(t *testing.T) {
	c := open(t, tree(t, minimal("small", "", "FROM scratch\nCOPY a /\n")))
	got, err := c.Template("small")
	if err != nil {
		t.Fatal(err)
	}
	if got.Size != DefaultSize || got.Profile != Dev || got.Icon != "box" || got.Standby != (Standby{}) {
		t.Errorf("defaults are %+v", got)
	}
}

func TestTemplate_UnknownNamesTheOthers(t *testing.T) {
	c := open(t, tree(t, join(minimal("one", "", "FROM scratch"), minimal("two", "", "FROM scratch"))))
	_, err := c.Template("three")
	if !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Message(err), "one, two") {
		t.Errorf("error is %v", err)
	}
}

func TestTemplate_ImageNeedsNoDockerfile(t *testing.T) {
	c := open(t, tree(t, map[string]string{
		"plain/template.yaml": strings.ReplaceAll(plainYAML, "%NAME%", "plain") + "image: debian:trixie-slim\n"}))
	got, err := c.Template("plain")
	if err != nil || got.Image != "debian:trixie-slim" {
		t.Errorf("template is %+v, error %v", got, err)
	}
}

func TestList_BaseComesFirst(t *testing.T) {
	c := open(t, tree(t, join(minimal("base", "", "FROM scratch"), minimal("agents", "", "FROM scratch"), minimal("zoo", "", "FROM scratch"))))
	var names []string
	for _, e := range c.List() {
		names = append(names, e.Name)
	}
	if want := []string{"base", "agents", "zoo"}; !slices.Equal(names, want) {
		t.Errorf("they are %v", names)
	}
}

func TestList_BrokenOneDoesNotHideOthers(t *testing.T) {
	dir := tree(t, join(
		minimal("good", "", "FROM scratch"),
		map[string]string{"bad/template.yaml": "name: [", "bad/Dockerfile": "FROM scratch"},
		map[string]string{"notes.txt": "no template", "empty/readme": "nor this", ".git/template.yaml": "nor this"},
	))
	entries := open(t, dir).List()
	if len(entries) != 2 || entries[0].Name != "bad" || entries[1].Name != "good" {
		t.Fatalf("entries are %+v", entries)
	}
	if p := entries[0].Problem; p == nil || p.Line != 1 || p.File != filepath.Join(dir, "bad/template.yaml") {
		t.Errorf("problem is %v", p)
	}
	if entries[1].Problem != nil {
		t.Errorf("the good one has the problem %v", entries[1].Problem)
	}
	if _, err := open(t, dir).Template("bad"); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "template.yaml:1:") {
		t.Errorf("error is %v", err)
	}
}

func TestOpen_RefusesWhatIsNoFolderOfTemplates(t *testing.T) {
	dir := tree(t, minimal("one", "", "FROM scratch"))
	for _, folder := range []string{filepath.Join(dir, "missing"), filepath.Join(dir, "one"), filepath.Join(dir, "one/Dockerfile")} {
		if _, err := Open(folder); !fault.Is(err, fault.Invalid) {
			t.Errorf("Open(%s) gives %v, want Invalid", folder, err)
		}
	}
}

func TestList_LaterFolderReplacesAndSaysSo(t *testing.T) {
	ours := tree(t, join(minimal("base", "", "FROM scratch"), minimal("top", "base: base\n", "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n")))
	theirs := tree(t, minimal("base", "icon: star\n", "FROM scratch"))
	c := open(t, ours, theirs)
	entry := c.List()[0]
	if entry.Template.Icon != "star" || entry.Replaces != filepath.Join(ours, "base") {
		t.Errorf("entry is %+v", entry)
	}
	found, err := c.find("top")
	if err != nil || found.parent.read.dir != filepath.Join(theirs, "base") {
		t.Errorf("top does not build on the replacement: %v", err)
	}
}

func TestList_SeesChangesOnDisk(t *testing.T) {
	dir := tree(t, minimal("one", "", "FROM scratch"))
	c := open(t, dir)
	if c.List()[0].Problem != nil {
		t.Fatal("the template is broken from the start")
	}
	// Same size, and the same tick of the file system's clock: the stamp proves nothing while it is young.
	path := filepath.Join(dir, "one/Dockerfile")
	tick := time.Now().Add(time.Second) // so that it is young however slow this machine is
	stamp(t, path, tick)
	c.List()
	write(t, path, "FRUM scratch")
	stamp(t, path, tick)
	if p := c.List()[0].Problem; p == nil || p.Line != 1 {
		t.Errorf("the change was not seen: %v", p)
	}
	for name, text := range minimal("two", "", "FROM scratch") {
		write(t, filepath.Join(dir, name), text)
	}
	if n := len(c.List()); n != 2 {
		t.Errorf("%d templates after one was added, want 2", n)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if n := len(c.List()); n != 0 || len(c.read) != 0 {
		t.Errorf("%d templates and %d readings after all were removed", n, len(c.read))
	}
}

func TestList_ReadsContentsOnlyWhenTheyChanged(t *testing.T) {
	dir := tree(t, minimal("one", "", "FROM scratch"))
	age(t, dir)
	c := open(t, dir)
	c.List()
	first := c.read[filepath.Join(dir, "one")]
	c.List()
	if first == nil || c.read[filepath.Join(dir, "one")] != first {
		t.Error("an unchanged template was read twice")
	}
}

func stamp(t *testing.T, path string, when time.Time) {
	t.Helper()
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

// age makes all files of dir old enough for their stamps to be believed.
func age(t *testing.T, dir string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestList_Bases(t *testing.T) {
	on := "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n"
	dir := tree(t, join(
		minimal("ring-a", "base: ring-b\n", on), minimal("ring-b", "base: ring-c\n", on), minimal("ring-c", "base: ring-b\n", on),
		minimal("self", "base: self\n", on),
		minimal("lost", "base: nowhere\n", on), minimal("on-lost", "base: lost\n", on),
		minimal("broken", "icon: '!'\n", "FROM scratch"), minimal("on-broken", "base: broken\n", on),
		map[string]string{"plain/template.yaml": strings.ReplaceAll(plainYAML, "%NAME%", "plain") + "image: debian\n"},
		minimal("on-plain", "base: plain\n", on),
		minimal("good", "", "FROM scratch"), minimal("on-good", "base: good\n", on), minimal("on-on-good", "base: on-good\n", on),
	))
	want := map[string]string{
		"ring-a": "in a circle: ring-a → ring-b → ring-c → ring-b", "ring-b": "in a circle: ring-b → ring-c → ring-b",
		"ring-c": "in a circle: ring-c → ring-b → ring-c", "self": "in a circle: self → self",
		"lost": `no template "nowhere"`, "on-lost": "template lost, which is broken", "broken": "icon",
		"on-broken": "template broken, which is broken", "on-plain": "plain, which has no Dockerfile",
	}
	for _, e := range open(t, dir).List() {
		switch text := want[e.Name]; {
		case text == "" && e.Problem != nil:
			t.Errorf("%s has the problem %v", e.Name, e.Problem)
		case text != "" && (e.Problem == nil || !strings.Contains(e.Problem.Message, text) || e.Problem.Line != 4):
			t.Errorf("%s has the problem %v, want line 4 with %q", e.Name, e.Problem, text)
		}
	}
}

func TestOpen_UserNamespacesAreNoneUnlessAsked(t *testing.T) {
	c := open(t, tree(t, join(minimal("plain", "", "FROM scratch"), minimal("asks", "user_namespaces: true\n", "FROM scratch"))))
	for name, want := range map[string]bool{"plain": false, "asks": true} {
		got, err := c.Template(name)
		if err != nil || got.Namespaces != want {
			t.Errorf("%s: got %t, error %v", name, got.Namespaces, err)
		}
	}
}
