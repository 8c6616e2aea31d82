package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const report = `{"outputs": {
 "dist/app-1.js": {"entryPoint": "js/app.js", "inputs": {"js/app.js": {}, "node_modules/htmx.org/dist/htmx.esm.js": {}},
  "imports": [{"path": "dist/chunk-5.js", "kind": "import-statement"}, {"path": "./shared-7.js", "kind": "import-statement", "external": true}, {"path": "dist/chunk-8.js", "kind": "dynamic-import"}]},
 "dist/app-2.css": {"entryPoint": "css/app.css", "inputs": {"css/app.css": {}}},
 "dist/workspace-3.js": {"entryPoint": "js/workspace.js", "cssBundle": "dist/workspace-4.css", "inputs": {"node_modules/@xterm/xterm/lib/xterm.mjs": {}}},
 "dist/chunk-5.js": {"imports": [{"path": "./shared-7.js", "kind": "import-statement", "external": true}], "inputs": {"node_modules/@xterm/addon-fit/lib/x.mjs": {}, "node_modules/htmx.org/a.js": {}}}
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
	contents := read(t).contents()
	got := contents.Files
	for entry, file := range map[string]string{
		"app.js": "app-1.js", "app.css": "app-2.css", "workspace.js": "workspace-3.js", "workspace.css": "workspace-4.css",
	} {
		if got[entry] != file {
			t.Errorf("%s is %q, want %q", entry, got[entry], file)
		}
	}
	if needs := strings.Join(contents.Needs["app.js"], " "); needs != "chunk-5.js shared-7.js" || contents.Needs["workspace.js"] != nil {
		t.Errorf("needed are %v", contents.Needs)
	}
}

// TestBuild_TakesSharedModulesFromOneFile builds a page whose two scripts use a module, and one loads more later.
func TestBuild_TakesSharedModulesFromOneFile(t *testing.T) {
	folder := t.TempDir()
	for path, text := range map[string]string{
		"js/shared.js": `export * from "./dom.js";`, "js/dom.js": `export const name = "only once";`,
		"js/app.js": `import { name } from "./dom.js"; console.log(name); import("./later.js");`, "js/later.js": `import { name } from "./dom.js"; alert(name);`,
		"js/workspace.js": `import { name } from "../js/dom.js"; document.title = name;`,
		"css/app.css":     "", "plots/plots.js": "", "chat/reader.js": "", "terminal/page.js": "", "worker/worker.js": `import { name } from "../js/dom.js"; self.name = name;`, "icon.svg": "<svg/>", "touch.png": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(folder, path), text)
	}
	built, meta, err := build(folder)
	if err != nil {
		t.Fatal(err)
	}
	held, scripts := 0, 0
	for _, f := range built {
		if strings.HasPrefix(filepath.Base(f.Path), "worker-") {
			if strings.Contains(string(f.Contents), "import") {
				t.Errorf("the service worker is not one file: %s", f.Contents)
			}
			continue
		}
		held += strings.Count(string(f.Contents), "only once")
		if filepath.Ext(f.Path) == ".js" {
			scripts++
		}
	}
	if held != 1 || scripts != 7 {
		t.Errorf("%d files hold it, of %d scripts", held, scripts)
	}
	contents := meta.contents()
	for _, entry := range []string{"app.js", "workspace.js"} {
		if needs := contents.Needs[entry]; len(needs) != 1 || needs[0] != filepath.Base(built[0].Path) {
			t.Errorf("%s needs %v", entry, needs)
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
