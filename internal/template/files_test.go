package template_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/template"
)

func TestPut_MakesChangesAndKeeps(t *testing.T) {
	w := newWorld(t)
	first := w.put("rust", map[string]string{"template.yaml": yaml("rust", "base: base\n"), "Dockerfile": onBase, "files/run": "#!/bin/sh\n", "README.md": "# Rust\n"})
	if first.Origin != template.Own || len(first.List) != 4 || first.ETag == "" {
		t.Fatalf("files are %+v", first)
	}
	if got, err := w.catalog.Template("rust"); err != nil || got.Folder != filepath.Join(w.folder, "rust") {
		t.Errorf("the catalog has %+v, %v", got, err)
	}
	keep := edit(map[string]string{"template.yaml": yaml("rust", "base: base\n"), "Dockerfile": onBase + "RUN true\n"})
	keep.Files["files/run"] = nil
	keep.Match = func(etag string) bool { return etag == first.ETag }
	second, err := w.Put(t.Context(), "rust", keep)
	if err != nil || len(second.List) != 3 || second.ETag == first.ETag {
		t.Fatalf("files are %+v, %v", second, err)
	}
	for _, f := range second.List {
		if f.Executable != (f.Path == "files/run") {
			t.Errorf("%s: executable is %t", f.Path, f.Executable)
		}
	}
	if _, err := w.Put(t.Context(), "rust", keep); !errors.Is(err, template.ErrChanged) {
		t.Errorf("a save over a change gives %v", err)
	}
	if again, err := w.Files("rust"); err != nil || again.ETag != second.ETag {
		t.Errorf("files are %+v, %v", again, err)
	}
}

func TestPut_RefusesWhatIsBrokenAndLeavesWhatWas(t *testing.T) {
	w := newWorld(t)
	good := map[string]string{"template.yaml": yaml("rust", "base: base\n"), "Dockerfile": onBase}
	w.put("rust", good)
	with := func(name, text string) map[string]string {
		files := map[string]string{name: text}
		for n, t := range good {
			if n != name {
				files[n] = t
			}
		}
		return files
	}
	for want, files := range map[string]map[string]string{
		"template.yaml:4: ":        with("template.yaml", yaml("rust", "bsae: base\n")),
		"Dockerfile:3: ":           with("Dockerfile", onBase+"RNU true\n"),
		"\nDockerfile: ":           {},
		"is not the path":          with("../x", "x"),
		"no folder .git":           with(".git/hooks/x", "x"),
		"is larger than 256 KiB":   with("x", strings.Repeat("x", template.MaxText+1)),
		"is not text":              with("x", "\x00"),
		"cannot be a file and a f": with("Dockerfile/x", "x"),
	} {
		_, err := w.Put(t.Context(), "rust", edit(files))
		if fault.FieldOf(err) != "files" || !strings.Contains(fault.Message(err), want) {
			t.Errorf("it gives %v, want %q", err, want)
		}
	}
	for _, name := range []string{"new", "Rust", "../rust", "a--b", "", strings.Repeat("x", 41)} {
		if _, err := w.Put(t.Context(), name, edit(good)); fault.FieldOf(err) != "name" {
			t.Errorf("the name %q gives %v", name, err)
		}
	}
	if w.text("rust", "Dockerfile") != onBase {
		t.Error("a change that was refused is there")
	}
	if left := w.left(); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
}

func TestCheck_SaysEveryMistakeOfWhatIsTyped(t *testing.T) {
	w := newWorld(t)
	problems, err := w.Check("rust", edit(map[string]string{"template.yaml": "name: rust\ntitle: [\n", "Dockerfile": "FRM x\n"}))
	if err != nil || len(problems) != 2 || problems[1].File != "Dockerfile" || problems[1].Line != 1 {
		t.Errorf("problems are %v, %v", problems, err)
	}
	if left := w.left(); len(left) != 0 {
		t.Errorf("a check has left %v", left)
	}
}

