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

// The output of a stream or a WebSocket counts as use if it is more than a heartbeat: slotBytes of content within slotLength.
const (
	slotLength = 10 * time.Second
	slotBytes  = 128
)

// slot adds up the output. The zero value is ready for use; it belongs to one goroutine.
type slot struct {
	begun time.Time
	bytes int
}

// add reports whether these bytes make the slot count: true once in each.
func (s *slot) add(n int, now time.Time) bool {
	if now.Sub(s.begun) >= slotLength {
		s.begun, s.bytes = now, 0
	}
	before := s.bytes
	s.bytes = min(before+n, slotBytes) // more does not matter, and cannot overflow
	return before < slotBytes && s.bytes == slotBytes
}

// justConnected reports whether a page may be sending by itself, because it connected just now.
func (p *proxied) justConnected(now time.Time) bool {
	return p.use.Unattended && now.Sub(p.since) < slotLength
}

// sleeps reports whether the sandbox is asleep by now, or about to be.
func (p *proxied) sleeps(ctx context.Context) bool {
	sb, err := p.handle.Current(ctx)
	return err == nil && sb.State.Sleeps()
}

// received counts bytes from the sandbox: as attended if the request is, and as unattended where perhaps no one looks (a terminal,
// VS Code, a page's own request). The last output of a sandbox being stopped is no use of it.
func (p *proxied) received(ctx context.Context, n int) {
	stream := p.stream.Load()
	if stream == nil || n == 0 {
		return
	}
	if p.slot.add(n, time.Now()) {
		unseen := p.use.Unattended || p.use.Kind == idle.Terminal || p.toEditor()
		_ = stream.Touch(ctx, unseen || p.sleeps(ctx)) // the bytes are here in any case
	}
}

// prepare makes the sandbox ready for bytes of the client. Unattended ones thaw it only while they count.
func (p *proxied) prepare(ctx context.Context, attended bool) error {
	stream := p.stream.Load()
	switch {
	case stream == nil: // in flight, so it is awake
		return nil
	case attended && p.who.outside():
		ctx = p.asked(ctx)
		sb, err := p.handle.Current(ctx)
		if err != nil {
			return err
		}
		return p.proxy.wakes.limit(ctx, p.who, sb, func() error { return stream.Touch(ctx, false) })
	case attended:
		return stream.Touch(p.asked(ctx), false)
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
	ctx, cancel := context.WithTimeout(p.asked(ctx), wakeLimit)
	defer cancel()
	use := p.use
	use.Unattended = true
	return p.proxy.wakes.limit(ctx, p.who, sb, func() error {
		session, err := p.handle.Open(ctx, use)
		if err == nil {
			session.Release()
		}
		return err
	})
}

// upload is a request's body.
type upload struct {
	io.ReadCloser
	ctx     context.Context
	proxied *proxied
	control *http.ResponseController
}

// Read implements io.Reader. Between two Reads, the client waits for the sandbox.
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

// next reads the next bytes. An outsider must send some within outsiderPause.
func (u *upload) next(p []byte) (int, error) {
	if !u.proxied.who.outside() {
		return u.ReadCloser.Read(p)
	}
	_ = u.control.SetReadDeadline(time.Now().Add(outsiderPause))
	n, err := u.ReadCloser.Read(p)
	_ = u.control.SetReadDeadline(time.Time{}) // now the client waits for the sandbox
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errStalled
	}
	return n, err
}

// Close ends the body early: the sandbox reads no more of it.
func (u *upload) Close() error {
	u.proxied.sending.Store(false)
	return u.ReadCloser.Close()
}

// download is an answer's body. Its trailers are known, and scrubbed, only at its end.
type download struct {
	io.ReadCloser
	res     *http.Response
	proxied *proxied
	cut     error // how it broke off, until that is returned
}

// Read implements io.Reader: it counts the bytes.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.next(p)
	d.proxied.received(d.res.Request.Context(), n)
	if err != nil {
		scrubTrailer(d.res.Trailer)
	}
	return n, err
}

// Close scrubs too: closing may read the rest.
func (d *download) Close() error {
	err := d.ReadCloser.Close()
	scrubTrailer(d.res.Trailer)
	return err
}

// next reads the next bytes. Between two, the sandbox waits for the client. If the answer breaks off, the client still gets what
// arrived: the error comes one Read later, because it cuts the connection and drops what is not flushed.
func (d *download) next(p []byte) (int, error) {
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

// cutOff flushes what arrived, unless the client has left or lost access.
func (d *download) cutOff() error {
	if d.res.Request.Context().Err() == nil {
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

// Write implements io.Writer: it takes the client's bytes.
func (t *tunnel) Write(p []byte) (int, error) {
	by, err := t.admit(t.up.read(p))
	if err != nil {
		return 0, err
	}
	t.proxied.inwards.set(by)
	defer t.proxied.inwards.set(nothing)
	return t.ReadWriteCloser.Write(p)
}

// admit wakes the sandbox for a message, and judges it. On a terminal only input is attended. Elsewhere a message is, unless it
// comes at equal pauses or right after a page has connected. Pings, pongs and a terminal page's other messages do not wake: a frozen
// sandbox gets them when it is thawed.
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

// Read implements io.Reader: it gives the sandbox's bytes.
func (t *tunnel) Read(p []byte) (int, error) {
	t.proxied.outwards.set(nothing)
	n, err := t.ReadWriteCloser.Read(p)
	if n > 0 {
		t.proxied.outwards.set(unattended)
	}
	t.proxied.received(t.ctx, t.down.read(p[:n]).content)
	return n, err
}
