package files

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// ripgrepLine bounds what ripgrep says of one line; it is passed over when it says more.
const ripgrepLine = 256 << 10

// kernelFolders are left out of a search of the root, as ripgrep's globs.
var kernelFolders = []string{"--glob=!/proc", "--glob=!/sys", "--glob=!/dev", "--glob=!/" + hiddenTop}

// ripgrep lets ripgrep search the folder where w is, as the user, and ends it with the search.
func (f *finding) ripgrep(w *walk, program string) error {
	folder, err := openFolder(w.fd(), "")
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	cmd := exec.CommandContext(w.actor.ctx, program, f.arguments(len(w.levels) == 1)...)
	cmd.Dir = ownFD(folder) // of the child, which has the descriptor until it is ripgrep
	if w.actor.tree.cfg.Env != nil {
		cmd.Env = w.actor.tree.cfg.Env()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) } // also its children, if it wraps another
	cmd.Cancel = kill
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = w.actor.user.credential()
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return problem(wire.CodeUnavailable, "The search cannot be started in the sandbox: %v.", errors.Unwrap(err))
	}
	deaf := context.AfterFunc(w.actor.ctx, func() { out.Close() }) // a process that left the group may still hold it open
	err = f.read(out)
	deaf()
	kill()
	waited := cmd.Wait()
	if errors.Is(err, os.ErrClosed) {
		err = w.actor.ctx.Err()
	}
	if err == nil && w.actor.ctx.Err() != nil {
		err = w.actor.ctx.Err()
	}
	if err == nil && waited != nil && !f.begun && cmd.ProcessState.ExitCode() == ripgrepFailed {
		err = problem(wire.CodeInvalid, "The expression cannot be read.")
	}
	return err
}

// ripgrepFailed is its exit code when there was an error: the expression's, before it has said anything, or that of a file
// or folder which it may not read.
const ripgrepFailed = 2

func (f *finding) arguments(root bool) []string {
	args := []string{"--json", "--hidden", "--no-config", "--no-messages", "--no-follow", "--max-filesize=64M",
		"--max-count=1000", "--threads=2", "--glob=!.git"}
	if root {
		args = append(args, kernelFolders...)
	}
	if !f.Case {
		args = append(args, "--ignore-case")
	}
	if !f.Regex {
		args = append(args, "--fixed-strings")
	}
	return append(args, "--regexp="+f.Query, "./")
}

// read reads what ripgrep says.
func (f *finding) read(out io.Reader) error {
	lines := bufio.NewReaderSize(out, ripgrepLine)
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err == nil {
			if err := f.one(line); err != nil {
				return err
			}
		}
		for long {
			_, err = lines.ReadSlice('\n')
			long = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return atEnd(err)
		}
	}
}

// ripgrepText is a text, or bytes that are none.
type ripgrepText struct {
	Text  string `json:"text"`
	Bytes []byte `json:"bytes"`
}

func (t ripgrepText) String() string {
	if len(t.Bytes) > 0 {
		return string(t.Bytes)
	}
	return t.Text
}

// ripgrepMessage is the part of a line of its JSON that we need.
type ripgrepMessage struct {
	Type string `json:"type"`
	Data struct {
		Path   ripgrepText `json:"path"`
		Lines  ripgrepText `json:"lines"`
		Number int         `json:"line_number"`
		Hits   []struct {
			Start int `json:"start"`
			End   int `json:"end"`
		} `json:"submatches"`
	} `json:"data"`
}

func (f *finding) one(line []byte) error {
	var m ripgrepMessage
	if json.Unmarshal(line, &m) != nil {
		return nil
	}
	f.begun = true
	if m.Type != "match" || len(m.Data.Hits) == 0 {
		return nil
	}
	hit, text := m.Data.Hits[0], strings.TrimRight(m.Data.Lines.String(), "\r\n")
	if hit.Start < 0 || hit.Start > hit.End || hit.End > len(text) {
		return nil
	}
	return f.tell(foundIn(path.Clean(m.Data.Path.String()), m.Data.Number, []byte(text), hit.Start, hit.End))
}

func (u User) credential() *syscall.Credential {
	c := &syscall.Credential{Uid: u.UID, Gid: u.GID}
	for _, g := range u.Groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}
