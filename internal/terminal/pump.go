package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Times and bounds of a viewer.
const (
	viewerMessage = 1 << 20          // bytes; a paste is sent in pieces
	writeLimit    = 30 * time.Second // one message may take so long to send, at either end
	pingEvery     = 30 * time.Second
	silenceLimit  = 90 * time.Second // a viewer that answers no ping is gone
	closeLimit    = 2 * time.Second  // for the viewer's answer to the close frame
)

// pump is one attachment with its viewer.
type pump struct {
	*Attachment
	viewer *websocket.Conn
	box    *outbox

	mu    sync.Mutex
	fault error // what the guest did wrong, for the log
}

// Pump moves messages between the viewer and the terminal until either side ends or ctx does, then tells the viewer why
// (see the Close codes) and closes both. Output that the terminal has given is delivered before a normal end. The
// viewer is Pump's alone meanwhile, but for control messages. An error says what the guest did wrong; that a side
// has ended is none. ctx's cause may be a fault that the viewer is told.
func (a *Attachment) Pump(ctx context.Context, viewer *websocket.Conn) error {
	p := &pump{Attachment: a, viewer: viewer, box: newOutbox()}
	defer a.Close()
	defer viewer.Close()
	ctx, cancel := context.WithCancel(ctx) // ends a wake that nobody waits for any more
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		p.box.finish(aborted(ctx))
		_ = viewer.NetConn().SetWriteDeadline(time.Now().Add(closeLimit)) // ends a write that is stuck
	})
	defer stop()
	var readers sync.WaitGroup
	if a.refusal != nil {
		p.box.finish(*a.refusal)
	} else {
		readers.Go(func() { p.readTerminal(ctx) })
	}
	readers.Go(func() { p.readViewer(ctx) })
	p.write()
	stop()
	cancel()
	a.Close()
	readers.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// readViewer hands the viewer's messages to the terminal until the viewer leaves. After the goodbye it reads on until
// the answer, so that nothing sent before is lost to a reset.
func (p *pump) readViewer(ctx context.Context) {
	p.viewer.SetReadLimit(viewerMessage)
	p.viewer.SetPongHandler(func(string) error { return p.extend() })
	var check inspector
	for p.extend() == nil {
		_, m, err := p.viewer.ReadMessage()
		if err != nil {
			break
		}
		if in, ok := check.inspect(m); ok {
			p.obey(ctx, in)
		} else {
			p.box.finish(abuse)
		}
	}
	p.box.finish(left)
	p.viewer.Close() // ends a write that is stuck
}

// extend gives the viewer time for its next message, unless it is being let go: then it has what it has.
func (p *pump) extend() error {
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	if p.box.end != nil {
		return nil
	}
	return p.viewer.SetReadDeadline(time.Now().Add(silenceLimit))
}

// obey does what a message asks for. Typing wakes the sandbox first: a frozen one does not read. Everything else
// for the terminal is short, and waits for a frozen one in the link. A terminal that takes no more input is
// closed, which its reader finds.
func (p *pump) obey(ctx context.Context, in incoming) {
	if in.window > 0 {
		p.box.setWindow(in.window)
	}
	if in.acked > 0 {
		p.box.acked(in.acked)
	}
	if in.ping {
		p.box.answer()
	}
	if p.refusal != nil {
		return
	}
	if in.watched {
		p.use.Attend(ctx)
	}
	if in.message == nil || in.typed && !p.wake(ctx) {
		return
	}
	err := p.ttyd.SetWriteDeadline(time.Now().Add(writeLimit))
	if err == nil {
		err = p.ttyd.WriteMessage(websocket.BinaryMessage, in.message)
	}
	if err != nil {
		p.ttyd.Close()
	}
}

// wake counts what a person does, and makes sure that the sandbox is awake; false when the viewer is let go because it
// cannot be.
func (p *pump) wake(ctx context.Context) bool {
	waking, cancel := context.WithTimeout(ctx, wakeLimit)
	defer cancel()
	err := p.use.Touch(waking, false)
	if err == nil || ctx.Err() != nil { // the latter ends everything, and says why itself
		return err == nil
	}
	e := p.why(ctx, err)
	if e.code == CloseAsleep {
		e.reason = text.OneLine(fault.Message(err), maxReason)
	}
	p.box.finish(e)
	p.ttyd.Close()
	return false
}

// readTerminal queues the terminal's messages for the viewer until the terminal ends, and finds out why it did.
func (p *pump) readTerminal(ctx context.Context) {
	buf := make([]byte, outputMessage-1)
	var err error
	for err == nil {
		var r io.Reader
		if _, r, err = p.ttyd.NextReader(); err == nil {
			err = p.relay(ctx, r, buf)
		}
	}
	if errors.Is(err, errLeft) {
		return
	}
	if errors.Is(err, websocket.ErrReadLimit) {
		p.mu.Lock()
		p.fault = fmt.Errorf("terminal of %s: %w", p.handle.Name(), err)
		p.mu.Unlock()
	}
	p.box.finish(p.why(ctx, err))
}

var errLeft = errors.New("the viewer is let go")

// relay queues one message. Output is passed on as it arrives, whatever the length of the message.
func (p *pump) relay(ctx context.Context, r io.Reader, buf []byte) error {
	if _, err := io.ReadFull(r, buf[:1]); err != nil {
		return orEmpty(err)
	}
	kind := buf[0]
	if kind != wire.TTYOutput {
		return p.relayNotice(kind, r, buf)
	}
	for {
		n, err := r.Read(buf)
		if n > 0 {
			_ = p.use.Touch(ctx, true) // what comes out wakes nothing, and so cannot fail
			if !p.box.put(wire.TTYOutput, buf[:n]) {
				return errLeft
			}
		}
		if err != nil {
			return orEmpty(err)
		}
	}
}

// orEmpty: the end of a message is none of the connection.
func orEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *pump) relayNotice(kind byte, r io.Reader, buf []byte) error {
	n, err := io.ReadFull(r, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	clean, ok := notice(kind, buf[:n])
	if ok && !p.box.put(kind, clean) {
		return errLeft
	}
	return nil
}

// write sends the queue and pings until the end, and says goodbye. It is the only one that sends messages to
// the viewer.
func (p *pump) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var m []byte
	var end *ending
	for {
		m, end = p.box.take(m)
		switch {
		case m != nil:
			if p.send(m) != nil {
				p.viewer.Close()
				p.box.finish(left)
				return
			}
		case end != nil:
			p.goodbye(*end)
			return
		default:
			p.idle(ping.C)
		}
	}
}

func (p *pump) send(m []byte) error {
	if err := p.viewer.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return p.viewer.WriteMessage(websocket.BinaryMessage, m)
}

// idle waits for something to do.
func (p *pump) idle(ping <-chan time.Time) {
	select {
	case <-p.box.wake:
	case <-ping:
		if p.viewer.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit)) != nil {
			p.viewer.Close()
			p.box.finish(left)
		}
	}
}

// goodbye sends the close frame; the viewer's reader waits for the answer.
func (p *pump) goodbye(e ending) {
	until := time.Now().Add(closeLimit)
	if e.code != 0 && p.viewer.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(e.code, e.reason), until) == nil {
		_ = p.viewer.SetReadDeadline(until)
		return
	}
	p.viewer.Close()
}
