// Package thaw keeps a freeze from passing for a timeout. The kernel's clock keeps running while a sandbox is frozen; at
// the thaw every timer that is due fires at once, before any program inside could act.
//
// It does not know of freezes beforehand, and needs not to be told: a wait that ends much later than it was to end has
// been frozen, and begins again. It is for bounds on the work of others; a pause that is over in the freeze is just over.
//
// Invariant: a peer that does nothing for a whole bound while awake still times out.
package thaw

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// lateness is by how much a timer fires late only when everything stood still. A guest that competes for the processor
// is late by tenths of a second.
const lateness = time.Second

// Frozen says whether a timer that has just fired, and was to fire at due, was held up by a freeze.
func Frozen(due time.Time) bool { return time.Since(due) >= lateness }

// Wait blocks until done is closed or gives something, which gives true, or for d of the sandbox's time.
func Wait[T any](done <-chan T, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		due := time.Now().Add(d)
		select {
		case <-done:
			return true
		case <-t.C:
		}
		if !Frozen(due) {
			return false
		}
		t.Reset(d)
	}
}

// Budget is a span of the sandbox's time that is asked for again and again. A jump of the clock between two questions
// counts as lateness at most.
type Budget struct {
	left time.Duration
	at   time.Time
}

// NewBudget begins a span.
func NewBudget(d time.Duration) *Budget { return &Budget{left: d, at: time.Now()} }

// Spent says whether the span is over.
func (b *Budget) Spent() bool {
	now := time.Now()
	b.left -= min(now.Sub(b.at), lateness)
	b.at = now
	return b.left <= 0
}

// Conn is a connection whose deadlines survive a freeze: one that passed in the meantime is given once more in full. A
// deadline in the past, by which a call is ended from outside, ends it.
type Conn struct {
	net.Conn
	read, write deadline
}

// NewConn gives c such deadlines.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c} }

// Read reads.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.read.renew(c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write writes all of p or fails.
func (c *Conn) Write(p []byte) (int, error) { return c.write.all(c.Conn, p) }

// SetReadDeadline bounds Read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.read.set(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline bounds Write.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.write.set(t, c.Conn.SetWriteDeadline) }

// SetDeadline bounds both.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite ends the sending side, where the connection can, so that the other side can read the rest.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Writer is what WriteWithin needs: a connection or a file.
type Writer interface {
	Write(p []byte) (int, error)
	SetWriteDeadline(t time.Time) error
}

// WriteWithin writes all of p, which may take d of the sandbox's time. It sets w's deadline.
func WriteWithin(w Writer, p []byte, d time.Duration) (int, error) {
	var own deadline
	if err := own.set(time.Now().Add(d), w.SetWriteDeadline); err != nil {
		return 0, err
	}
	return own.all(w, p)
}

// deadline is one that was set on a connection. Safe for concurrent use.
type deadline struct {
	mu   sync.Mutex
	due  time.Time // zero for none
	span time.Duration
}

func (d *deadline) set(t time.Time, on func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due, d.span = t, 0
	if !t.IsZero() {
		d.span = time.Until(t)
	}
	return on(t)
}

// renew gives the deadline once more in full, if it has passed in a freeze.
func (d *deadline) renew(on func(time.Time) error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.span <= 0 || !Frozen(d.due) {
		return false
	}
	d.due = time.Now().Add(d.span)
	return on(d.due) == nil
}

// all writes p to w on and on for as long as the deadline is renewed.
func (d *deadline) all(w Writer, p []byte) (written int, err error) {
	for {
		n, err := w.Write(p[written:])
		written += n
		if written == len(p) || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !d.renew(w.SetWriteDeadline) {
			return written, err
		}
	}
}
