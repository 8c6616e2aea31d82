package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// errOldGuest says that the guest is older than kept processes.
var errOldGuest = fault.New(fault.Unavailable, "The program inside the sandbox is older than this sandboxd and cannot keep programs: stop and start the sandbox.")

// StartKept starts a program that outlives every connection, and ends with its sandbox or with EndKept. The same again is no error, so
// that a lost answer can be asked for again. Kinds: Invalid, NotFound (no such program, user or folder), Conflict (another one has
// that id, or there are wire.MaxKept), Unavailable.
func (s *Session) StartKept(ctx context.Context, start wire.KeptStart) error {
	if !s.greeting.hello.Kept {
		return errOldGuest
	}
	text, err := wire.Encode(wire.MaxStart, &start)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "The program cannot be run: %v.", err)
	}
	return s.call(ctx, http.MethodPost, wire.PathKept, text, nil)
}

// ListKept gives the kept processes, oldest first, those included that have ended. Kinds: Unavailable.
func (s *Session) ListKept(ctx context.Context) ([]wire.Kept, error) {
	if !s.greeting.hello.Kept {
		return nil, errOldGuest
	}
	var l wire.Kepts
	err := s.call(ctx, http.MethodGet, wire.PathKept, nil, &l)
	return l, err
}

// EndKept ends a kept process with its whole tree, when it has not ended, and forgets it with all that it has written. An unknown one
// is no error. Kinds: Invalid, Unavailable.
func (s *Session) EndKept(ctx context.Context, id string) error {
	path, err := s.keptPath(keptAsk{id: id})
	if err != nil {
		return err
	}
	return s.call(ctx, http.MethodDelete, path, nil, nil)
}

// keptAsk is a request about one kept process.
type keptAsk struct {
	id, verb string
	query    url.Values
}

// keptPath gives where a guest serves one kept process.
func (s *Session) keptPath(ask keptAsk) (string, error) {
	if !s.greeting.hello.Kept {
		return "", errOldGuest
	}
	if err := wire.CheckKept(ask.id); err != nil {
		return "", fault.Wrap(err, fault.Invalid, "A kept program cannot be called %q.", ask.id)
	}
	path := wire.PathKept + "/" + ask.id
	if ask.verb != "" {
		path += "/" + ask.verb
	}
	return path + "?" + ask.query.Encode(), nil
}

// Kept is a connection to a kept process. When it breaks, another one resumes at the offset where this one was. Read is for one
// goroutine, everything else for any.
type Kept struct {
	session *Session
	ctx     context.Context // the caller's
	id      string
	from    *stream
	frames  *wire.FrameReader
	at      int64
	rest    []byte // of the frame
	exit    wire.ExecFrame
	err     error // of the end
}

// AttachKept connects to a kept process, to read its stdout from an offset on. The connection that another one has to it ends. It lives
// until ctx ends or Close, which must be called; the program does not care. Kinds: Invalid (it has not written that much), NotFound (no such
// process), Conflict (that part is forgotten), Unavailable.
func (s *Session) AttachKept(ctx context.Context, id string, offset int64) (*Kept, error) {
	if err := wire.CheckOffset(offset); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "A program's output does not begin at %d.", offset)
	}
	path, err := s.keptPath(keptAsk{id, "output", url.Values{"at": {strconv.FormatInt(offset, 10)}}})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, "http://guest"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r, err := s.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	from, err := s.newStream(ctx, r)
	if err != nil {
		r.close()
		return nil, err
	}
	from.patience = 0
	return &Kept{session: s, ctx: ctx, id: id, from: from, frames: wire.NewFrameReader(from), at: offset}, nil
}

// Read reads stdout, and gives io.EOF when the program has ended and all was read. Other errors are Unavailable; what was not read is
// still there for the next connection.
func (k *Kept) Read(p []byte) (int, error) {
	for len(k.rest) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		k.next()
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	k.at += int64(n)
	return n, nil
}

// next reads a frame.
func (k *Kept) next() {
	t, payload, err := k.frames.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // without an exit
	}
	var f wire.ExecFrame
	if err == nil {
		f, err = wire.DecodeExec(t, payload)
	}
	switch {
	case err == nil && f.Type == wire.FrameStdout && len(f.Data) > 0:
		k.rest = f.Data
		return
	case err == nil && f.Type == wire.FrameExit:
		k.exit, k.err = f, io.EOF
	case err == nil:
		k.err = k.session.failed(k.ctx, wire.ErrFrame)
	default:
		k.err = k.session.failed(k.ctx, err)
	}
	k.from.Close()
}

