package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/sqlite"
)

// office is a data folder with its commands.
type office struct {
	t    *testing.T
	path string
}

func newOffice(t *testing.T) *office {
	return &office{t, filepath.Join(t.TempDir(), "sandboxd.db")}
}

func (o *office) open(ctx context.Context) (accounts, error) {
	db, err := sqlite.Open(ctx, o.path)
	if err != nil {
		return accounts{}, err
	}
	s := auth.New(db.Auth(), auth.Options{Cost: auth.Cost{Memory: 64, Passes: 1}})
	return accounts{s, db.Sandboxes(), db.Close}, s.Bootstrap(ctx, "")
}

// run runs a command line with stdin as its piped input.
func (o *office) run(stdin string, args ...string) (stdout, stderr string, err error) {
	o.t.Helper()
	root := &cobra.Command{Use: "sandboxd", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newUserCmd(o.open), newTokenCmd(o.open))
	var out, errs bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.ExecuteContext(o.t.Context())
	return out.String(), errs.String(), err
}

func (o *office) mustRun(stdin string, args ...string) string {
	o.t.Helper()
	out, _, err := o.run(stdin, args...)
	if err != nil {
		o.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

// with asks the accounts beside the commands, as a running server does.
func (o *office) with(f func(s *auth.Service)) {
	o.t.Helper()
	a, err := o.open(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	f(a.Service)
	if err := a.close(); err != nil {
		o.t.Error(err)
	}
}

// box keeps a sandbox of user's, and gives its id.
func (o *office) box(user, name string) (id string) {
	o.t.Helper()
	a, err := o.open(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	u, err := a.UserByName(o.t.Context(), user)
	if err != nil {
		o.t.Fatal(err)
	}
	s := sandboxtest.Sandbox(name, 0)
	s.Owner = u.ID
	if err := errors.Join(a.boxes.Insert(o.t.Context(), s), a.close()); err != nil {
		o.t.Fatal(err)
	}
	return s.ID
}

const aPassword = "correct horse battery"

func TestTokenCreate_PrintsTheTokenAloneBeforeAnybodySignedIn(t *testing.T) {
	o := newOffice(t)
	out, errs, err := o.run("", "token", "create", "ci")
	if err != nil || !regexp.MustCompile(`^sbx_[0-9A-Za-z]{43}\n$`).MatchString(out) {
		t.Fatalf("%q, %v", out, err)
	}
	if secret := strings.TrimSpace(out); strings.Contains(errs, secret) || !strings.Contains(errs, `Token "ci" for admin: full access, never expires.`) {
		t.Errorf("beside it stands %q", errs)
	}
	o.with(func(s *auth.Service) {
		p, err := s.Authenticate(t.Context(), strings.TrimSpace(out))
		if err != nil || p.User.Role != auth.Admin {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func TestTokenCreate_ForModelsAlone(t *testing.T) {
	o := newOffice(t)
	out, errs, err := o.run("", "token", "create", "editor", "--models")
	if err != nil || !strings.Contains(errs, `Token "editor" for admin: models only, never expires.`) {
		t.Fatalf("%q, %v", errs, err)
	}
	o.with(func(s *auth.Service) {
		if _, err := s.Authenticate(t.Context(), strings.TrimSpace(out)); !fault.Is(err, fault.Forbidden) {
			t.Errorf("the API takes it: %v", err)
		}
	})
	if list := o.mustRun("", "token", "list"); !strings.Contains(list, "models") {
		t.Errorf("the list does not say so:\n%s", list)
	}
	if _, _, err := o.run("", "token", "create", "x", "--models", "--sandbox", "ml"); !fault.Is(err, fault.Invalid) {
		t.Errorf("limited to both: %v", err)
	}
}

func TestToken_LifeFromCreateToRevoke(t *testing.T) {
	o := newOffice(t)
	o.with(func(server *auth.Service) { // a server that runs all the while
		o.mustRun(aPassword+"\n", "user", "add", "ada")
		id := o.box("ada", "ml")
		secret := strings.TrimSpace(o.mustRun("", "token", "create", "notebook", "--user", "Ada", "--sandbox", "ml", "--ttl", "30d"))
		p, err := server.Authenticate(t.Context(), secret)
		if err != nil || p.User.Name != "ada" || p.Sandbox != "ml" || p.SandboxID != id {
			t.Errorf("%+v, %v", p, err)
		}
		list := o.mustRun("", "token", "list", "--user", "ada")
		for _, part := range []string{"notebook", "ada", "ml", secret[:10] + "…"} {
			if !strings.Contains(list, part) {
				t.Errorf("the list lacks %q:\n%s", part, list)
			}
		}
		if strings.Contains(list, secret) {
			t.Error("the list shows the secret")
		}
		o.mustRun("", "token", "revoke", "notebook")
		_, err = server.Authenticate(t.Context(), secret)
		if !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("the server takes a revoked token: %v", err)
		}
	})
}

func TestTokenRevoke_SeveralOfOneNameNeedAnID(t *testing.T) {
	o := newOffice(t)
	o.mustRun("", "token", "create", "ci")
	o.mustRun("", "token", "create", "ci")
	_, _, err := o.run("", "token", "revoke", "ci")
	if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "2 tokens") {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`[0-9a-f]{16}`).FindString(fault.Message(err))
	o.mustRun("", "token", "revoke", id)
	o.mustRun("", "token", "revoke", "ci")
	if _, _, err := o.run("", "token", "revoke", "ci"); !fault.Is(err, fault.NotFound) {
		t.Errorf("revoke what is gone: %v", err)
	}
}

// closedPipe is a standard output that nobody reads.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestTokenCreate_WhatNobodySawIsRevoked(t *testing.T) {
	o := newOffice(t)
	cmd := newTokenCmd(o.open)
	cmd.SetOut(closedPipe{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs([]string{"create", "ci"})
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error is %v", err)
	}
	if list := o.mustRun("", "token", "list"); strings.Contains(list, "ci") {
		t.Errorf("the token stays:\n%s", list)
	}
}

func TestParseTTL_UnderstandsDaysAndWeeks(t *testing.T) {
	for in, want := range map[string]time.Duration{"": 0, "90m": 90 * time.Minute, "12h": 12 * time.Hour, "30d": 720 * time.Hour,
		"8w": 8 * 168 * time.Hour, "1h30m": 90 * time.Minute} {
		if got, err := parseTTL(in); err != nil || got != want {
			t.Errorf("%q is %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"d", "0", "0d", "-1d", "-5h", "10", "1.5d", "ever", "99999999999999d", "1y", " ", "٣d"} {
		if got, err := parseTTL(in); fault.FieldOf(err) != "ttl" {
			t.Errorf("%q is %s, %v", in, got, err)
		}
	}
}

func TestUser_LifeFromAddToDelete(t *testing.T) {
	o := newOffice(t)
	o.with(func(server *auth.Service) {
		login := func(password string) error {
			_, _, err := server.Login(t.Context(), "192.0.2.1", "ada", password, false)
			return err
		}
		o.mustRun(aPassword+"\r\nnot this line\n", "user", "add", "Ada", "--role", "admin")
		if err := login(aPassword); err != nil {
			t.Errorf("sign in: %v", err)
		}
		if list := o.mustRun("", "user", "list"); !regexp.MustCompile(`(?m)^ada +admin +active`).MatchString(list) ||
			!regexp.MustCompile(`(?m)^admin +admin +unclaimed`).MatchString(list) {
			t.Errorf("list:\n%s", list)
		}
		o.mustRun("another good one", "user", "passwd", "ada")
		if err := login("another good one"); err != nil {
			t.Errorf("sign in with the new password: %v", err)
		}
		for _, last := range [][]string{{"role", "ada", "member"}, {"disable", "ada"}, {"delete", "ada", "--yes"}} {
			if _, _, err := o.run("", append([]string{"user"}, last...)...); !fault.Is(err, fault.Conflict) {
				t.Errorf("%v of the last admin: %v", last, err)
			}
		}
		o.mustRun(aPassword, "user", "passwd", "admin") // claims the first admin
		o.mustRun("", "user", "role", "ada", "member")
		o.mustRun("", "user", "disable", "ada")
		if err := login("another good one"); !fault.Is(err, fault.Forbidden) {
			t.Errorf("sign in while disabled: %v", err)
		}
		o.mustRun("", "user", "enable", "ada")
		o.mustRun("", "user", "delete", "ada", "--yes")
		if err := login("another good one"); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("sign in after delete: %v", err)
		}
	})
}

func TestUserAndToken_BadInputIsExplained(t *testing.T) {
	o := newOffice(t)
	for _, c := range []struct {
		stdin string
		args  []string
		kind  fault.Kind
	}{
		{aPassword, []string{"user", "add"}, fault.Invalid},
		{aPassword, []string{"user", "add", "ada", aPassword}, fault.Invalid}, // a password in argv
		{aPassword, []string{"user", "add", "Jürgen"}, fault.Invalid},
		{aPassword, []string{"user", "add", "ada", "--role", "god"}, fault.Invalid},
		{"short", []string{"user", "add", "ada"}, fault.Invalid},
		{"", []string{"user", "add", "ada"}, fault.Invalid},
		{strings.Repeat("x", 10_000), []string{"user", "add", "ada"}, fault.Invalid},
		{aPassword, []string{"user", "add", "admin"}, fault.Conflict},
		{aPassword, []string{"user", "passwd", "nobody"}, fault.NotFound},
		{"", []string{"user", "role", "admin", "god"}, fault.Invalid},
		{"", []string{"user", "role", "admin"}, fault.Invalid},
		{"", []string{"user", "disable", "nobody"}, fault.NotFound},
		{"admin\n", []string{"user", "delete", "admin"}, fault.Invalid}, // nobody is asked when it is piped
		{"", []string{"token", "create"}, fault.Invalid},
		{"", []string{"token", "create", ""}, fault.Invalid},
		{"", []string{"token", "create", "t", "--user", "nobody"}, fault.NotFound},
		{"", []string{"token", "create", "t", "--sandbox", "../x"}, fault.Invalid},
		{"", []string{"token", "create", "t", "--ttl", "soon"}, fault.Invalid},
		{"", []string{"token", "create", "t", "--ttl", "5s"}, fault.Invalid},
		{"", []string{"token", "list", "--user", "nobody"}, fault.NotFound},
		{"", []string{"token", "revoke", "nothing"}, fault.NotFound},
	} {
		out, _, err := o.run(c.stdin, c.args...)
		if !fault.Is(err, c.kind) || out != "" {
			t.Errorf("%v: %v (kind %s), printed %q, want kind %s", c.args, err, fault.KindOf(err), out, c.kind)
		}
	}
}

func TestUserAndToken_EveryCommandTeaches(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" {
			t.Errorf("%s has no help", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newUserCmd(nil))
	walk(newTokenCmd(nil))
}

// atTerminal runs a command at a real terminal and types lines; each is typed once the prompt before it stands there.
func (o *office) atTerminal(ctx context.Context, dialogue [][2]string, args ...string) (screen string, err error) {
	o.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		o.t.Fatal(err)
	}
	defer master.Close()
	cmd := newUserCmd(o.open)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(tty)
	cmd.SetOut(tty)
	cmd.SetErr(tty)
	cmd.SetArgs(args)
	done := make(chan error, 1)
	go func() {
		done <- cmd.ExecuteContext(ctx)
		tty.Close()
	}()
	buf := make([]byte, 1024)
	for {
		n, readErr := master.Read(buf)
		screen += string(buf[:n])
		if len(dialogue) > 0 && strings.Contains(screen, dialogue[0][0]) {
			if _, err := master.WriteString(dialogue[0][1] + "\n"); err != nil {
				o.t.Fatal(err)
			}
			dialogue = dialogue[1:]
		}
		if readErr != nil {
			return screen, <-done
		}
	}
}

func TestReadPassword_AsksTwiceWithoutEchoAtATerminal(t *testing.T) {
	o := newOffice(t)
	screen, err := o.atTerminal(t.Context(), [][2]string{{"Password for ada: ", aPassword}, {"Once more: ", aPassword}}, "add", "ada")
	if err != nil || strings.Contains(screen, "horse") || !strings.Contains(screen, "Added the member ada.") {
		t.Errorf("%v, screen:\n%s", err, screen)
	}
	screen, err = o.atTerminal(t.Context(), [][2]string{{"Password for bob: ", aPassword}, {"Once more: ", "something else"}}, "add", "bob")
	if fault.FieldOf(err) != "password" {
		t.Errorf("two different passwords: %v, screen:\n%s", err, screen)
	}
	if list := o.mustRun("", "user", "list"); strings.Contains(list, "bob") {
		t.Error("bob was added")
	}
}

func TestUserDelete_AsksForTheNameAtATerminal(t *testing.T) {
	o := newOffice(t)
	o.mustRun(aPassword, "user", "add", "ada")
	_, err := o.atTerminal(t.Context(), [][2]string{{"Type the name to confirm: ", "yes"}}, "delete", "ada")
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("another word: %v", err)
	}
	if _, err = o.atTerminal(t.Context(), [][2]string{{"Type the name to confirm: ", "ada"}}, "delete", "ada"); err != nil {
		t.Errorf("the name: %v", err)
	}
}

func TestReadPassword_CtrlCGivesTheEchoBack(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetIn(tty)
	cmd.SetErr(writerFunc(func(prompt []byte) (int, error) {
		if strings.Contains(string(prompt), "Password") {
			if settings, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || settings.Lflag&unix.ECHO != 0 {
				t.Errorf("echo is on at the prompt: %v", err)
			}
			interrupt()
		}
		return len(prompt), nil
	}))
	if _, err := readPassword(cmd, "Password"); !fault.Is(err, fault.Invalid) || !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if settings, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || settings.Lflag&unix.ECHO == 0 {
		t.Errorf("echo is off afterwards: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
