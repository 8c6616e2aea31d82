package kopia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/text"
)

// memoryLimit is what Go's collector keeps a child's memory to, where it can.
const memoryLimit = "192MiB"

// ignoreDamage has maintenance give up what was deleted and cannot be read, instead of ending there.
const ignoreDamage = "KOPIA_IGNORE_MAINTENANCE_REWRITE_ERROR"

// maxComplaint bounds what is logged of what a child writes to standard error, in bytes.
const maxComplaint = 4 << 10

// errQuiet ends a child that does nothing.
var errQuiet = fault.New(fault.Timeout, "The repository has not moved for minutes, so the work was given up. Try again, or check the repository.")

// process is a child at work.
type process struct {
	cmd       *exec.Cmd
	ctx       context.Context
	cancel    context.CancelCauseFunc // kills it
	in        io.WriteCloser          // it ends when this is closed
	out       *json.Decoder
	quiet     *time.Timer
	limit     time.Duration
	complaint *tail
	log       func(string)
}

// start starts a child, with a stream unless that is nil, and gives it its request.
func (e *Engine) start(ctx context.Context, r Request, stream *os.File) (*process, error) {
	r.Folder, r.Instance = e.folder(r.Access.Name), e.Instance
	if err := os.MkdirAll(r.Folder, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The cache of the repository cannot be made: %v.", err)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p := &process{limit: e.Quiet, complaint: &tail{}, log: func(s string) { e.Log.Debug("kopia's complaint", "repository", r.Access.Name, "text", s) }}
	if p.limit == 0 {
		p.limit = quietLimit
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.cmd = exec.CommandContext(p.ctx, e.Program[0], e.Program[1:]...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for this process alone
	p.cmd.Env = environment(r.Folder)
	p.cmd.Stderr = p.complaint
	if stream != nil {
		p.cmd.ExtraFiles = []*os.File{stream}
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cancel(nil)
		return nil, fault.Wrap(err, fault.Unavailable, "The process that works on the repository does not start.")
	}
	p.out = json.NewDecoder(out)
	p.quiet = time.AfterFunc(p.limit, func() { p.cancel(errQuiet) })
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.end()
		return nil, p.failed(err)
	}
	return p, nil
}

// environment is a child's: ours, without what is meant for sandboxd or would change what kopia does.
func environment(folder string) []string {
	env := []string{"GOMEMLIMIT=" + memoryLimit, "HOME=" + folder, "TMPDIR=" + folder, ignoreDamage + "=1"}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "SANDBOXD_") || strings.HasPrefix(name, "KOPIA_") || strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "GO") ||
			name == "HOME" || name == "TMPDIR" {
			continue
		}
		env = append(env, v)
	}
	return env
}

// moves says that the child is to do something now, and gives it time for that.
func (p *process) moves() { p.quiet.Reset(p.limit) }

// rests says that the child waits for us.
func (p *process) rests() { p.quiet.Stop() }

// next gives the next answer.
func (p *process) next() (a Answer, err error) {
	if err := p.out.Decode(&a); err != nil {
		return a, p.failed(err)
	}
	if a.Fault != nil {
		err := errors.New(a.Fault.Detail)
		if a.Fault.Public != "" {
			err = repository.PlaceError{Public: a.Fault.Public, Err: err}
		}
		if a.Fault.Item {
			err = repository.ItemError{Err: err}
		}
		return a, &fault.Error{Kind: a.Fault.Kind, Field: a.Fault.Field, Message: a.Fault.Message, Err: err}
	}
	return a, nil
}

// failed says why a child does not answer: it was ended, or has ended by itself.
func (p *process) failed(err error) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	return fault.Wrap(fmt.Errorf("%w: %s", err, text.Excerpt(p.complaint.String(), maxComplaint)), fault.Unavailable,
		"The process that works on the repository has ended unexpectedly. Nothing was lost; try again.")
}

// opened waits until the stream can be used.
func (p *process) opened() error {
	for {
		a, err := p.next()
		if err != nil || a.Opened {
			return err
		}
	}
}

// last gives the last answer, and tells of progress until then. An error of that ends the child.
func (p *process) last(progress func(repository.Progress) error) (Answer, error) {
	for {
		a, err := p.next()
		if err != nil || a.Done {
			return a, err
		}
		if a.Progress == nil {
			continue
		}
		if p.quiet.Stop() { // it was to move, and has
			p.moves()
		}
		if progress != nil {
			if err := progress(*a.Progress); err != nil {
				p.cancel(err)
				return a, err
			}
		}
	}
}

// end ends the child, if it has not ended by itself, and waits for that.
func (p *process) end() {
	p.quiet.Stop()
	p.cancel(nil)
	p.in.Close()
	_ = p.cmd.Wait() // how it has ended shows in its answers
	if s := p.complaint.String(); s != "" {
		p.log(s)
	}
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-maxComplaint):]
	return len(b), nil
}

// String gives them.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
