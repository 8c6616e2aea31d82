package git

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// repository is one of the tests', with a tree that is changed by git.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, filepath.Join(t.TempDir(), "t.git")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("config", "user.name", "Ann")
	r.git("config", "user.email", "ann@example.com")
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit adds files and gives the commit's id.
func (r *repository) commit(files map[string]string) string {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", "A change")
	return r.git("rev-parse", "HEAD")
}

// programOf gives one of git's programs: git itself would begin it as another process, which does not end with it.
func programOf(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), name)
}

// serve serves the folder above the repository by https, as git's own program for that does, and gives the repository's address.
func (r *repository) serve(c *Client, before func(w http.ResponseWriter, q *http.Request) bool) string {
	r.t.Helper()
	h := &cgi.Handler{
		Path: programOf(r.t, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	return tlsServer(r.t, c, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if before == nil || before(w, q) {
			h.ServeHTTP(w, q)
		}
	})) + "/t.git"
}

// tlsServer starts a server whose certificate c trusts.
func tlsServer(t *testing.T, c *Client, h http.Handler) string {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	c.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(c.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL
}

// fetched fetches what must work.
func fetched(t *testing.T, c *Client, s Source) (at Revision, work string) {
	t.Helper()
	work = t.TempDir()
	at, err := c.Fetch(t.Context(), s, work)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return at, work
}

func mustRead(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is %q, %v", path, got, err)
	}
}

// nothingRuns checks that no process works in a folder.
func nothingRuns(t *testing.T, work string) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if at, err := os.Readlink(filepath.Join("/proc", p.Name(), "cwd")); err == nil && strings.HasPrefix(at, work) {
			line, _ := os.ReadFile(filepath.Join("/proc", p.Name(), "cmdline"))
			t.Errorf("process %s is left: %q", p.Name(), line)
		}
	}
}

func TestFetch_GetsTheFilesOfBranchesAndTags(t *testing.T) {
	r, c := newRepository(t), &Client{}
	old := r.commit(map[string]string{"rust/Dockerfile": "FROM one\n", "rust/files/run": "#!/bin/sh\n", "other/x": "x"})
	r.git("tag", "-m", "One", "v1")
	r.git("switch", "--quiet", "-c", "next/two")
	next := r.commit(map[string]string{"rust/Dockerfile": "FROM two\n"})
	r.git("switch", "--quiet", "main")
	url := r.serve(c, nil)
	for ref, want := range map[string]struct{ commit, text string }{"": {old, "FROM one\n"}, "v1": {old, "FROM one\n"}, "next/two": {next, "FROM two\n"}} {
		at, work := fetched(t, c, Source{URL: url, Ref: ref, Path: "rust"})
		if at.Commit != want.commit || time.Since(at.Date).Abs() > time.Hour {
			t.Errorf("%q is at %+v, want %s", ref, at, want.commit)
		}
		mustRead(t, filepath.Join(work, FilesFolder, "Dockerfile"), want.text)
		if info, err := os.Stat(filepath.Join(work, FilesFolder, "files/run")); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the script is %v, %v", info, err)
		}
		if _, err := os.Stat(filepath.Join(work, FilesFolder, "x")); err == nil {
			t.Error("the other folder's file is there")
		}
	}
	_, work := fetched(t, c, Source{URL: url})
	mustRead(t, filepath.Join(work, FilesFolder, "other/x"), "x")
}

func TestFetch_SaysWhatIsNotThere(t *testing.T) {
	r, c := newRepository(t), &Client{}
	r.commit(map[string]string{"rust/Dockerfile": "FROM one\n"})
	url := r.serve(c, nil)
	for field, s := range map[string]Source{
		"ref": {URL: url, Ref: "nope"}, "path": {URL: url, Path: "nope"}, "url": {URL: strings.Replace(url, "t.git", "nope.git", 1)},
	} {
		if _, err := c.Fetch(t.Context(), s, t.TempDir()); fault.FieldOf(err) != field {
			t.Errorf("%+v: %v, want something about %s", s, err, field)
		}
	}
	if _, err := c.Fetch(t.Context(), Source{URL: url, Path: "rust/Dockerfile"}, t.TempDir()); fault.FieldOf(err) != "path" {
		t.Errorf("a file as folder: %v", err)
	}
	if _, err := c.Fetch(t.Context(), Source{URL: "https://127.0.0.1:1/t"}, t.TempDir()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no server: %v", err)
	}
}

func TestFetch_ATokenGoesToItsServerAlone(t *testing.T) {
	const token = "glpat-s3cret"
	r, c := newRepository(t), &Client{}
	r.commit(map[string]string{"a": "b"})
	url := r.serve(c, func(w http.ResponseWriter, q *http.Request) bool {
		if user, got, _ := q.BasicAuth(); user == "bot" && got == token {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	})
	url = strings.Replace(url, "https://", "https://bot@", 1)
	fetched(t, c, Source{URL: url, Token: token})
	for _, wrong := range []string{"", "glpat-other"} {
		_, err := c.Fetch(t.Context(), Source{URL: url, Token: wrong}, t.TempDir())
		if !fault.Is(err, fault.Forbidden) || wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("with the token %q: %v", wrong, err)
		}
	}
	told := false
	elsewhere := &Client{}
	other := tlsServer(t, elsewhere, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { told = told || q.Header.Get("Authorization") != "" }))
	leads := &Client{}
	lead := tlsServer(t, leads, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other+q.RequestURI, http.StatusFound)
	}))
	if _, err := leads.Fetch(t.Context(), Source{URL: lead + "/t.git", Token: token}, t.TempDir()); err == nil || told {
		t.Errorf("a redirect with a token gives %v, and it was told: %t", err, told)
	}
}

