package catalog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"sandboxd/internal/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each archive in testdata/broken is one broken template and, in the file "problems", every problem that it must show.
func TestBroken_ShowsFileLineAndCause(t *testing.T) {
	cases, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(cases) < 20 {
		t.Fatalf("found %d cases, error %v", len(cases), err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, want := problemsOf(t, archive), ""
			for i, f := range archive.Files {
				if f.Name == "problems" {
					want = string(f.Data)
					archive.Files[i].Data = []byte(got)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("problems are\n%swant\n%s", got, want)
			}
		})
	}
}

// problemsOf puts the files of an archive into the template folder "demo" and gives its problems, a line each.
func problemsOf(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		if f.Name != "problems" {
			write(t, filepath.Join(dir, "demo", f.Name), string(f.Data))
		}
	}
	var b strings.Builder
	for _, e := range open(t, dir).List() {
		for _, p := range e.Problems {
			fmt.Fprintln(&b, strings.ReplaceAll(p.Error(), dir+"/", ""))
		}
	}
	return b.String()
}

func TestScan_RefusesLinksOutAndSpecialFiles(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"absolute link":    func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "l")) },
		"link to a parent": func(dir string) error { return os.Symlink("../..", filepath.Join(dir, "l")) },
		"link over a link": func(dir string) error {
			if err := os.Symlink(".", filepath.Join(dir, "here")); err != nil {
				return err
			}
			return os.Symlink("here/..", filepath.Join(dir, "l"))
		},
		"pipe":       func(dir string) error { return mkfifo(filepath.Join(dir, "l")) },
		"own folder": func(dir string) error { return os.Mkdir(filepath.Join(dir, ".sandboxd"), 0o755) },
		"template.yaml as a link": func(dir string) error {
			if err := os.Remove(filepath.Join(dir, "template.yaml")); err != nil {
				return err
			}
			return os.Symlink("/proc/self/environ", filepath.Join(dir, "template.yaml"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, minimal("demo", "", "FROM scratch"))
			if err := make(filepath.Join(dir, "demo")); err != nil {
				t.Fatal(err)
			}
			if e := open(t, dir).List()[0]; e.Problem == nil {
				t.Error("it was taken")
			} else if strings.Contains(e.Problem.Message, "PATH=") {
				t.Errorf("the problem leaks a file: %v", e.Problem)
			}
		})
	}
	t.Run("link inside", func(t *testing.T) {
		dir := tree(t, minimal("demo", "", "FROM scratch"))
		if err := os.Symlink("Dockerfile", filepath.Join(dir, "demo/l")); err != nil {
			t.Fatal(err)
		}
		if e := open(t, dir).List()[0]; e.Problem != nil {
			t.Errorf("it was refused: %v", e.Problem)
		}
	})
}

// Too many open files, or a disk that is away, must not look as if there were no templates.
func TestTemplate_FolderThatCannotBeReadIsUnavailable(t *testing.T) {
	dir := tree(t, minimal("one", "", "FROM scratch"))
	c := open(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a file, which cannot be listed, not even by root")
	_, err := c.Template("one")
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "not a directory") {
		t.Errorf("got %v, want Unavailable with the cause", err)
	}
	if all := c.List(); len(all) != 1 || all[0].Problem == nil {
		t.Errorf("the folder is not listed as broken: %+v", all)
	}
}
