package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// anywhere runs a command line with a home of its own, and gives what it says and how it fails.
func anywhere(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRootCmd()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func homeless(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for _, name := range []string{"SANDBOXD_URL", "SANDBOXD_TOKEN"} {
		t.Setenv(name, "") // so that it is put back
		os.Unsetenv(name)
	}
	return home
}

func TestRemote_SaysWhatIsMissing(t *testing.T) {
	homeless(t)
	if _, err := anywhere(t, "ls"); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "sandboxd login") {
		t.Errorf("no server: %v", err)
	}
	if _, err := anywhere(t, "ls", "--url", "https://box.example.com"); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("no token: %v", err)
	}
}

func TestRemote_ASavedTokenGoesToItsOwnServerOnly(t *testing.T) {
	homeless(t)
	var seen string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		io.WriteString(w, `{"name":"ada","sandboxes":[],"total":0}`)
	}))
	defer s.Close()
	if out, err := anywhere(t, "login", s.URL, "--token", "sbx_secret"); err != nil || strings.Contains(out, "sbx_secret") {
		t.Fatalf("%s, %v", out, err)
	}
	if _, err := anywhere(t, "ls"); err != nil || seen != "Bearer sbx_secret" {
		t.Errorf("%v, asked with %q", err, seen)
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = "other: " + r.Header.Get("Authorization") }))
	defer other.Close()
	if _, err := anywhere(t, "ls", "--url", other.URL); !fault.Is(err, fault.Unauthenticated) || strings.HasPrefix(seen, "other") {
		t.Errorf("%v, asked with %q", err, seen)
	}
	t.Setenv("SANDBOXD_TOKEN", "sbx_other")
	if _, err := anywhere(t, "ls"); err != nil || seen != "Bearer sbx_other" {
		t.Errorf("%v, asked with %q", err, seen)
	}
	if out, err := anywhere(t, "ssh", "--help"); err != nil || strings.Contains(out, "sbx_") || strings.Contains(out, "--data") {
		t.Errorf("the help shows too much: %s, %v", out, err)
	}
}

func TestSSHConfig_IsPutFirstAndRenewedInItsPlace(t *testing.T) {
	block := configBegin + "new\n" + configEnd
	for old, want := range map[string]string{
		"":                   block,
		"Host *\n  User x\n": block + "\nHost *\n  User x\n",
		"A\n" + configBegin + "old\n" + configEnd + "\nB\n": "A\n" + block + "\nB\n",
	} {
		if got, err := replaceBlock(old, block); got != want || err != nil {
			t.Errorf("%q: %q, %v", old, got, err)
		}
	}
	if _, err := replaceBlock("A\n"+configBegin+"old\n", block); !fault.Is(err, fault.Conflict) {
		t.Errorf("without an end: %v", err)
	}
}

