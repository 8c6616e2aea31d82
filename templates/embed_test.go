package templates

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestUnpack_PutsEverythingThereAndRepairsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	unpacked(t, dir)
	script := filepath.Join(dir, "base/files/install-packages")
	before := stat(t, script)
	if before.Mode() != 0o755 {
		t.Errorf("mode of a script is %v, want 0755", before.Mode())
	}
	must(t, os.WriteFile(filepath.Join(dir, "base/Dockerfile"), []byte("FROM evil"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "gone/files"), 0o755))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "base/link")))
	must(t, os.Remove(filepath.Join(dir, "node-api/Dockerfile")))
	must(t, os.Mkdir(filepath.Join(dir, "node-api/Dockerfile"), 0o755))

	unpacked(t, dir)
	want := files(t, os.DirFS("sandbox"))
	got := files(t, os.DirFS(dir))
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs from the source", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is left over", name)
		}
	}
	if after := stat(t, script); !after.ModTime().Equal(before.ModTime()) {
		t.Error("a file that was right was written again")
	}
}

// A script that is not executable in the source would give another content hash than the unpacked one.
func TestSource_ExactlyTheScriptsAreExecutable(t *testing.T) {
	for _, folder := range []string{"sandbox", "ide"} {
		for name, text := range files(t, os.DirFS(folder)) {
			want := modeOf([]byte(text))&0o111 != 0
			if got := stat(t, filepath.Join(folder, name)).Mode()&0o111 != 0; got != want {
				t.Errorf("%s/%s: executable is %t, want %t", folder, name, got, want)
			}
		}
	}
}

// tmux wraps longer lines in a narrow pane, and what scrolls away of them is missing when the pane is wide again.
func TestSource_WelcomesFitNarrowTerminals(t *testing.T) {
	const most = 38
	for name, text := range files(t, os.DirFS("sandbox")) {
		for _, line := range strings.Split(text, "\n") {
			if filepath.Base(name) == "welcome" && len(line) > most {
				t.Errorf("%s: longer than %d characters: %s", name, most, line)
			}
		}
	}
}

// The two notebook templates share layers only while these are the same, byte for byte.
func TestSource_SharedFilesAreTheSame(t *testing.T) {
	all := files(t, os.DirFS("sandbox"))
	for _, name := range []string{"files/start-notebook", "files/jupyter_notebook_config.py"} {
		if all["python-ml/"+name] != all["data-analysis/"+name] {
			t.Errorf("%s differs between python-ml and data-analysis", name)
		}
	}
}

func TestUnpackIDE_PutsEverythingThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ide/code-server")
	must(t, UnpackIDE(dir))
	want, got := files(t, os.DirFS("ide")), files(t, os.DirFS(dir))
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs from the source", name)
		}
	}
	if len(got) != len(want) || got[".npmrc"] == "" {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

// What is fetched is what we have looked at: every package by its hash, and none from a place that is named here.
func TestIDE_ItsLockPinsEveryPackageAndNamesNoPlace(t *testing.T) {
	if n := lockedPackages(t, "ide/package-lock.json"); n < 100 {
		t.Errorf("%d packages", n)
	}
	all := files(t, os.DirFS("ide"))
	for _, name := range []string{"Dockerfile", ".npmrc", "package.json", "files/install-vscode", "files/assemble"} {
		if text := all[name]; text == "" || strings.Contains(text, "://") {
			t.Errorf("%s names a place", name)
		}
	}
}

// So is what drives the browser.
func TestBrowser_ItsLockPinsEveryPackageAndNamesNoPlace(t *testing.T) {
	if n := lockedPackages(t, "sandbox/browser/files/package-lock.json"); n < 3 {
		t.Errorf("%d packages", n)
	}
	if all := files(t, os.DirFS("sandbox/browser")); strings.Contains(all["Dockerfile"], "://") || !strings.Contains(all["Dockerfile"], "npm ci --ignore-scripts") {
		t.Error("the Dockerfile names a place, or does not keep to the lock")
	}
}

// lockedPackages counts the packages of a lock file, each of which must have a hash, and no address.
func lockedPackages(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	var lock struct {
		Packages map[string]struct {
			Version, Resolved, Integrity string
			InBundle                     bool
		}
	}
	must(t, json.Unmarshal(text, &lock))
	for name, p := range lock.Packages {
		if name != "" && (p.Version == "" || p.Integrity == "" && !p.InBundle || p.Resolved != "") {
			t.Errorf("%s is at version %q, %q, from %q", name, p.Version, p.Integrity, p.Resolved)
		}
	}
	return len(lock.Packages)
}

// The base image's npm is fetched by its hash, too.
func TestBase_ItPinsNpmAndNamesNoPlace(t *testing.T) {
	all := files(t, os.DirFS("sandbox/base"))
	if !regexp.MustCompile(`\bnpm@[0-9.]+\+sha512\.[0-9a-f]{128}\b`).MatchString(all["Dockerfile"]) {
		t.Error("the Dockerfile does not pin npm")
	}
	for name, text := range all {
		if strings.HasPrefix(name, "files/") || name == "Dockerfile" {
			if strings.Contains(text, "://") {
				t.Errorf("%s names a place", name)
			}
		}
	}
}

func unpacked(t *testing.T, dir string) {
	t.Helper()
	must(t, Unpack(dir))
}

func files(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		found[name] = string(text)
		return err
	}))
	return found
}

func stat(t *testing.T, name string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(name)
	must(t, err)
	return info
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