func TestCopy_HasAllFilesAndItsOwnName(t *testing.T) {
	w := newWorld(t)
	f, err := w.Copy(t.Context(), "base", "mine")
	if err != nil || len(f.List) != 4 {
		t.Fatalf("files are %+v, %v", f, err)
	}
	if got := w.text("mine", "template.yaml"); got != yaml("mine", "") {
		t.Errorf("template.yaml is %q", got)
	}
	if got := w.text("mine", "logo.png"); got != "\x89PNG\x00" {
		t.Errorf("the picture is %q", got)
	}
	if info, err := os.Stat(filepath.Join(w.folder, "mine/files/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the script is %v, %v", info, err)
	}
	if _, err := w.Copy(t.Context(), "base", "mine"); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second one gives %v", err)
	}
	if _, err := w.Copy(t.Context(), "nope", "other"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a copy of nothing gives %v", err)
	}
	if f, err := w.Files("base"); err != nil || f.Origin != template.Shipped {
		t.Errorf("the original is %+v, %v", f, err)
	}
}

func TestSkeleton_CanBeUsed(t *testing.T) {
	w := newWorld(t)
	w.put("my-tools", template.Skeleton("my-tools"))
	if got, err := w.catalog.Template("my-tools"); err != nil || got.Title != "My tools" {
		t.Errorf("template is %+v, %v", got, err)
	}
}

func TestDelete_NotWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	w.put("low", map[string]string{"template.yaml": yaml("low", ""), "Dockerfile": "FROM scratch\n"})
	w.put("high", map[string]string{"template.yaml": yaml("high", "base: low\n"), "Dockerfile": onBase})
	if err := w.Delete(t.Context(), "low"); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "template high") {
		t.Errorf("a base: %v", err)
	}
	w.users = []string{"a", "b", "c", "d", "e", "f", "g"}
	if err := w.Delete(t.Context(), "high"); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "7 sandboxes: a, b, c, d, e and 2 more") {
		t.Errorf("one with sandboxes: %v", err)
	}
	if _, err := w.Copy(t.Context(), "low", "base"); err != nil { // takes the place of the shipped one
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), "base"); err != nil { // which takes over
		t.Errorf("one with another beneath: %v", err)
	}
	w.users = nil
	for _, name := range []string{"high", "low"} {
		if err := w.Delete(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"base", "low"} {
		if err := w.Delete(t.Context(), name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if left := w.left(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// A crash leaves versions without a link, and links that were not moved into place.
func TestOpen_RemovesWhatACrashHasLeft(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"template.yaml": yaml("rust", ""), "Dockerfile": "FROM scratch\n"}
	for range 6 {
		files["Dockerfile"] += "RUN true\n"
		w.put("rust", files)
	}
	if left := w.left(); len(left) != 1+1+3 {
		t.Errorf("left are %v", left)
	}
	half := filepath.Join(w.folder, ".versions/rust-77")
	if err := errors.Join(os.Mkdir(half, 0o755), os.WriteFile(filepath.Join(half, "Docker"), nil, 0o600), os.Symlink(".versions/rust-77", filepath.Join(w.folder, ".next-rust-77"))); err != nil {
		t.Fatal(err)
	}
	w.open()
	if left := w.left(); len(left) != 2 || w.text("rust", "Dockerfile") != files["Dockerfile"] {
		t.Errorf("left are %v", left)
	}
}

// A copy of a server has the files of the present versions, for their owner alone.
func TestTake_MakesTemplatesOfWhatACopyHas(t *testing.T) {
	w := newWorld(t)
	was := w.put("rust", map[string]string{"template.yaml": yaml("rust", ""), "Dockerfile": "FROM scratch\n", "files/run": "#!/bin/sh\n"})
	versions, err := template.Versions(w.folder)
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	w.folder = filepath.Join(t.TempDir(), "other")
	if err := errors.Join(template.Take(w.folder), os.CopyFS(filepath.Join(w.folder, "rust"), os.DirFS(versions["rust"]))); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{"": 0o700, "Dockerfile": 0o600, "files/run": 0o700} {
		if err := os.Chmod(filepath.Join(w.folder, "rust", path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing to do
		if err := template.Take(w.folder); err != nil {
			t.Fatal(err)
		}
	}
	w.open()
	now, err := w.Files("rust")
	if err != nil || now.ETag != was.ETag || now.Origin != template.Own || len(w.left()) != 2 {
		t.Errorf("%+v, %v; left are %v", now, err, w.left())
	}
	for path, mode := range map[string]os.FileMode{"": 0o755, "Dockerfile": 0o644, "files/run": 0o755} {
		if st, err := os.Stat(filepath.Join(w.folder, "rust", path)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", path, st, err)
		}
	}
	if none, err := template.Versions(filepath.Join(w.folder, "none")); err != nil || len(none) != 0 {
		t.Errorf("of no folder: %v, %v", none, err)
	}
}
