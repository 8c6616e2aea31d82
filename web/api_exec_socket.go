package web

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
)

// The first byte of a binary message from sandboxd says which stream the rest belongs to.
const (
	streamStdout = 1
	streamStderr = 2
)

const (
	startLimit = 10 * time.Second // until the first message
	inputQueue = 16               // messages of input that a command may leave unread before reading waits
)

// socketMessage is a text message from the client. A binary message is input.
type socketMessage struct {
	Type string `json:"type"` // "start" first; then "stdin", "eof", "resize", "signal"
	execBody
	TTY    bool   `json:"tty"` // of "start"
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`
	Data   string `json:"data"`   // of "stdin"
	Signal string `json:"signal"` // of "signal"
}

// apiExecSocket is a dialogue with a command. What speaks against it is told before the upgrade, except for what the
// first message asks.
func (s *commandHandlers) apiExecSocket(ctx context.Context, r *request) (talk, func(), error) {
	h, err := s.reachable(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	r.tells = true
	return func(ctx context.Context, conn *websocket.Conn) error {
		d := &dialogue{conn: conn, id: r.id, silence: pongLimit, stall: writeLimit, asked: func(ask exec.Request) {
			r.object = program(ask.Command)
			r.begins()
		}}
		if r.query("patient") == "true" {
			d.silence, d.stall = patience, patience
		}
		err := d.say(d.hold(ctx, s.cfg.Commands, h))
		linger := time.AfterFunc(closeLimit, func() { conn.Close() }) // wakes listen, if the client says nothing more
		defer linger.Stop()
		d.running.Wait()
		return err
	}, func() {}, nil
}

// errLeft says that the client is gone, or has sent something that is no websocket.
var errLeft = errors.New("client left")

// dialogue is one command over one websocket. Only the goroutine that holds it writes to conn.
type dialogue struct {
	conn    *websocket.Conn
	id      string                 // of the request
	asked   func(ask exec.Request) // called with what the first message asks
	session *exec.Session
	began   time.Time
	running sync.WaitGroup
	silence time.Duration // of a client that is not gone
	stall   time.Duration // of one that takes nothing
}

// hold starts what the first message asks for and carries bytes both ways until the command ends or the client leaves.
func (d *dialogue) hold(ctx context.Context, commands *exec.Service, h access.Handle) error {
	ask, size, err := d.first()
	d.asked(ask)
	if err != nil {
		return err
	}
	d.began = time.Now()
	if d.session, err = commands.Open(ctx, h, ask, size); err != nil {
		return err
	}
	defer d.session.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	input := make(chan socketMessage, inputQueue)
	d.running.Go(func() {
		cancel(d.listen(ctx, input))
		d.session.Close() // a client that is gone ends the command
	})
	d.running.Go(func() { d.feed(ctx, input) })
	err = d.tell()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// first reads the start.
func (d *dialogue) first() (exec.Request, exec.Size, error) {
	_ = d.conn.SetReadDeadline(time.Now().Add(startLimit)) // fails only on a closed connection, which reading finds
	d.conn.SetReadLimit(maxBody)
	m, err := d.read()
	d.conn.SetReadLimit(maxMessage)
	if err != nil {
		return exec.Request{}, exec.Size{}, err
	}
	if m.Type != "start" {
		return exec.Request{}, exec.Size{}, fault.Field("type", "The first message must be of type \"start\".")
	}
	size := exec.Size{}
	if m.TTY {
		size = exec.Size{Cols: orElse(m.Cols, 80), Rows: orElse(m.Rows, 24)}
	}
	ask, err := m.request()
	if ask.Timeout == 0 {
		ask.Timeout = exec.MaxTimeout // the client can end it
	}
	return ask, size, err
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// read reads one message; a binary one is input.
func (d *dialogue) read() (socketMessage, error) {
	kind, b, err := d.conn.ReadMessage()
	if err != nil {
		return socketMessage{}, errLeft
	}
	if kind == websocket.BinaryMessage {
		return socketMessage{Type: "stdin", Data: string(b)}, nil
	}
	var m socketMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return m, bodyError(err)
	}
	return m, nil
}

// listen reads messages until the client leaves (errLeft) or says what nobody understands. What goes to the command's
// terminal is done at once; input waits its turn.
func (d *dialogue) listen(ctx context.Context, input chan<- socketMessage) error {
	extend := func(string) error { return d.conn.SetReadDeadline(time.Now().Add(d.silence)) }
	d.conn.SetPongHandler(extend)
	for {
		_ = extend("") // reading finds what is wrong
		m, err := d.read()
		if err != nil {
			return err
		}
		switch m.Type {
		case "resize":
			_ = d.session.Resize(exec.Size{Cols: m.Cols, Rows: m.Rows}) // an impossible size changes nothing
		case "signal":
			_ = d.session.Signal(m.Signal) // a command that has ended needs none
		case "stdin", "eof":
			select {
			case input <- m:
			case <-ctx.Done():
			}
		default:
			return fault.Field("type", "There is no message of type %.40q here.", m.Type)
		}
	}
}

// feed gives the command its input, in order.
func (d *dialogue) feed(ctx context.Context, input <-chan socketMessage) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-input:
			if m.Type == "eof" {
				_ = d.session.CloseInput() // a command that has ended needs none
				continue
			}
			_, _ = d.session.Write([]byte(m.Data)) // a command may close its input and keep running
		}
	}
}

// tell writes what the command says, its end included.
func (d *dialogue) tell() error {
	if err := d.json(liveEvent{Type: "started"}); err != nil {
		return err
	}
	for {
		e, err := d.session.Next()
		if fault.Is(err, fault.Timeout) {
			return d.json(d.exit(-1, true))
		}
		if err != nil {
			return err
		}
		switch e.Kind {
		case exec.Stdout:
			err = d.binary(streamStdout, e.Data)
		case exec.Stderr:
			err = d.binary(streamStderr, e.Data)
		case exec.Exited:
			return d.json(d.exit(e.Exit, false))
		}
		if err != nil {
			return err
		}
	}
}

func (d *dialogue) exit(code int, timedOut bool) liveEvent {
	return liveEvent{Type: "exit", liveExit: &liveExit{
		ExitCode: code, DurationMS: time.Since(d.began).Milliseconds(), TimedOut: timedOut,
	}}
}

func (d *dialogue) binary(stream byte, data []byte) error {
	_ = d.conn.SetWriteDeadline(time.Now().Add(d.stall)) // writing finds what is wrong
	return d.conn.WriteMessage(websocket.BinaryMessage, append([]byte{stream}, data...))
}

func (d *dialogue) json(v any) error {
	_ = d.conn.SetWriteDeadline(time.Now().Add(d.stall)) // writing finds what is wrong
	return d.conn.WriteJSON(v)
}

// say ends the dialogue with a last word for the client: how it failed, if it did.
func (d *dialogue) say(err error) error {
	if errors.Is(err, errLeft) {
		return nil
	}
	code := websocket.CloseNormalClosure
	if err != nil {
		p := problemOf(err)
		p.RequestID, code = d.id, websocket.CloseInternalServerErr
		_ = d.json(liveEvent{Type: "error", Problem: &p}) // a client that is gone needs no last word
	}
	end := websocket.FormatCloseMessage(code, "")
	_ = d.conn.WriteControl(websocket.CloseMessage, end, time.Now().Add(writeLimit))
	return err
}
