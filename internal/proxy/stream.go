package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// What comes out of a stream or a WebSocket counts as use when it is more than a heartbeat: slotBytes of content within slotLength.
const (
	slotLength = 10 * time.Second
	slotBytes  = 128
)

// slot adds up what comes. The zero value is ready for use; it belongs to one goroutine.
type slot struct {
	begun time.Time
	bytes int
}

// add reports whether these bytes make the present slot count: true once in each slot.
func (s *slot) add(n int, now time.Time) bool {
	if now.Sub(s.begun) >= slotLength {
		s.begun, s.bytes = now, 0
	}
	before := s.bytes
	s.bytes = min(before+n, slotBytes) // more does not matter, and cannot overflow
	return before < slotBytes && s.bytes == slotBytes
}

// justConnected reports whether what is sent now may be what a page says by itself when it has connected.
func (p *proxied) justConnected(now time.Time) bool {
	return p.use.Unattended && now.Sub(p.since) < slotLength
}

// sleeps reports whether the sandbox has been put to sleep by now, or is on its way there.
func (p *proxied) sleeps(ctx context.Context) bool {
	sb, err := p.handle.Current(ctx)
	return err == nil && sb.State.Sleeps()
}

// received notes bytes that have come out of the sandbox: somebody's when they have asked for them, and unattended where it may
// be that nobody looks (a terminal, an editor, what a page has asked for). The last words of one that is being stopped are no
// use of it.
func (p *proxied) received(ctx context.Context, n int) {
	stream := p.stream.Load()
	if stream == nil || n == 0 {
		return
	}
	if p.slot.add(n, time.Now()) {
		unseen := p.use.Unattended || p.use.Kind == idle.Terminal || p.toEditor()
		_ = stream.Touch(ctx, unseen || p.sleeps(ctx)) // what has come is here, whatever happens there
	}
}

// prepare makes the sandbox ready for what the visitor sends. What is not attended thaws it only as long as it counts.
func (p *proxied) prepare(ctx context.Context, attended bool) error {
	stream := p.stream.Load()
	switch {
	case stream == nil: // in flight, so it is awake
		return nil
	case attended:
		return stream.Touch(ctx, false)
	case !p.proxy.cfg.Tracker.Counts(p.handle.ID()):
		return nil
	}
	if err := stream.Touch(ctx, true); err != nil {
		return err
	}
	return p.thaw(ctx)
}

// thaw resumes a frozen sandbox, for an unattended use.
func (p *proxied) thaw(ctx context.Context) error {
	sb, err := p.handle.Current(ctx)
	if err != nil || sb.State != sandbox.Frozen {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wakeLimit)
	defer cancel()
	use := p.use
	use.Unattended = true
	session, err := p.handle.Open(ctx, use)
	if err != nil {
		return err
	}
	session.Release()
	return nil
}

// upload is a request's body.
type upload struct {
	io.ReadCloser
	ctx     context.Context
	proxied *proxied
	control *http.ResponseController
}

// Read implements io.Reader. Whenever it is not being asked, it is the sandbox that is waited for.
func (u *upload) Read(p []byte) (int, error) {
	u.proxied.inwards.set(nothing)
	n, err := u.next(p)
	if n > 0 {
		if err := u.proxied.prepare(u.ctx, true); err != nil {
			return 0, err
		}
	}
	if err != nil {
		u.proxied.sending.Store(false)
		u.proxied.unread.Store(err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose))
		return n, err
	}
	u.proxied.inwards.set(attended)
	return n, nil
}

// next reads what comes next. An outsider has to send something now and then.
func (u *upload) next(p []byte) (int, error) {
	if !u.proxied.who.outside() {
		return u.ReadCloser.Read(p)
	}
	_ = u.control.SetReadDeadline(time.Now().Add(outsiderPause))
	n, err := u.ReadCloser.Read(p)
	_ = u.control.SetReadDeadline(time.Time{}) // it is the sandbox that is waited for
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errStalled
	}
	return n, err
}

// Close ends the body early: the sandbox wants no more of it.
func (u *upload) Close() error {
	u.proxied.sending.Store(false)
	return u.ReadCloser.Close()
}

// download is an answer's body.
type download struct {
	io.ReadCloser
	ctx     context.Context
	proxied *proxied
	cut     error // how it broke off, while that is still to be told
}

// Read implements io.Reader. Between two Reads it is the visitor who is waited for. Of an answer that breaks off they get
// what there is: with the error, the connection is cut and all that has not been flushed is lost.
func (d *download) Read(p []byte) (int, error) {
	if d.cut != nil {
		return 0, d.cutOff()
	}
	d.proxied.outwards.set(nothing)
	n, err := d.ReadCloser.Read(p)
	if n > 0 {
		d.proxied.outwards.set(unattended)
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	d.cut = err
	if n > 0 {
		return n, nil
	}
	return 0, d.cutOff()
}

// cutOff sends what the visitor has not been sent yet, unless it is they who have left or may not have it.
func (d *download) cutOff() error {
	if d.ctx.Err() == nil {
		d.proxied.outwards.set(unattended)
		_ = d.proxied.out.FlushError() // it is cut in any case
	}
	return d.cut
}

// tunnel is the sandbox's end of a WebSocket.
type tunnel struct {
	io.ReadWriteCloser
	ctx      context.Context
	proxied  *proxied
	up, down frames
	hearts   idle.Heartbeats[int]
}

// Write implements io.Writer: it takes what the visitor sends.
func (t *tunnel) Write(p []byte) (int, error) {
	by, err := t.admit(t.up.read(p))
	if err != nil {
		return 0, err
	}
	t.proxied.inwards.set(by)
	defer t.proxied.inwards.set(nothing)
	return t.ReadWriteCloser.Write(p)
}

// admit has the sandbox awake for what is said, and tells whose it is: a person's, unless it comes at equal pauses or is what a
// page says when it has connected, and on a terminal what is typed. Pings, pongs, and what a terminal's page tells
// beside, do not wake: a frozen sandbox gets them when it is thawed.
func (t *tunnel) admit(p piece) (waits, error) {
	terminal := t.proxied.use.Kind == idle.Terminal
	if !p.data || terminal && !p.typed {
		return unattended, nil
	}
	now := time.Now()
	mayBeat := p.content < slotBytes || t.proxied.use.Unattended // a program may send much at equal pauses
	if !terminal && (mayBeat && t.hearts.Is(p.content, now) || t.proxied.justConnected(now)) {
		return unattended, t.proxied.prepare(t.ctx, false)
	}
	return attended, t.proxied.prepare(t.ctx, true)
}

// Read implements io.Reader: it gives what the sandbox sends.
func (t *tunnel) Read(p []byte) (int, error) {
	t.proxied.outwards.set(nothing)
	n, err := t.ReadWriteCloser.Read(p)
	if n > 0 {
		t.proxied.outwards.set(unattended)
	}
	t.proxied.received(t.ctx, t.down.read(p[:n]).content)
	return n, err
}
