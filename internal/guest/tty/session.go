package tty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/guest/descent"
	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// How long the program waits for a viewer that is behind before that viewer is let go, to come again and get a replay.
const (
	patienceAlone  = 15 * time.Second // without any progress, for a single viewer
	patienceShared = 3 * time.Second  // in all, for one of several
)

// Ending a session.
const (
	hangUpGrace = time.Second            // after SIGHUP, before SIGKILL
	lastOutput  = 500 * time.Millisecond // after the shell has ended, for output of others on its terminal
	maxLate     = 1 << 20                // bytes of that
	nudgeFor    = 40 * time.Millisecond  // how long a program sees another size, so that it redraws
)

// session is one shell on a terminal of its own, in an image without ttyd or tmux: it outlives its viewers.
//
// Lock order: session.mu, then viewer.mu.
type session struct {
	name    string
	created time.Time
	cmd     *exec.Cmd
	master  *os.File
	log     *slog.Logger
	ended   chan struct{} // closed when the shell is gone and viewers have been told

	mu      sync.Mutex
	said    output
	size    wire.TTYSize
	viewers []*viewer // in the order of use: the last one's wire.TTYSize counts, and it answers queries
	over    bool
}

// output processes the output of a session's program.
type output struct {
	scan    scanner
	history *history
	batch   []byte // for all viewers, while a read is being cut
}

// startSession runs the shell. The caller owns run.
func startSession(name string, c *Config, z wire.TTYSize, log *slog.Logger) (*session, error) {
	master, slave, err := openPTY(z, c.uid())
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	cmd := c.shell()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Credential: c.Credential}
	if err := descent.StartPlain(cmd.Start); err != nil {
		master.Close()
		return nil, fmt.Errorf("start shell: %w", err)
	}
	return &session{name: name, created: time.Now(), cmd: cmd, master: master, log: log, size: z,
		ended: make(chan struct{}), said: output{history: newHistory()}}, nil
}

// folder is where its shell stands, or "" when that cannot be told.
func (s *session) folder() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", s.cmd.Process.Pid))
	if err != nil {
		return ""
	}
	return path
}

// run reads the terminal until the shell has ended, or kills the shell when ctx ends. It closes what the session has.
func (s *session) run(ctx context.Context) {
	defer close(s.ended)
	defer s.master.Close()
	exited := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // how it ended is between it and its user
		_ = s.master.SetReadDeadline(time.Now().Add(lastOutput))
		close(exited)
	}()
	stop := context.AfterFunc(ctx, func() { s.kill(exited) })
	s.pump(exited)
	s.kill(exited) // the terminal is gone: so must be the shell
	stop()
	<-exited
	s.close()
}

// pump reads until the terminal ends. When the shell has ended but others keep its terminal open, the rest in the
// terminal's buffer is still read, and then no more.
func (s *session) pump(exited <-chan struct{}) {
	buf := make([]byte, 16<<10)
	late, quiet := 0, false
	for {
		n, err := s.master.Read(buf)
		if n > 0 {
			s.spread(buf[:n])
			quiet = false
		}
		if isClosed(exited) {
			late += n
		}
		if err != nil && (quiet || !errors.Is(err, os.ErrDeadlineExceeded)) || late > maxLate {
			return
		}
		if err != nil {
			quiet = true
			_ = s.master.SetReadDeadline(time.Now().Add(lastOutput))
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// spread notes what the program wrote, shares it, and waits for viewers that are behind.
func (s *session) spread(p []byte) {
	for _, v := range s.share(p) {
		s.await(v)
	}
}

// share gives p to all viewers and tells which of them are behind.
func (s *session) share(p []byte) (behind []*viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.batch = s.said.batch[:0]
	s.said.scan.scan(p, func(k kind, piece []byte) {
		if s.said.history.add(k, piece) != query {
			s.said.batch = append(s.said.batch, piece...)
			return
		}
		s.flush(nil)
		if n := len(s.viewers); n > 0 {
			s.viewers[n-1].push(piece)
		}
	})
	s.flush(func(v *viewer) { behind = append(behind, v) })
	return behind
}

// flush gives the batch to all viewers. s.mu is held.
func (s *session) flush(full func(*viewer)) {
	if len(s.said.batch) == 0 {
		return
	}
	for _, v := range s.viewers {
		if v.push(s.said.batch) && full != nil {
			full(v)
		}
	}
	s.said.batch = s.said.batch[:0]
}

// await waits until v has taken its queue, or drops it when patience ends.
func (s *session) await(v *viewer) {
	patience := patienceAlone
	if s.shared() {
		patience = patienceShared - v.stalled
	}
	began := time.Now()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-v.room:
		v.stalled += min(time.Since(began), patience) // more only in a freeze
		if v.caughtUp() {
			v.stalled = 0
		}
	case <-v.gone:
	case <-t.C:
		if thaw.Frozen(began.Add(patience)) {
			s.await(v)
			return
		}
		s.log.Info("terminal viewer is too slow", "tab", s.name)
		v.drop(closeSlow, "This viewer is too slow; it attaches again.")
	}
}

func (s *session) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.viewers) > 1
}

