package link

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Process is a command that runs in a sandbox. Next is for one goroutine, Stdin for one, everything else for any.
type Process struct {
	// Stdin is the command's input; closing it is its end. A write blocks while the command does not read, and fails
	// once the command has ended. It need not be closed. On a terminal, closing it does nothing.
	Stdin io.WriteCloser

	session *transport
	reply   *reply
	id      string
	ctx     context.Context // the caller's
	heard   chan heard      // frames, one at a time
	done    chan struct{}   // tells that the data of the last one is not needed any more
	begun   bool            // the first one has been taken
	ended   bool            // the exit frame has been read
}

// heard is one frame, or why there is none.
type heard struct {
	frame wire.ExecFrame
	err   error
}

// Exec starts a command. It lives until it has ended, ctx ends or Close is called, whichever is first; the latter two
// kill its whole process tree. Kinds: Invalid, NotFound (no such program, user or folder), Unavailable.
func (s *Session) Exec(ctx context.Context, start wire.ExecStart) (*Process, error) {
	payload, err := wire.Encode(wire.MaxStart, &start)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The command cannot be run: %v.", err)
	}
	head := wire.AppendFrame(nil, wire.FrameStart, payload)
	out, in := io.Pipe()
	req, err := http.NewRequest(http.MethodPost, "http://guest"+wire.PathExec,
		body{io.MultiReader(bytes.NewReader(head), out), out})
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r, err := s.ask(ctx, req)
	if err != nil {
		in.Close()
		return nil, err
	}
	p := &Process{Stdin: &stdin{pipe: in}, session: s.transport, reply: r, id: r.Header.Get(wire.ExecHeader), ctx: ctx,
		heard: make(chan heard), done: make(chan struct{})}
	if !s.begin(p.listen) {
		r.close()
		return nil, s.failed(ctx, errDropped)
	}
	return p, nil
}

// listen reads frames until the last one or the end of the stream. It does so beside Next, because reading may be held
// up longer than the caller wants to wait: HTTP/2 makes room for more by writing, which a guest that does not read holds
// up.
func (p *Process) listen() {
	frames := wire.NewFrameReader(p.reply.Body)
	for {
		h := next(frames)
		select {
		case p.heard <- h:
		case <-p.reply.ctx.Done():
			return
		}
		if h.err != nil || h.frame.Type == wire.FrameExit {
			return
		}
		select {
		case <-p.done:
		case <-p.reply.ctx.Done():
			return
		}
	}
}

func next(frames *wire.FrameReader) heard {
	t, payload, err := frames.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // without an exit
	}
	if err != nil {
		return heard{err: err}
	}
	f, err := wire.DecodeExec(t, payload)
	return heard{f, err}
}

// body is a request's body with the end that HTTP/2 closes when the stream ends.
type body struct {
	io.Reader
	io.Closer
}

// Next gives the next output, or the exit, after which it gives io.EOF. Output is in order within stdout and within
// stderr. The frame's data is valid until the next call. Not reading makes the command wait. Kinds: Unavailable.
func (p *Process) Next() (wire.ExecFrame, error) {
	if p.ended {
		return wire.ExecFrame{}, io.EOF
	}
	h := p.receive()
	if h.err != nil {
		err := p.session.failed(p.ctx, h.err)
		p.reply.close()
		return wire.ExecFrame{}, err
	}
	if h.frame.Type == wire.FrameExit {
		p.ended = true
		p.reply.close()
	}
	return h.frame, nil
}

// receive resumes listen and waits for the next frame, until the stream is over.
func (p *Process) receive() heard {
	if p.begun {
		select {
		case p.done <- struct{}{}:
		case <-p.reply.ctx.Done():
		}
	}
	p.begun = true
	select {
	case h := <-p.heard:
		return h
	case <-p.reply.ctx.Done():
		return heard{err: context.Cause(p.reply.ctx)}
	}
}

// Signal sends a signal: "INT", "TERM" and so on to the command's process group, "KILL" to its whole process tree; the
// exit then comes through Next. Kinds: Invalid, NotFound (it has ended), Unavailable.
func (p *Process) Signal(name string) error {
	if err := wire.CheckSignal(name); err != nil {
		return fault.Wrap(err, fault.Invalid, "There is no signal %q.", name)
	}
	return p.control("signal", url.Values{"name": {name}})
}

// Resize tells the command's terminal its size. Kinds: Invalid, NotFound (it has ended), Unavailable.
func (p *Process) Resize(cols, rows int) error {
	if err := wire.CheckSize(cols, rows); err != nil {
		return fault.Wrap(err, fault.Invalid, "A terminal cannot have %d columns and %d rows.", cols, rows)
	}
	return p.control("resize", url.Values{"cols": {strconv.Itoa(cols)}, "rows": {strconv.Itoa(rows)}})
}

// control goes beside the command's own stream, which may be full of input that it does not read.
func (p *Process) control(verb string, v url.Values) error {
	path := wire.PathExecs + url.PathEscape(p.id) + "/" + verb + "?" + v.Encode()
	return p.session.call(p.ctx, http.MethodPost, path, nil, nil)
}

// Close ends the stream and kills the command's process tree if it has not ended. It may be called more than once.
func (p *Process) Close() error {
	p.reply.close()
	return nil
}

// stdin frames its writes.
type stdin struct{ pipe *io.PipeWriter }

var frameBuffers = sync.Pool{New: func() any { return new([wire.FrameHead + wire.MaxFrame]byte) }}

func (s *stdin) Write(p []byte) (written int, err error) {
	buf := frameBuffers.Get().(*[wire.FrameHead + wire.MaxFrame]byte)
	defer frameBuffers.Put(buf)
	for len(p) > 0 {
		n := copy(buf[wire.FrameHead:], p)
		wire.PutHead(buf[:], wire.FrameStdin, n)
		if _, err := s.pipe.Write(buf[:wire.FrameHead+n]); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

func (s *stdin) Close() error { return s.pipe.Close() }