func TestSSHConfig_HoldsNoTokenAndNoForeignText(t *testing.T) {
	homeless(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"sandboxes":[{"name":"lab"},{"name":"x\n  ProxyCommand evil"},{"name":"*"}],"total":3}`)
	}))
	defer s.Close()
	c, err := client.New(client.Options{URL: s.URL, Token: "sbx_secret"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := sshConfig(t.Context(), c, "sandboxd", false)
	if err != nil || strings.Contains(text, "sbx_") || strings.Contains(text, "evil") || !strings.Contains(text, "\nHost lab.sandboxd *.sandboxd \"") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := sshConfig(t.Context(), c, "a b", false); !fault.Is(err, fault.Invalid) {
		t.Errorf("a suffix with a space: %v", err)
	}
}

// TestSSHConfig_NoShellReadsANamesText has a shell run the block's command with names such as a repository may have in it. Not
// every ssh refuses them by itself.
func TestSSHConfig_NoShellReadsANamesText(t *testing.T) {
	homeless(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"sandboxes":[{"name":"lab"}],"total":1}`)
	}))
	defer s.Close()
	c, err := client.New(client.Options{URL: s.URL, Token: "sbx_secret"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := sshConfig(t.Context(), c, "sandboxd", false)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	stub := "#!/bin/sh\nfor last; do :; done\nprintf '%s' \"$last\" >" + dir + "/asked\nexit 1\n"
	text = strings.ReplaceAll(text, self, dir+"/stub")
	for file, text := range map[string]string{"stub": stub, "config": text} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, command, _ := strings.Cut(text, "ProxyCommand ")
	command, _, _ = strings.Cut(command, "\n")
	for _, name := range []string{"lab", "$(touch pwned)", "`touch pwned`", ";touch pwned;", "a|touch pwned|b", "&touch pwned&", "x\ntouch pwned\nx",
		"x\"$(touch${IFS}pwned)\"", "x\\", "-x", "--url=http://evil.example.com/?", "*", "~"} {
		line := strings.NewReplacer("%n", name+".sandboxd", "%%", "%").Replace(command)
		_ = exec.CommandContext(t.Context(), "sh", "-c", "exec "+line).Run() // the stub fails, as there is no server
		if _, err := os.Lstat("pwned"); err == nil {
			t.Fatalf("a shell has read %q", name)
		}
		if asked, err := os.ReadFile("asked"); err != nil || string(asked) != name+".sandboxd" || !strings.Contains(line, " -- ") {
			t.Errorf("%q: the program was asked for %q, %v", name, asked, err)
		}
	}
	if !strings.Contains(text, ` "!*'*" `) {
		t.Errorf("a name may end the quotes that it stands in: %s", text)
	}
	for name, want := range map[string]bool{"lab": true, "other-1": true, "x'y": false, "x$y": false, "x y": false} { // as ssh itself reads it
		os.Remove("asked")
		_ = exec.CommandContext(t.Context(), "ssh", "-F", "config", "-o", "ConnectTimeout=1", "--", name+".sandboxd", "true").Run() // it cannot connect
		if _, err := os.Lstat("asked"); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	if c, err = client.New(client.Options{URL: "https://x$(touch)y", Token: "sbx_secret"}); err == nil {
		_, err = sshConfig(t.Context(), c, "sandboxd", false)
	}
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("an address that a shell would read: %v", err)
	}
}

func TestCopyEnd_TellsSandboxesFromFiles(t *testing.T) {
	for text, want := range map[string]endpoint{
		"lab:/x": {"lab", "/x"}, "lab:": {"lab", "."}, "lab:a:b": {"lab", "a:b"}, "./lab:x": {"", "./lab:x"}, "/lab:x": {"", "/lab:x"},
		"file": {"", "file"}, "-": {"", "-"}, "Not-A-Name:x": {"", "Not-A-Name:x"}, "..:x": {"", "..:x"}, ":x": {"", ":x"},
	} {
		if got := parseEnd(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestForward_Ports(t *testing.T) {
	for text, want := range map[string][2]int{"3000": {3000, 3000}, "8080:80": {8080, 80}, "0:80": {0, 80}} {
		if f, err := parseForward(text); err != nil || f.local != want[0] || f.remote != want[1] {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "0", "x", "80:", ":80", "1:2:3", "70000", "-1:80", "80:0"} {
		if _, err := parseForward(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEscapes_LeaveAtTheBeginningOfALineOnly(t *testing.T) {
	for typed, want := range map[string]string{
		"~.": "~", "ls\r~.more": "ls\r~", "a~.": "a~.", "~~.": "~~.", "\r~x.": "\r~x.", "": "",
	} {
		left := false
		got, err := io.ReadAll(&escapes{Reader: strings.NewReader(typed), leave: func() { left = true }})
		if string(got) != want || err != nil || left != (typed != want) && typed != "~." {
			t.Errorf("%q: %q, %v, left %v", typed, got, err, left)
		}
	}
}

func TestExec_TheCommandAndItsEnvironment(t *testing.T) {
	t.Setenv("FROM_HERE", "yes")
	env := environment([]string{"A=1=2", "FROM_HERE", "NOT_HERE_AT_ALL", "EMPTY="})
	if len(env) != 3 || env["A"] != "1=2" || env["FROM_HERE"] != "yes" || env["EMPTY"] != "" {
		t.Errorf("got %q", env)
	}
	for _, args := range [][]string{{"lab", "--", "ls", "--", "-l"}, {"lab", "ls", "--", "-l"}} {
		if got := strings.Join(afterName(args), " "); got != "ls -- -l" {
			t.Errorf("%q: %q", args, got)
		}
	}
	for want, err := range map[exitStatus]error{
		7: exitStatus(7), 255: fault.New(fault.NotFound, "There is no sandbox."), 126: fault.Field("command", "It may not be run."),
		127: &fault.Error{Kind: fault.NotFound, Field: "command", Message: "There is no program."},
	} {
		if got := orLost(&cobra.Command{}, err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}