var errOver = errors.New("the shell has ended")

// attach adds a viewer: it gets the present screen first and then everything that follows, with no gap.
func (s *session) attach(v *viewer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errOver
	}
	v.push(s.said.history.replay())
	s.viewers = append(s.viewers, v)
	if s.size == v.size && s.said.history.alt != nil {
		s.nudge()
	}
	s.fit()
	return nil
}

// leave removes a viewer; the size of the one used before it counts again.
func (s *session) leave(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers = slices.DeleteFunc(s.viewers, func(o *viewer) bool { return o == v })
	s.fit()
}

// input types p for v, whose size counts from then on.
func (s *session) input(v *viewer, p []byte) error {
	s.use(v)
	switch _, err := thaw.WriteWithin(s.master, p, inputLimit); {
	case errors.Is(err, os.ErrClosed):
		return errOver
	case err != nil:
		return errNoInput
	}
	return nil
}

func (s *session) use(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.viewers); n > 0 && s.viewers[n-1] != v {
		i := slices.Index(s.viewers, v)
		if i < 0 {
			return
		}
		s.viewers = append(slices.Delete(s.viewers, i, i+1), v)
	}
	s.fit()
}

func (s *session) resize(v *viewer, z wire.TTYSize) {
	s.mu.Lock()
	v.size = z
	s.mu.Unlock()
	s.use(v)
}

// fit gives the terminal the size of the viewer last used. s.mu is held.
func (s *session) fit() {
	if len(s.viewers) == 0 {
		return
	}
	if z := s.viewers[len(s.viewers)-1].size; z != s.size {
		s.size = z
		_ = setSize(s.master, z) // fails only when the shell has just ended
	}
}

// nudge makes a full-screen program redraw. s.mu is held.
func (s *session) nudge() {
	other := s.size
	other.Rows += pick(other.Rows > 1, -1, 1)
	_ = setSize(s.master, other)
	time.AfterFunc(nudgeFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = setSize(s.master, s.size)
	})
}

// kill hangs up, and insists.
func (s *session) kill(exited <-chan struct{}) {
	s.signal(syscall.SIGHUP)
	s.signal(syscall.SIGCONT)
	if !thaw.Wait(exited, hangUpGrace) {
		s.signal(syscall.SIGKILL)
	}
}

func (s *session) signal(sig syscall.Signal) { _ = syscall.Kill(-s.cmd.Process.Pid, sig) }

// close tells the viewers that the shell has ended, after all of its output, and waits for them to go.
func (s *session) close() {
	s.mu.Lock()
	s.over = true
	viewers := slices.Clone(s.viewers)
	s.mu.Unlock()
	until := time.NewTimer(closeLimit)
	defer until.Stop()
	for _, v := range viewers {
		v.finish(closeNormal, "The shell has ended.")
	}
	for _, v := range viewers {
		select {
		case <-v.gone:
		case <-until.C:
			return
		}
	}
}

// describe gives the public state of the session.
func (s *session) describe() (viewers int, title string, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.viewers), s.said.history.modes.title, s.over
}
