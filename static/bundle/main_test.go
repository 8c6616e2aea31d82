package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const report = `{"outputs": {
 "dist/app-1.js": {"entryPoint": "js/app.js", "inputs": {"js/app.js": {}, "node_modules/htmx.org/dist/htmx.esm.js": {}}},
 "dist/app-2.css": {"entryPoint": "css/app.css", "inputs": {"css/app.css": {}}},
 "dist/workspace-3.js": {"entryPoint": "js/workspace.js", "cssBundle": "dist/workspace-4.css", "inputs": {"node_modules/@xterm/xterm/lib/xterm.mjs": {}}},
 "dist/chunk-5.js": {"inputs": {"node_modules/@xterm/addon-fit/lib/x.mjs": {}, "node_modules/htmx.org/a.js": {}}}
}}`

func read(t *testing.T) metafile {
	t.Helper()
	var m metafile
	if err := json.Unmarshal([]byte(report), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManifest_NamesEntriesAndTheStylesOfModules(t *testing.T) {
	got := read(t).manifest()
	for entry, file := range map[string]string{
		"app.js": "app-1.js", "app.css": "app-2.css", "workspace.js": "workspace-3.js", "workspace.css": "workspace-4.css",
	} {
		if got[entry] != file {
			t.Errorf("%s is %q, want %q", entry, got[entry], file)
		}
	}
}

func TestThirdParty_CarriesEveryLicenceInFull(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"htmx.org", "@xterm/xterm", "@xterm/addon-fit"} {
		root := filepath.Join(folder, "node_modules", name)
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, "package.json"), `{"version": "1.2.3", "license": "MIT"}`)
		put(t, filepath.Join(root, "LICENSE"), "The licence of "+name)
	}
	text, err := thirdParty(folder, read(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"htmx.org 1.2.3 (MIT)", "The licence of @xterm/xterm", "The licence of @xterm/addon-fit"} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	if err := os.Remove(filepath.Join(folder, "node_modules/htmx.org/LICENSE")); err != nil {
		t.Fatal(err)
	}
	if _, err := thirdParty(folder, read(t)); err == nil {
		t.Error("a package without a licence is handed on")
	}
}

func TestWrite_LeavesNothingOfTheRunBefore(t *testing.T) {
	dist := t.TempDir()
	put(t, filepath.Join(dist, ".keep"), "")
	put(t, filepath.Join(dist, "app-old.js"), "old")
	body := []byte(strings.Repeat("text ", 100))
	if err := write(dist, map[string][]byte{"app-new.js": body, "tiny.svg": []byte("x")}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var names []string
	found, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); got != ".keep app-new.js app-new.js.br app-new.js.gz manifest.json tiny.svg" {
		t.Errorf("dist has %s", got)
	}
}

func TestRun_SaysWhatToDoWithoutPackages(t *testing.T) {
	if err := run(t.TempDir()); err == nil || !strings.Contains(err.Error(), "npm ci --ignore-scripts") {
		t.Errorf("says %v", err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
