//go:build e2e

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// bigSize is what is sent through and compared.
const bigSize = 100 << 20

// TestClient_PlainSSHTools uses Debian's ssh, scp, sftp and rsync on a sandbox whose image has no sshd.
func TestClient_PlainSSHTools(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	l := newLaptop(s)
	t.Run("commands", l.during((*laptop).testCommands))
	t.Run("files", l.during((*laptop).testFiles))
	t.Run("rsync", l.during((*laptop).testRsync))
	t.Run("sftp", l.during((*laptop).testSFTP))
	t.Run("forwarding", l.during((*laptop).testForwarding))
	t.Run("terminal", l.during((*laptop).testTerminal))
	t.Run("host key", l.during((*laptop).testHostKey))
	t.Run("another's token", l.during((*laptop).testForeignToken))
}

func (l *laptop) testCommands(t *testing.T) {
	got := l.run("in", "ssh", "lab.sandboxd", "cat; echo err >&2; whoami; pwd; exit 7")
	if got.out != "inagent\n/home/agent\n" || got.err != "err\n" || got.code != 7 {
		t.Errorf("got %+v", got)
	}
	if got := l.run("", "ssh", "lab.sandboxd", "kill -TERM $$"); got.code != 143 {
		t.Errorf("a signal: %+v", got)
	}
	// As editors do: a shell that takes a script, and a tunnel beside it.
	got = l.run("cd /etc && echo \"$PWD $0\"\n", "ssh", "-T", "-D", freeAddr(t), "lab.sandboxd", "bash")
	if got.out != "/etc bash\n" || got.code != 0 {
		t.Errorf("a script: %+v", got)
	}
	mux := filepath.Join(l.home, "mux")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	master := l.command(ctx, "ssh", "-NM", "-S", mux, "lab.sandboxd")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = master.Wait() }()
	l.untilWithin(commandLimit, "the shared connection is there", func() bool { return l.run("", "ssh", "-S", mux, "-O", "check", "lab.sandboxd").code == 0 })
	for _, word := range []string{"one", "two", "three"} {
		if got := l.run("", "ssh", "-S", mux, "lab.sandboxd", "echo "+word); got.out != word+"\n" {
			t.Errorf("over the shared connection: %+v", got)
		}
	}
	l.must(l.run("", "ssh", "-S", mux, "-O", "exit", "lab.sandboxd"))
	if got := l.run("", "ssh", "-A", "-X", "lab.sandboxd", "echo \"[$SSH_AUTH_SOCK$DISPLAY]\""); got.out != "[]\n" || got.code != 0 {
		t.Errorf("agent and X11: %+v", got)
	}
	if got := l.run("", "ssh", "-R", "9999:localhost:80", "-o", "ExitOnForwardFailure=yes", "lab.sandboxd", "true"); got.code == 0 {
		t.Errorf("remote forwarding: %+v", got)
	}
	if got := l.run("", "ssh", "nothing.sandboxd", "true"); got.code != 255 || !strings.Contains(got.err, `There is no sandbox called "nothing"`) {
		t.Errorf("no sandbox: %+v", got)
	}
}

