package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
)

// Bounds of commands.
const (
	maxRunning  = 16 // of one seat
	maxFinished = 32 // that are remembered
	stopGrace   = 3 * time.Second
	maxInput    = 16 << 10 // bytes at once
	inputWait   = 5 * time.Second
)

// terminalSize is what an interactive command sees.
var terminalSize = exec.Size{Cols: 120, Rows: 40}

// desk has the commands and the browser of one seat. Safe for concurrent use.
type desk struct {
	mu    sync.Mutex
	last  int
	byID  map[string]*command
	order []string // of byID, oldest first
	page  page
	used  time.Time // when it was last asked for; guarded by Service.mu
}

// command is one that was started. Safe for concurrent use.
type command struct {
	id       string
	terminal bool
	began    time.Time
	session  *exec.Session
	done     chan struct{} // closed when it has ended
	after    func(ctx context.Context) []Image

	mu   sync.Mutex
	out  transcript
	live io.Writer // who watches it now; nil for none
	exit int
	err  error // why it has ended otherwise
	took time.Duration
}

// order is what to run.
type order struct {
	request  exec.Request
	terminal bool
	after    func(ctx context.Context) []Image // called once, by the first who sees it ended
}

// start starts a command, which outlives ctx.
func (t *table) start(ctx context.Context, o order) (*command, error) {
	if t.desk.running() >= maxRunning {
		return nil, fault.New(fault.Conflict, "%d commands are still running. Stop one first, with stop_command.", maxRunning)
	}
	size := exec.Size{}
	if o.terminal {
		size = terminalSize
	}
	o.request.Timeout = exec.MaxTimeout
	if !t.enter() {
		return nil, fault.New(fault.Unavailable, "The server is stopping.")
	}
	life, cancel := context.WithCancel(t.life)
	stop := context.AfterFunc(ctx, cancel) // until it has begun
	session, err := t.cfg.Exec.Open(life, t.seat.Handle, o.request, size)
	if err == nil && !stop() {
		session.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		t.work.Done()
		return nil, err
	}
	c := &command{terminal: o.terminal, began: time.Now(), session: session, done: make(chan struct{}), after: o.after}
	t.desk.add(c)
	if !o.terminal {
		_ = session.CloseInput() // the command may have ended already
	}
	go func() {
		defer t.work.Done()
		defer cancel()
		c.pump()
	}()
	return c, nil
}

// enter counts a command, unless the service has ended. The caller calls work.Done.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.work.Add(1)
	return true
}

func (d *desk) running() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.byID {
		if !c.ended() {
			n++
		}
	}
	return n
}

// add names a command, and forgets the oldest that have ended.
func (d *desk) add(c *command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	c.id = fmt.Sprintf("cmd-%d", d.last)
	d.byID[c.id] = c
	d.order = append(d.order, c.id)
	finished := 0
	for i := len(d.order) - 1; i >= 0; i-- {
		if id := d.order[i]; d.byID[id].ended() {
			if finished++; finished > maxFinished {
				delete(d.byID, id)
				d.order = append(d.order[:i], d.order[i+1:]...)
			}
		}
	}
}

func (d *desk) find(id string) (*command, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.byID[id]
	return c, c != nil
}

func (d *desk) endAll() {
	d.mu.Lock()
	var all []*command
	for _, c := range d.byID {
		all = append(all, c)
	}
	d.mu.Unlock()
	for _, c := range all {
		c.session.Close()
	}
}

// ended says whether it has.
func (c *command) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// pump keeps what the command writes, until it ends.
func (c *command) pump() {
	defer c.session.Close()
	for {
		e, err := c.session.Next()
		switch {
		case err != nil:
			c.finish(-1, err)
			return
		case e.Kind == exec.Exited:
			c.finish(e.Exit, nil)
			return
		}
		c.keep(e.Data)
	}
}

func (c *command) keep(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.add(p)
	if c.live != nil {
		_, _ = c.live.Write(p) // it takes everything, by its contract
	}
}

func (c *command) finish(exit int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit, c.err, c.took = exit, err, time.Since(c.began)
	close(c.done)
}

// watch shows out what the command writes from now on, until the returned function is called.
func (c *command) watch(out io.Writer) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = out
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live = nil
	}
}

// wait returns when the command has ended, or after d.
func (c *command) wait(ctx context.Context, d time.Duration, out io.Writer) error {
	if out != nil {
		defer c.watch(out)()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// report gives what was written since the last report, and how the command stands.
func (c *command) report(ctx context.Context) Result {
	over := c.ended()
	c.mu.Lock()
	out, leftOut := c.out.take()
	exit, err, took, after := c.exit, c.err, c.took, c.after
	if over {
		c.after = nil
	}
	c.mu.Unlock()
	r := Result{Data: Data{Handle: c.id, Running: !over, LeftOut: leftOut, Duration: took}}
	if out != "" && out[len(out)-1] != '\n' {
		out += "\n"
	}
	switch {
	case !over:
		r.Data.Duration = time.Since(c.began)
		r.Text = out + fmt.Sprintf("[It is still running after %s. Its handle is %s: command_output waits for more, stop_command ends it%s.]", brief(r.Data.Duration), c.id, c.inputHint())
		return r
	case err != nil:
		r.Failed = true
		r.Text = out + "[" + why(err) + "]"
	default:
		r.Data.Exit, r.Failed = &exit, exit != 0
		r.Text = out + fmt.Sprintf("[exit code %d after %s]", exit, brief(took))
	}
	if after != nil {
		r.Images = after(ctx)
	}
	return r
}

func (c *command) inputHint() string {
	if c.terminal {
		return ", send_input types into it"
	}
	return ""
}

// why says how a command ended that did not exit.
func why(err error) string {
	if errors.Is(err, context.Canceled) {
		return "It was stopped."
	}
	return fault.Message(err)
}

// brief gives a duration as people say it.
func brief(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
