package files

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// The tests of this package run as root, as the guest does.

func TestUser_MayWhatHeMayAndNoMore(t *testing.T) {
	b := newBox(t, 1000)
	must(t, os.MkdirAll(b.host("etc/closed"), 0o755))
	must(t, os.WriteFile(b.host("etc/shadow"), []byte(secret), 0o600))
	must(t, os.WriteFile(b.host("etc/passwd"), []byte("public"), 0o644))
	must(t, os.WriteFile(b.host("etc/closed/x"), []byte(secret), 0o644))
	must(t, os.Chmod(b.host("etc/closed"), 0o700))
	must(t, os.Mkdir(b.host("tmp"), 0o777))
	must(t, os.Chmod(b.host("tmp"), 0o777|os.ModeSticky))
	must(t, os.WriteFile(b.host("tmp/root's"), []byte("root's"), 0o666))
	before := state(t, b.host("etc"))
	for _, d := range doings() {
		for _, p := range []string{"/etc/shadow", "/etc/closed/x", "/etc/closed", "/etc/new", "/tmp/root's"} {
			said := d.do(t.Context(), b, p)
			if strings.Contains(said, secret) {
				t.Errorf("%s of %s tells %q", d.name, p, said)
			}
			if got := b.content("tmp/root's"); got != "root's" {
				t.Fatalf("%s of %s: got %q", d.name, p, got)
			}
		}
		if after := state(t, b.host("etc")); after != before {
			t.Fatalf("%s: %s", d.name, after)
		}
	}
	if _, text, err := b.read("/etc/passwd"); text != "public" {
		t.Errorf("got %q, %v", text, err)
	}
	for _, p := range []string{"/etc/shadow", "/etc/closed/x"} {
		if _, _, err := b.read(p); code(err) != wire.CodeForbidden {
			t.Errorf("%s: %v", p, err)
		}
		if _, err := b.write(wire.FilePut{Path: p, Size: -1}, "mine"); code(err) != wire.CodeForbidden {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestUser_HasHisGroupsAndMakesWhatIsHis(t *testing.T) {
	b := newBox(t, 1000)
	must(t, os.WriteFile(b.host("home/shared"), []byte("for 44"), 0o640))
	must(t, os.Chown(b.host("home/shared"), 0, 44))
	if _, _, err := b.read("shared"); code(err) != wire.CodeForbidden {
		t.Errorf("got %v", err)
	}
	b.tree.cfg.User = func() User { return User{UID: 1000, GID: 1001, Groups: []int{44}, Home: "/home"} }
	if _, text, err := b.read("shared"); text != "for 44" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := b.ask(wire.FilesMkdir, at("d/e"), nil); code(err) != wire.CodeNotFound {
		t.Errorf("got %v", err)
	}
	if _, err := b.ask(wire.FilesMkdir, url.Values{"path": {"d/e"}, "parents": {"true"}}, nil); err != nil {
		t.Error(err)
	}
	for _, p := range []string{"d", "d/e"} {
		if e, err := b.stat(p); err != nil || e.UID != 1000 || e.GID != 1001 || e.Type != wire.TypeFolder {
			t.Errorf("got %+v, %v", e, err)
		}
	}
}

func TestUser_NoThreadKeepsHisIdentity(t *testing.T) {
	b := newBox(t, 1000)
	done := make(chan struct{})
	for i := range 16 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 20 {
				b.write(wire.FilePut{Path: "f" + string(rune('a'+i)), Size: -1}, "x")
				b.list("/home", "", "100")
			}
		}()
	}
	for range 16 {
		<-done
	}
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	must(t, err)
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); (strings.HasPrefix(line, "Uid:") || strings.HasPrefix(line, "Gid:")) && f[4] != "0" {
				t.Errorf("%s: %s", task, line)
			}
		}
	}
	var st unix.Stat_t
	must(t, unix.Stat(b.host("home/fa"), &st))
	if st.Uid != 1000 {
		t.Errorf("made by %d", st.Uid)
	}
}