// bigFile gives a file of random bytes, and its hash.
func (l *laptop) bigFile(name string) (path, sum string) {
	l.t.Helper()
	content := make([]byte, bigSize)
	rand.Read(content)
	hash := sha256.Sum256(content)
	return l.file(name, content), hex.EncodeToString(hash[:])
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// timed tells how fast something was.
func paced(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	took := time.Since(began)
	t.Logf("%s: %d MiB in %v, %.0f MiB/s", what, bigSize>>20, took.Round(time.Millisecond), bigSize/(1<<20)/took.Seconds())
}

func (l *laptop) testFiles(t *testing.T) {
	big, sum := l.bigFile("big")
	back := filepath.Join(l.home, "back")
	ways := map[string]func(from, to string) said{
		"scp":        func(from, to string) said { return l.run("", "scp", "-q", from, to) },
		"scp by rcp": func(from, to string) said { return l.run("", "scp", "-qO", from, to) },
		"rsync":      func(from, to string) said { return l.run("", "rsync", "--whole-file", from, to) },
		"sandboxd cp": func(from, to string) said {
			return l.run("", "sandboxd", "cp", strings.ReplaceAll(from, ".sandboxd", ""), strings.ReplaceAll(to, ".sandboxd", ""))
		},
	}
	for name, copies := range ways {
		paced(t, name+" in", func() { l.must(copies(big, "lab.sandboxd:big")) })
		if out := l.must(l.run("", "ssh", "lab.sandboxd", "sha256sum big; stat -c '%U %a' big; rm big")); !strings.HasPrefix(out, sum) || !strings.HasSuffix(out, "agent 644\n") {
			t.Errorf("%s in: %s", name, out)
		}
		l.must(l.run("", "scp", "-q", big, "lab.sandboxd:big"))
		paced(t, name+" out", func() { l.must(copies("lab.sandboxd:big", back)) })
		if got := sumOf(t, back); got != sum {
			t.Errorf("%s out: %s", name, got)
		}
	}
	l.must(l.run("", "scp", "-q", "-p", l.file("script", []byte("#!/bin/sh\necho ran\n")), "lab.sandboxd:script"))
	l.must(l.run("", "ssh", "lab.sandboxd", "chmod 700 script; touch -d @1000000000 script"))
	l.must(l.run("", "scp", "-q", "-p", "lab.sandboxd:script", "script2"))
	if st, err := os.Stat(filepath.Join(l.home, "script2")); err != nil || st.Mode().Perm() != 0o700 || st.ModTime().Unix() != 1000000000 {
		t.Errorf("scp -p: %v, %v", st, err)
	}
	if got := l.run("", "scp", "-q", big, "lab.sandboxd:/root/x"); got.code == 0 || !strings.Contains(strings.ToLower(got.err), "permission denied") {
		t.Errorf("where the user may not: %+v", got)
	}
}

func (l *laptop) testRsync(t *testing.T) {
	tree := filepath.Join(l.home, "tree")
	for i := range 200 {
		l.file(fmt.Sprintf("tree/%d/%d.txt", i%7, i), []byte(strings.Repeat("x", i)))
	}
	if err := os.Symlink("0/0.txt", filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	l.must(l.run("", "rsync", "-a", "--delete", "tree/", "lab.sandboxd:tree/"))
	l.must(l.run("", "ssh", "lab.sandboxd", "echo new >tree/1/new.txt; rm -r tree/2"))
	l.must(l.run("", "rsync", "-a", "--delete", "lab.sandboxd:tree/", "tree/"))
	here := l.must(l.run("", "sh", "-c", "cd tree && find . -printf '%P %l %s\\n' | grep -v '^[0-9]* * [0-9]*$' | sort"))
	there := l.must(l.run("", "ssh", "lab.sandboxd", "cd tree && find . -printf '%P %l %s\\n' | grep -v '^[0-9]* * [0-9]*$' | LC_ALL=C sort"))
	if strings.Count(here, "\n") < 150 || strings.Contains(here, "2/") == strings.Contains(here, "1/new.txt") || len(here) != len(there) {
		t.Errorf("here\n%s\nthere\n%s", here, there)
	}
	if err := os.RemoveAll(filepath.Join(tree, "3")); err != nil {
		t.Fatal(err)
	}
	l.must(l.run("", "rsync", "-a", "--delete", "tree/", "lab.sandboxd:tree/"))
	if got := l.run("", "ssh", "lab.sandboxd", "ls tree/3"); got.code == 0 {
		t.Errorf("it was not deleted there: %+v", got)
	}
}

func (l *laptop) testSFTP(t *testing.T) {
	l.file("notes", []byte("first\nsecond\n"))
	batch := "mkdir s\ncd s\nput notes\nrename notes n2\nsymlink n2 link\nls -l\nget link back2\nchmod 600 n2\n" +
		"!printf third >>notes\nreput notes n2\nget n2 back3\nrm link\nrm n2\ncd ..\nrmdir s\n"
	got := l.run(batch, "sftp", "-b", "-", "lab.sandboxd")
	if got.code != 0 || !strings.Contains(got.out, "link") {
		t.Fatalf("%+v", got)
	}
	for name, want := range map[string]string{"back2": "first\nsecond\n", "back3": "first\nsecond\nthird"} {
		if text, err := os.ReadFile(filepath.Join(l.home, name)); string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if got := l.run("mkdir s\nput notes s/notes\nrmdir s\n", "sftp", "-b", "-", "lab.sandboxd"); got.code == 0 {
		t.Errorf("a folder that is not empty was removed: %+v", got)
	}
	l.exec("lab", map[string]any{"command": "mkdir many; cd many; seq -f file-%g 3000 | xargs touch; cd ..; head -c 20 /dev/zero >part; ln -s /etc etc"})
	l.file("part", []byte(strings.Repeat("x", 10)))
	got = l.run("pwd\ndf -h\nls -1 many\nreget part\nput -p notes n3\nln n3 n4\nput part n5\nrename n5 n4\nls etc/passwd\n", "sftp", "-b", "-", "lab.sandboxd")
	if got.code != 0 || strings.Count(got.out, "/file-") != 3000 || !strings.Contains(got.out, "directory: /home/agent\n") || !strings.Contains(got.out, "etc/passwd") {
		t.Errorf("exit code %d, %.300s, %s", got.code, got.out, got.err)
	}
	if text, err := os.ReadFile(filepath.Join(l.home, "part")); string(text) != strings.Repeat("x", 10)+strings.Repeat("\x00", 10) || err != nil {
		t.Errorf("reget: %q, %v", text, err)
	}
	if got := l.run("", "ssh", "lab.sandboxd", "stat -c '%U %G %a %s' n3 n4; ls n5"); got.out != "agent agent 644 18\nagent agent 644 20\n" || got.code == 0 {
		t.Errorf("%+v", got)
	}
}

// TestClient_SFTPWhereTheImageHasNothing has a plain image, and a sandbox that is held strictly: as its user, in its home, and with
// nothing more than that user may.
func TestClient_SFTPWhereTheImageHasNothing(t *testing.T) {
	t.Parallel()
	templates := t.TempDir()
	writeTemplate(t, templates, "closed", "name: closed\ntitle: Closed\ndescription: Held strictly.\nimage: debian:trixie-slim\nprofile: strict\n")
	s := newServer(t, "--prebuild", "", "--templates", templates)
	s.create(map[string]any{"name": "plain", "image": "debian:trixie-slim"})
	s.create(map[string]any{"name": "closed", "template": "closed"})
	l := newLaptop(s)
	l.file("notes", []byte("text"))
	for _, name := range []string{"plain", "closed"} {
		got := l.run("put notes\nrename notes n2\nget n2 back\n-put notes /.sandboxd/guest\n-put notes /proc/sys/kernel/hostname\n", "sftp", "-b", "-", name+".sandboxd")
		if text, err := os.ReadFile(filepath.Join(l.home, "back")); got.code != 0 || string(text) != "text" || err != nil {
			t.Errorf("%s: %+v, %q, %v", name, got, text, err)
		}
		who := s.exec(name, map[string]any{"command": "id -u"}).Stdout
		if got := s.exec(name, map[string]any{"command": "stat -c %u /home/agent/n2; hostname"}); got.Stdout != who+name+"\n" {
			t.Errorf("%s: %q as %q", name, got.Stdout, who)
		}
	}
}

// testForwarding reaches a port that is bound to the sandbox's loopback, by -L, by -D and with port-forward.
func (l *laptop) testForwarding(t *testing.T) {
	l.exec("lab", map[string]any{"command": "mkdir -p www; echo hello >www/page; cd www; " +
		"setsid python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null & " +
		"until curl -s localhost:8123 >/dev/null; do sleep 0.1; done"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, socks := freeAddr(t), freeAddr(t)
	tunnel := l.command(ctx, "ssh", "-N", "-L", at+":localhost:8123", "-D", socks, "lab.sandboxd")
	if err := tunnel.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = tunnel.Wait() }()
	l.untilWithin(commandLimit, "the page comes through -L", func() bool { return page("http://"+at+"/page") == "hello\n" })
	if got := l.run("", "curl", "-sS", "--socks5-hostname", socks, "http://localhost:8123/page"); got.out != "hello\n" {
		t.Errorf("through -D: %+v", got)
	}
	if got := l.run("", "curl", "-sS", "-m", "20", "--socks5-hostname", socks, "http://"+l.addr+"/healthz"); got.code == 0 && strings.Contains(got.out, "ok") {
		t.Errorf("the host behind was reached: %+v", got)
	}
	forward := l.sit(t, 80, 24, "sandboxd", "port-forward", "lab", "0:8123", "0:9")
	forward.shows("-> lab port 9")
	found := regexp.MustCompile(`Forwarding (\S+) -> lab port 8123`).FindStringSubmatch(forward.text())
	if got := page("http://" + found[1] + "/page"); got != "hello\n" {
		t.Errorf("port-forward: %q", got)
	}
	refused := regexp.MustCompile(`Forwarding (\S+) -> lab port 9\b`).FindStringSubmatch(forward.text())
	_ = page("http://" + refused[1] + "/")
	forward.shows("Nothing is listening on port 9")
	l.stop()
	l.start()
	l.untilWithin(commandLimit, "a new connection after a restart of sandboxd", func() bool { return page("http://"+found[1]+"/page") == "hello\n" })
	forward.types("\x03")
	if code := forward.ends(); code != 0 {
		t.Errorf("it ends with %d", code)
	}
}

// page gives what is at a URL, or "".
func page(url string) string {
	client := http.Client{Timeout: eventLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// testTerminal sits before a shell, with Debian's ssh and with ours.
func (l *laptop) testTerminal(t *testing.T) {
	for name, args := range map[string][]string{"ssh": {"lab.sandboxd"}, "sandboxd": {"ssh", "lab"}} {
		s := l.sit(t, 100, 30, name, args...)
		s.types("stty size; echo $TERM-$((40+2))\n")
		s.shows("30 100")
		s.shows("xterm-42")
		if err := pty.Setsize(s.terminal, &pty.Winsize{Cols: 132, Rows: 43}); err != nil {
			t.Fatal(err)
		}
		s.types("sleep 0.5; stty size\n")
		s.shows("43 132")
		s.types("sh -c 'echo begun; sleep 100'\n")
		s.shows("begun\r\n")
		s.types("\x03")
		s.types("exit 3\n")
		if code := s.ends(); code != 3 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	s := l.sit(t, 80, 24, "sandboxd", "ssh", "lab")
	s.types("echo $((40+2))\n")
	s.shows("42")
	s.types("\r~.")
	if code := s.ends(); code != 255 || !strings.Contains(s.text(), "Left lab.") {
		t.Errorf("after ~. it ends with %d: %s", code, s.text())
	}
}

func (l *laptop) testHostKey(t *testing.T) {
	other := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJuQ4AqmJnc4mOPvwWUfHM8f7OAgTOnbFy6mZzFTBrRG"
	got := l.run("", "ssh", "-o", "KnownHostsCommand=/bin/echo %H "+other, "lab.sandboxd", "echo reached")
	if got.code != 255 || got.out != "" || !strings.Contains(got.err, "Host key verification failed") {
		t.Errorf("%+v", got)
	}
	st, err := os.Stat(filepath.Join(l.data, "ssh_host_ed25519_key"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

// testForeignToken has a token that is good for another sandbox alone.
func (l *laptop) testForeignToken(t *testing.T) {
	l.create(map[string]any{"name": "other", "image": "debian:trixie-slim"})
	token := strings.TrimSpace(l.cli("token", "create", "narrow", "--sandbox", "other"))
	for _, args := range [][]string{
		{"ssh", "lab", "--", "echo reached"}, {"exec", "lab", "--", "echo", "reached"}, {"cp", "lab:/etc/passwd", "stolen"},
		{"ssh", "--stdio", "lab"}, {"logs", "lab"},
	} {
		args = append([]string{args[0], "--token", token}, args[1:]...)
		if got := l.run("", "sandboxd", args...); got.code == 0 || strings.Contains(got.out, "reached") || !strings.Contains(got.err, "There is no sandbox") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := l.run("", "sandboxd", "ssh", "--token", token, "other", "--", "echo reached"); got.out != "reached\n" {
		t.Errorf("its own: %+v", got)
	}
	if got := l.run("", "sandboxd", "ssh", "--url", "http://192.0.2.1", "--token", token, "other"); !strings.Contains(got.err, "not encrypted") || strings.Contains(got.err, token) {
		t.Errorf("plain http: %+v", got)
	}
}

// TestClient_WakeAndLetSleep opens a sleeping sandbox by ssh, and leaves a shell open until it is frozen.
func TestClient_WakeAndLetSleep(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--settle", "1s")
	s.create(map[string]any{"name": "lab", "template": "base"})
	l := newLaptop(s)
	for _, state := range []string{"asleep", "frozen"} {
		for name, args := range map[string][]string{"ssh": {"lab.sandboxd", "echo awake"}, "sandboxd": {"ssh", "lab", "--", "echo awake"}} {
			s.sleeps("lab", state)
			if got := l.run("", name, args...); got.out != "awake\n" {
				t.Errorf("%s: %s: %+v", state, name, got)
			}
		}
	}
	s.sleeps("lab", "asleep")
	if got := l.run("echo typed\n", "sandboxd", "exec", "-i", "lab", "--", "sh"); got.out != "typed\n" {
		t.Errorf("exec: %+v", got)
	}
	if status, text := s.raw("PATCH", "/sandboxes/lab", map[string]any{"freeze_after": "3s", "stop_after": "never"}); status != http.StatusOK {
		t.Fatalf("patch: %d %s", status, text)
	}
	for name, args := range map[string][]string{"ssh": {"lab.sandboxd"}, "sandboxd": {"ssh", "lab"}, "exec": {"exec", "-it", "lab", "--", "bash"}} {
		program := strings.Replace(name, "exec", "sandboxd", 1)
		shell := l.sit(t, 80, 24, program, args...)
		shell.types("kept=$((40+2)); echo first-$kept\n")
		shell.shows("first-42")
		s.untilWithin(2*time.Minute, "lab is frozen under an open shell ("+name+")", func() bool { return s.rest("lab").State == "frozen" })
		if err := pty.Setsize(shell.terminal, &pty.Winsize{Cols: 99, Rows: 33}); err != nil {
			t.Fatal(err)
		}
		shell.types("echo again-$kept; sleep 0.3; stty size\n")
		shell.shows("again-42")
		shell.shows("33 99")
		shell.types("exit\n")
		if code := shell.ends(); code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	files := l.sit(t, 80, 24, "sftp", "lab.sandboxd")
	files.types("mkdir sub\npwd\n")
	files.shows("directory: /home/agent")
	s.untilWithin(2*time.Minute, "lab is frozen under an open session of SFTP", func() bool { return s.rest("lab").State == "frozen" })
	files.types("cd sub\npwd\n")
	files.shows("directory: /home/agent/sub")
	files.types("bye\n")
	if code := files.ends(); code != 0 {
		t.Errorf("sftp: exit code %d", code)
	}
	// A command that runs keeps it awake, however quiet it is.
	if got := l.run("", "ssh", "lab.sandboxd", "sleep 12; echo done"); got.out != "done\n" {
		t.Errorf("a quiet command: %+v", got)
	}
}

// TestClient_Copy goes by docker's rules, and keeps what a sandbox sends in the folder that was named.
func TestClient_Copy(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	s.create(map[string]any{"name": "web", "image": "debian:trixie-slim"})
	l := newLaptop(s)
	l.file("tree/a.txt", []byte("a"))
	l.file("tree/sub/b.txt", []byte("b"))
	if err := os.Symlink("sub/b.txt", filepath.Join(l.home, "tree", "link")); err != nil {
		t.Fatal(err)
	}
	cp := func(args ...string) said { return l.run("", "sandboxd", append([]string{"cp"}, args...)...) }
	in := func(box, script string) string { return s.exec(box, map[string]any{"command": script}).Stdout }
	l.must(cp("tree", "lab:"))
	l.must(cp("tree", "lab:copy"))
	l.must(cp("tree/.", "lab:copy"))
	l.must(cp("tree/a.txt", "lab:copy/renamed.txt"))
	if got := in("lab", "cat tree/sub/b.txt copy/a.txt copy/renamed.txt; readlink tree/link; ls copy/tree 2>&1 | head -c 2"); got != "baasub/b.txt\nls" {
		t.Errorf("in: %q", got)
	}
	for _, wrong := range [][]string{{"tree", "lab:no/such/folder"}, {"tree", "lab:copy/a.txt"}, {"tree/a.txt", "lab:new/"}, {"nothing", "lab:"}, {"lab:nothing", "."}, {"tree", "other"}} {
		if got := cp(wrong...); got.code == 0 {
			t.Errorf("%q: %+v", wrong, got)
		}
	}
	l.must(cp("lab:tree", "web:/tmp/there"))
	if got := in("web", "cat /tmp/there/sub/b.txt; readlink /tmp/there/link"); got != "bsub/b.txt\n" {
		t.Errorf("across: %q", got)
	}
	in("lab", "ln -s /etc/passwd tree/out; ln -s ../../.. tree/sub/up; mkdir tree/closed; echo kept >tree/closed/file; chmod 500 tree/closed")
	got := cp("lab:tree", "back")
	if got.code != 1 || !strings.Contains(got.err, `"out" is a link that leads out`) || !strings.Contains(got.err, `"sub/up"`) {
		t.Errorf("links that lead out: %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(l.home, "back", "closed", "file"))
	if to, linkErr := os.Readlink(filepath.Join(l.home, "back", "link")); string(text) != "kept\n" || err != nil || to != "sub/b.txt" || linkErr != nil {
		t.Errorf("out: %q, %v, %q, %v", text, err, to, linkErr)
	}
	packed := l.run("", "sandboxd", "cp", "lab:tree/sub", "-")
	if got := l.run(l.must(packed), "tar", "t"); !strings.Contains(got.out, "sub/b.txt\n") {
		t.Errorf("a tar out: %+v", got)
	}
	in("web", "mkdir new")
	l.must(l.run(packed.out, "sandboxd", "cp", "-", "web:new"))
	if got := in("web", "cat new/sub/b.txt"); got != "b" {
		t.Errorf("a tar in: %q", got)
	}
}

// TestClient_ExecAndLogs runs programs as users do, and reads what services write.
func TestClient_ExecAndLogs(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	l := newLaptop(s)
	got := l.run("", "sandboxd", "exec", "-u", "root", "-w", "/etc", "-e", "A=1 2", "lab", "--", "sh", "-c", `id -un; pwd; echo "$A"; echo err >&2; exit 9`)
	if got.out != "root\n/etc\n1 2\n" || got.err != "err\n" || got.code != 9 {
		t.Errorf("got %+v", got)
	}
	input := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	if got := l.run(string(input), "sandboxd", "exec", "-i", "lab", "md5sum"); !strings.HasPrefix(got.out, md5Of(input)) {
		t.Errorf("input: %+v", got)
	}
	if got := l.run("not read", "sandboxd", "exec", "lab", "--", "cat"); got.out != "" || got.code != 0 {
		t.Errorf("without -i: %+v", got)
	}
	if got := l.run("", "sandboxd", "exec", "lab", "--", "no-such-program"); got.code != 127 || !strings.Contains(got.err, "no program no-such-program") {
		t.Errorf("no program: %+v", got)
	}
	if got := l.run("", "sandboxd", "exec", "lab", "--", "/etc/passwd"); got.code != 126 || !strings.Contains(got.err, "may not be run") {
		t.Errorf("no program, but a file: %+v", got)
	}
	if got := l.run("", "sh", "-c", "'"+mustAbs(t, binary)+"' exec lab -- yes | head -n 1"); got.out != "y\n" {
		t.Errorf("into a pipe that ends: %+v", got)
	}
	shell := l.sit(t, 90, 20, "sandboxd", "exec", "-it", "lab", "bash")
	shell.types("stty size; exit 4\n")
	shell.shows("20 90")
	if code := shell.ends(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	service := map[string]any{"command": []string{"/bin/sh", "-c", "i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.2; done"}, "autostart": true}
	if status, text := s.raw("PUT", "/sandboxes/lab/services/clock", service); status != http.StatusCreated {
		t.Fatalf("put service: %d %s", status, text)
	}
	s.until("the service writes", func() bool { return strings.Contains(l.run("", "sandboxd", "logs", "lab", "clock").out, "line-2") })
	follow := l.sit(t, 80, 24, "sandboxd", "logs", "-f", "lab")
	follow.shows("clock | line-2\r\n")
	after := strings.Count(l.run("", "sandboxd", "logs", "lab", "clock").out, "\n")
	follow.shows(fmt.Sprintf("clock | line-%d\r\n", after+5))
	follow.types("\x03")
	if code := follow.ends(); code != 0 {
		t.Errorf("logs -f ends with %d", code)
	}
}