func TestFetch_FollowsNoRedirectToAnotherProtocol(t *testing.T) {
	r := newRepository(t)
	r.commit(map[string]string{"a": "b"})
	for _, to := range []string{"file://" + r.dir, "http://127.0.0.1:1/t.git"} {
		c := &Client{}
		url := tlsServer(t, c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}))
		if _, err := c.Fetch(t.Context(), Source{URL: url + "/t.git"}, t.TempDir()); err == nil {
			t.Errorf("a redirect to %s was followed", to)
		}
	}
}

// git asks, and nobody answers: neither over https nor in git's own protocol.
func TestFetch_AServerThatHangsIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections wait in its queue for ever
	c := &Client{Limit: 400 * time.Millisecond}
	web := tlsServer(t, c, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }))
	for _, url := range []string{web + "/t.git", "git://" + l.Addr().String() + "/t.git"} {
		work, begun := t.TempDir(), time.Now()
		_, err := c.Fetch(t.Context(), Source{URL: url}, work)
		if !fault.Is(err, fault.Timeout) || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %v after %s", url, err, time.Since(begun))
		}
		nothingRuns(t, work)
	}
}

func TestFetch_EndsWithItsCaller(t *testing.T) {
	r, c := newRepository(t), &Client{}
	r.commit(map[string]string{"a": "b"})
	ctx, cancel := context.WithCancel(t.Context())
	url := r.serve(c, func(_ http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, q.Body) // else the server does not see that git leaves
			cancel()                           // in the middle: git has the list of refs
			<-q.Context().Done()
			return false
		}
		return true
	})
	work := t.TempDir()
	if _, err := c.Fetch(ctx, Source{URL: url}, work); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	nothingRuns(t, work)
}

func TestFetch_WhatIsTooLargeIsEnded(t *testing.T) {
	noise := make([]byte, 6<<20)
	rand.Read(noise)
	for name, text := range map[string]string{"a large repository": string(noise), "small when packed": strings.Repeat("\x00", 6<<20)} {
		t.Run(name, func(t *testing.T) {
			r, c := newRepository(t), &Client{MaxBytes: 2 << 20}
			r.commit(map[string]string{"big": text})
			work := t.TempDir()
			if _, err := c.Fetch(t.Context(), Source{URL: r.serve(c, nil)}, work); !fault.Is(err, fault.TooLarge) {
				t.Errorf("it gives %v", err)
			}
			nothingRuns(t, work)
		})
	}
}

func TestFetch_RefusesLinks(t *testing.T) {
	r, c := newRepository(t), &Client{}
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "out")); err != nil {
		t.Fatal(err)
	}
	r.commit(map[string]string{"rust/Dockerfile": "FROM one\n"})
	url := r.serve(c, nil)
	work := t.TempDir()
	if _, err := c.Fetch(t.Context(), Source{URL: url}, work); fault.FieldOf(err) != "path" || !strings.Contains(fault.Message(err), "out") {
		t.Errorf("it gives %v", err)
	}
	fetched(t, c, Source{URL: url, Path: "rust"}) // it is not in there
}

func TestFetch_SubmodulesStayEmpty(t *testing.T) {
	inner := newRepository(t)
	inner.commit(map[string]string{"secret": "x"})
	r, c := newRepository(t), &Client{}
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "file://"+inner.dir, "sub")
	r.commit(map[string]string{"Dockerfile": "FROM one\n"})
	_, work := fetched(t, c, Source{URL: r.serve(c, nil)})
	if left, err := os.ReadDir(filepath.Join(work, FilesFolder, "sub")); err != nil || len(left) > 0 {
		t.Errorf("the submodule has %v, %v", left, err)
	}
}

// Hooks and settings that the machine's user has, and filters that the repository asks for, do nothing.
func TestFetch_RunsNoHookAndNoFilter(t *testing.T) {
	home, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	script := "#!/bin/sh\ntouch " + mark + "\ncat\n"
	hooks := filepath.Join(home, "hooks")
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"post-checkout", "reference-transaction", "post-merge", "filter"} {
		if err := os.WriteFile(filepath.Join(hooks, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	settings := "[core]\n\thooksPath = " + hooks + "\n[init]\n\ttemplateDir = " + home + "\n[filter \"x\"]\n\tsmudge = " + filepath.Join(hooks, "filter") +
		"\n[credential]\n\thelper = !touch " + mark + "\n[tar \"tar\"]\n\tcommand = touch " + mark + "\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r, c := newRepository(t), &Client{}
	r.commit(map[string]string{"a": "b", ".gitattributes": "* filter=x\n"})
	url := r.serve(c, nil)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("GIT_TEMPLATE_DIR", home)
	t.Setenv("GIT_EXTERNAL_DIFF", filepath.Join(hooks, "filter"))
	_, work := fetched(t, c, Source{URL: url})
	mustRead(t, filepath.Join(work, FilesFolder, "a"), "b")
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program of the machine's user was run")
	}
}

// git's own server, in its own protocol.
func TestFetch_FromGitDaemon(t *testing.T) {
	r := newRepository(t)
	commit := r.commit(map[string]string{"a": "b"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.CommandContext(t.Context(), programOf(t, "git-daemon"), "--reuseaddr", "--export-all", "--listen=127.0.0.1", "--port="+port, "--base-path="+filepath.Dir(r.dir))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it is of no use any more, however it ends
	s := Source{URL: "git://127.0.0.1:" + port + "/t.git"}
	for range 100 {
		at, err := (&Client{}).Fetch(t.Context(), s, t.TempDir())
		if err == nil {
			if at.Commit != commit {
				t.Errorf("fetched %+v, want %s", at, commit)
			}
			return
		}
		<-time.After(50 * time.Millisecond) // it has not begun to listen
	}
	t.Error("git daemon does not answer")
}