// Offset is where the next byte of Read begins.
func (k *Kept) Offset() int64 { return k.at }

// Exit is how the program has ended, once Read has given io.EOF.
func (k *Kept) Exit() (code, signal int) { return k.exit.Code, k.exit.Signal }

// AckKept lets the guest forget stdout before an offset. Do that once it is stored: it cannot be read again. Kinds: Invalid, NotFound,
// Unavailable.
func (s *Session) AckKept(ctx context.Context, id string, before int64) error {
	return s.postKept(ctx, keptAsk{id, "forget", url.Values{"before": {strconv.FormatInt(before, 10)}}}, nil, nil)
}

// Ack is AckKept for this process.
func (k *Kept) Ack(ctx context.Context, before int64) error {
	return k.session.AckKept(ctx, k.id, before)
}

// WriteKept gives a kept process input that begins at an offset, counted from the first byte that it ever got. What it has of that already
// is left out, so after a lost connection the same can be written again. It blocks while the program does not read, until ctx ends.
// n says how much of p the program has for sure. Kinds: Invalid, NotFound, Conflict (bytes before these are missing, or its input
// has ended), Unavailable.
func (s *Session) WriteKept(ctx context.Context, id string, p []byte, at int64) (n int, err error) {
	for n < len(p) {
		took, err := s.writeKept(ctx, id, p[n:min(len(p), n+wire.MaxKeptInput)], at+int64(n), false)
		if err == nil && took == 0 {
			err = pauseKept(ctx)
		}
		if err != nil {
			return n, err
		}
		n += took
	}
	return n, nil
}

// WriteAt is WriteKept for this process.
func (k *Kept) WriteAt(ctx context.Context, p []byte, at int64) (n int, err error) {
	return k.session.WriteKept(ctx, k.id, p, at)
}

// keptPause is between two writes to a program that takes nothing. The guest itself waits longer; one that does not is not asked all
// the time.
const keptPause = 50 * time.Millisecond

func pauseKept(ctx context.Context) error {
	t := time.NewTimer(keptPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write to a kept program: %w", context.Cause(ctx))
	}
}

// CloseInput ends the program's input, which must have got all before that offset. Again is no error. Kinds: as WriteAt.
func (k *Kept) CloseInput(ctx context.Context, at int64) error {
	_, err := k.session.writeKept(ctx, k.id, nil, at, true)
	return err
}

func (s *Session) writeKept(ctx context.Context, id string, p []byte, at int64, end bool) (int, error) {
	query := url.Values{"at": {strconv.FormatInt(at, 10)}}
	if end {
		query.Set("end", "1")
	}
	var in wire.KeptInput
	if err := s.postKept(ctx, keptAsk{id, "input", query}, p, &in); err != nil {
		return 0, err
	}
	if in.Next < at {
		return 0, s.failed(ctx, errors.New("the guest forgets input that it had"))
	}
	return int(min(in.Next-at, int64(len(p)))), nil // it has more when another writer was there
}

// KeptStderr gives the end of what a kept process has written to stderr, from the beginning of a line, wire.MaxKeptStderr bytes at most.
// Kinds: NotFound, Unavailable.
func (s *Session) KeptStderr(ctx context.Context, id string) ([]byte, error) {
	path, err := s.keptPath(keptAsk{id: id, verb: "stderr"})
	if err != nil {
		return nil, err
	}
	return s.fetch(ctx, http.MethodGet, path, nil, wire.MaxKeptStderr)
}

// Stderr is KeptStderr for this process.
func (k *Kept) Stderr(ctx context.Context) ([]byte, error) { return k.session.KeptStderr(ctx, k.id) }

// Signal sends a signal: "INT", "TERM" and so on to the program's process group, "KILL" to its whole tree. Kinds: Invalid, NotFound (it
// has ended), Unavailable.
func (k *Kept) Signal(ctx context.Context, name string) error {
	if err := wire.CheckSignal(name); err != nil {
		return fault.Wrap(err, fault.Invalid, "There is no signal %q.", name)
	}
	return k.session.postKept(ctx, keptAsk{k.id, "signal", url.Values{"name": {name}}}, nil, nil)
}

// postKept asks something of a kept process.
func (s *Session) postKept(ctx context.Context, ask keptAsk, body []byte, into wire.Message) error {
	path, err := s.keptPath(ask)
	if err != nil {
		return err
	}
	return s.call(ctx, http.MethodPost, path, bytes.Clone(body), into) // HTTP/2 may look at it after the call has given up
}

// Close ends the connection; the program runs on. It may be called more than once.
func (k *Kept) Close() error { return k.from.Close() }
