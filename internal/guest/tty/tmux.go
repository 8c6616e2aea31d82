package tty

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandboxd/internal/guest/descent"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

//go:embed tmux.conf
var tmuxConf []byte

const (
	tmuxLimit  = 3 * time.Second // a tmux command takes about 3 ms
	tmuxOutput = 64 << 10        // more sessions than a person has
	tmuxLines  = "-20000"        // of scrollback: as many as tmux.conf keeps
)

// prepare makes the folder that the sandbox's user may put sockets into, with our tmux.conf, and gives the latter's path.
func (c *Config) prepare() (conf string, err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", fmt.Errorf("prepare terminals: %w", err)
	}
	if err := c.share(); err != nil {
		return "", fmt.Errorf("prepare terminals: %w", err)
	}
	conf = filepath.Join(c.Dir, "tmux.conf")
	fresh := filepath.Join(c.Dir, ".tmux.conf.new")
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("prepare terminals: %w", err)
	}
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("prepare terminals: %w", err)
	}
	_, err = f.Write(tmuxConf)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(fresh, conf)
	}
	if err != nil {
		return "", fmt.Errorf("prepare terminals: %w", err)
	}
	return conf, nil
}

// share lets the sandbox's user add to the folder, but not remove the guest's files.
func (c *Config) share() error {
	if c.Credential == nil {
		return nil
	}
	if err := os.Chown(c.Dir, -1, int(c.Credential.Gid)); err != nil {
		return os.Chmod(c.Dir, 0o777|os.ModeSticky) // a guest that may not give groups
	}
	return os.Chmod(c.Dir, 0o770|os.ModeSticky)
}

// tmuxSessions gives the sessions of the user's tmux server whose names can be tabs, by name; none when no server runs.
func (c *Config) tmuxSessions(ctx context.Context) map[string]wire.Terminal {
	out, err := c.tmux(ctx, "list-sessions", "-F", "#{session_created} #{session_attached} #{session_name} #{?#{==:#{pane_title},#{host}},#{window_name},#{pane_title}}")
	if err != nil {
		return nil
	}
	all := map[string]wire.Terminal{}
	panes := c.tmuxPanes(ctx)
	for line := range strings.Lines(out) {
		if t, ok := parseSession(strings.TrimRight(line, "\n")); ok {
			full, folder, _ := strings.Cut(panes[t.Name], " ")
			t.Full, t.Folder = full == "1", folder
			all[t.Name] = t
		}
	}
	return all
}

func parseSession(line string) (wire.Terminal, bool) {
	f := strings.SplitN(line, " ", 4)
	if len(f) < 4 || wire.CheckTab(f[2]) != nil {
		return wire.Terminal{}, false
	}
	created, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return wire.Terminal{}, false
	}
	viewers, err := strconv.Atoi(f[1])
	if err != nil || viewers < 0 {
		return wire.Terminal{}, false
	}
	return wire.Terminal{Name: f[2], Created: time.Unix(created, 0), Viewers: viewers, Title: text.OneLine(f[3], maxTitle)}, true
}

// tmuxKill ends a session with all that runs in it. One that is not there is no error.
func (c *Config) tmuxKill(ctx context.Context, tab string) error {
	_, err := c.tmux(ctx, "kill-session", "-t", "="+tab)
	if err == nil {
		return nil
	}
	if _, missing := c.tmux(ctx, "has-session", "-t", "="+tab); missing != nil {
		return nil
	}
	return err
}

// tmuxPanes gives "1" or "0" for whether the foreground programs of the user's sessions have the whole screen, and where they
// stand, by session.
func (c *Config) tmuxPanes(ctx context.Context) map[string]string {
	out, err := c.tmux(ctx, "list-panes", "-a", "-f", "#{&&:#{window_active},#{pane_active}}", "-F", "#{session_name} #{alternate_on} #{pane_current_path}")
	if err != nil {
		return nil
	}
	panes := map[string]string{}
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		panes[name] = rest
	}
	return panes
}

// tmuxText gives the last lines of a session's active pane and its scrollback, with colours, whole lines.
func (c *Config) tmuxText(ctx context.Context, tab string) ([]byte, error) {
	out := &lastBytes{limit: wire.MaxText}
	if err := c.tmuxInto(ctx, out, "capture-pane", "-p", "-e", "-J", "-S", tmuxLines, "-t", "="+tab+":"); err != nil {
		if _, missing := c.tmux(ctx, "has-session", "-t", "="+tab); missing != nil {
			return nil, errNoTab
		}
		return nil, err
	}
	return out.text(), nil
}

// tmux runs a tmux command as the sandbox's user and gives the beginning of its output.
func (c *Config) tmux(ctx context.Context, args ...string) (string, error) {
	out := &beginning{limit: tmuxOutput}
	err := c.tmuxInto(ctx, out, args...)
	if err != nil {
		return "", err
	}
	return string(out.bytes), nil
}

// tmuxInto runs a tmux command as the sandbox's user and writes its output to out.
func (c *Config) tmuxInto(ctx context.Context, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, tmuxLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Tmux, args...)
	cmd.Env, cmd.Dir = c.Env, c.home()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.Credential}
	cmd.WaitDelay = time.Second
	cmd.Stdout = out
	err := descent.StartPlain(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("tmux %s: %w", args[0], err)
	}
	return nil
}

// lastBytes keeps the last limit bytes that are written to it.
type lastBytes struct {
	limit int
	bytes []byte
	cut   bool
}

// Write never fails.
func (l *lastBytes) Write(p []byte) (int, error) {
	l.bytes = append(l.bytes, p...)
	if over := len(l.bytes) - l.limit; over > 0 {
		l.bytes = append(l.bytes[:0], l.bytes[over:]...)
		l.cut = true
	}
	return len(p), nil
}

// text is the kept output, from the beginning of a line on.
func (l *lastBytes) text() []byte {
	if !l.cut {
		return l.bytes
	}
	_, rest, _ := bytes.Cut(l.bytes, []byte{'\n'})
	return rest
}

// beginning keeps the first limit bytes that are written to it.
type beginning struct {
	limit int
	bytes []byte
}

// Write never fails.
func (b *beginning) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p[:min(len(p), b.limit-len(b.bytes))]...)
	return len(p), nil
}
