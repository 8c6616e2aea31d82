package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// nest commits folders in folders, so many deep: each has so many names, all of the same thing.
func (r *repository) nest(deep, names int) {
	r.t.Helper()
	commit := r.commit(map[string]string{"x": "x"})
	what := "100644 blob " + r.git("rev-parse", commit+":x")
	for range deep {
		var list strings.Builder
		for n := range names {
			list.WriteString(what + "\tf" + strconv.Itoa(n) + "\n")
		}
		cmd := exec.CommandContext(r.t.Context(), "git", "mktree")
		cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(list.String())
		out, err := cmd.Output()
		if err != nil {
			r.t.Fatal(err)
		}
		what = "040000 tree " + strings.TrimSpace(string(out))
	}
	r.git("update-ref", "refs/heads/main", r.git("commit-tree", "-m", "Many", strings.TrimPrefix(what, "040000 tree ")))
}

// A small repository may have more files than any memory holds: they are counted before the archive is made.
func TestFetch_ManyNamesOfOneFileAreRefusedAtOnce(t *testing.T) {
	for _, deep := range []int{3, 9} {
		r, c := newRepository(t), &Client{}
		r.nest(deep, 14)
		begun, work := time.Now(), t.TempDir()
		if _, err := c.Fetch(t.Context(), Source{URL: r.serve(c, nil)}, work); !fault.Is(err, fault.TooLarge) || time.Since(begun) > 20*time.Second {
			t.Errorf("%d deep: %v after %s", deep, err, time.Since(begun))
		}
		nothingRuns(t, work)
	}
}

func TestGit_AndItsChildrenHaveBoundedMemory(t *testing.T) {
	w := &fetching{work: t.TempDir(), most: DefaultMaxBytes}
	if err := w.prepare(""); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if said, err := w.git(t.Context(), &out, "-c", "alias.bound=!ulimit -v", "bound"); err != nil || strings.TrimSpace(out.String()) != strconv.Itoa(maxMemory) {
		t.Errorf("a child's bound is %q, %v: %s", out.String(), err, said)
	}
}

// Attributes of a repository neither leave files out nor write into them.
func TestFetch_GetsFilesAsTheyWereWritten(t *testing.T) {
	r, c := newRepository(t), &Client{}
	const id, kept = "$Format:%H$ $Id$\n", "as it is"
	r.commit(map[string]string{".gitattributes": "id export-subst ident\nleft export-ignore\nfolder export-ignore\ncr text eol=crlf\n"})
	r.commit(map[string]string{"id": id, "left": kept, "folder/x": kept, "cr": "a\nb\n"})
	_, work := fetched(t, c, Source{URL: r.serve(c, nil)})
	for name, want := range map[string]string{"id": id, "left": kept, "folder/x": kept, "cr": "a\nb\n"} {
		mustRead(t, filepath.Join(work, FilesFolder, name), want)
	}
}

func TestFetch_RefusesNamesThatAreNotUTF8(t *testing.T) {
	r, c := newRepository(t), &Client{}
	if err := os.WriteFile(filepath.Join(r.dir, "caf\xe9"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.commit(map[string]string{"Dockerfile": "FROM one\n"})
	if _, err := c.Fetch(t.Context(), Source{URL: r.serve(c, nil)}, t.TempDir()); fault.FieldOf(err) != "path" || !strings.Contains(fault.Message(err), "UTF-8") {
		t.Errorf("it gives %v", err)
	}
}

func TestFirstWords_HaveTheReason(t *testing.T) {
	for said, want := range map[string]string{
		"warning: x\nfatal: bad object\nmore\n":                                         "bad object",
		"fatal: unable to connect to h:\nh[0: 127.0.0.1]: errno=Connection refused\n\n": "unable to connect to h: h[0: 127.0.0.1]: errno=Connection refused",
		"fatal: odd:\n": "odd:", "one\ntwo\n": "two", "": "git says nothing of why.",
	} {
		if got := firstWords(said); got != want {
			t.Errorf("%q gives %q, want %q", said, got, want)
		}
	}
}

func TestAddress_HasItsSchemeInLowerCase(t *testing.T) {
	for entered, want := range map[string]string{" HTTPS://Git.Example/T.git ": "https://Git.Example/T.git", "git@H:t.git": "git@H:t.git"} {
		if got := Address(entered); got != want {
			t.Errorf("%q gives %q", entered, got)
		}
	}
}
