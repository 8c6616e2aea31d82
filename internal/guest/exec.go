package guest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

const (
	// quiet is how long the pipes of a program that has ended must be still before they are given up, when something
	// that it left in the background holds them open.
	quiet = 50 * time.Millisecond
	// drainTime bounds that for background programs that never are still. Bytes that were in the pipe when the program
	// ended are delivered however long that takes.
	drainTime = 500 * time.Millisecond
)

// execs serves commands. Safe for concurrent use.
type execs struct {
	spawn   spawnFunc
	lines   *journal
	serving *sync.WaitGroup // for the programs too, which may outlive their streams

	mu   sync.Mutex
	byID map[string]*process // those that run now
}

func (e *execs) add(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byID[p.id] = p
}

func (e *execs) remove(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byID, p.id)
}

func (e *execs) find(id string) (*process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.byID[id]; p != nil {
		return p, nil
	}
	return nil, problem(wire.CodeNotFound, "The command has ended.")
}

// serveStart runs a command for as long as the stream lives. The reply's head is sent when the program runs; an error that
// prevents that is the reply instead.
func (e *execs) serveStart(w http.ResponseWriter, r *http.Request) {
	frames := wire.NewFrameReader(r.Body)
	start, err := readStart(frames)
	if err != nil {
		fail(w, err)
		return
	}
	p, err := e.spawn(start)
	if err != nil {
		fail(w, err)
		return
	}
	e.add(p)
	defer e.remove(p)
	w.Header().Set(wire.ExecHeader, p.id)
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	x := execution{process: p, loss: start.Loss, log: start.Log, lines: e.lines, chunks: make(chan chunk), lost: make(chan struct{}), exited: make(chan exit, 1)}
	e.serving.Go(func() { x.exited <- p.wait() })
	x.run(r.Context(), w, r.Body, frames)
}

func readStart(frames *wire.FrameReader) (wire.ExecStart, error) {
	var s wire.ExecStart
	t, b, err := frames.Next()
	if err != nil || t != wire.FrameStart {
		return s, problem(wire.CodeInvalid, "The command cannot be read.")
	}
	if err := wire.Unmarshal(b, &s); err != nil {
		return s, problem(wire.CodeInvalid, "The command cannot be run: "+err.Error()+".")
	}
	return s, nil
}

// execution joins a process and its stream.
type execution struct {
	*process
	loss   wire.Loss
	log    string // under which lines keeps its output; "" for nowhere
	lines  *journal
	chunks chan chunk    // to the one writer of the stream
	ended  atomic.Bool   // the program itself
	exited chan exit     // gives how it did
	lost   chan struct{} // closed when the stream has ended first, and the program is let go
}

// chunk is a piece of output, a whole frame; its buffer may be used again once written is signalled.
type chunk struct {
	frame   []byte
	written chan<- struct{}
}

// run moves bytes both ways until the program has ended and its output is delivered, or ctx has ended and so has the tree,
// unless it is let go. Each output has one buffer, so a reader that stops makes the program stop.
func (x *execution) run(ctx context.Context, w http.ResponseWriter, body io.Closer, frames *wire.FrameReader) {
	var pumps, others sync.WaitGroup
	var how exit
	delivered := make(chan struct{})
	for _, o := range x.output {
		pumps.Go(func() { x.pump(o) })
	}
	others.Go(func() { x.feed(frames) })
	others.Go(func() {
		select {
		case <-ctx.Done():
			x.lose()
		case <-delivered:
		}
	})
	others.Go(func() {
		select {
		case how = <-x.exited:
			x.end()
		case <-x.lost:
		}
		pumps.Wait()
		close(x.chunks)
	})
	x.deliver(w)
	close(delivered)
	x.close()
	body.Close() // wakes feed
	others.Wait()
	if ctx.Err() == nil {
		w.Write(wire.AppendExit(nil, how.code, how.signal))
	}
}

// lose ends, hangs up or keeps the program, as was asked, when the stream has ended first.
func (x *execution) lose() {
	if x.loss == wire.LossKill {
		x.kill()
		return
	}
	if x.loss == wire.LossHangup {
		x.signal("HUP") // a program that has ended meanwhile needs none
	}
	x.close()
	close(x.lost)
}

// end tells the pumps that the program has ended, and wakes those that wait for output.
func (x *execution) end() {
	x.ended.Store(true)
	for _, o := range x.output {
		o.file.SetReadDeadline(time.Now().Add(quiet))
	}
}

// deliver writes chunks to the stream until the pumps are done. When the client has gone it only takes them away, so
// that the pumps come to their end.
func (x *execution) deliver(w http.ResponseWriter) {
	flush := http.NewResponseController(w)
	broken := false
	for c := range x.chunks {
		if !broken {
			_, err := w.Write(c.frame)
			broken = err != nil || flush.Flush() != nil
		}
		c.written <- struct{}{}
	}
}

// pump reads one output until it is closed, or until it is still after the program has ended.
func (x *execution) pump(o stream) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	written := make(chan struct{}, 1)
	var rest drain
	kept := &lineWriter{journal: x.lines, service: x.log}
	defer kept.flush()
	for {
		ended := x.ended.Load()
		if ended && !rest.more(o.file) {
			return
		}
		n, err := o.file.Read(buf[wire.FrameHead:])
		rest.read += n
		if n > 0 && x.log != "" {
			kept.Write(buf[wire.FrameHead : wire.FrameHead+n])
		}
		if n > 0 {
			wire.PutHead(buf[:], o.kind, n)
			x.chunks <- chunk{buf[:wire.FrameHead+n], written}
			<-written
		}
		if rest.over(err, ended) {
			return
		}
	}
}

// drain bounds the reading after the program has ended.
type drain struct {
	until   time.Time
	pending int // bytes that were in the pipe when this began
	read    int
}

// more says whether to read on, for as long as the output is not still.
func (d *drain) more(f *os.File) bool {
	now := time.Now()
	if d.until.IsZero() {
		*d = drain{until: now.Add(drainTime), pending: waiting(f)}
	}
	if now.After(d.until) && d.read >= d.pending {
		return false
	}
	f.SetReadDeadline(now.Add(quiet))
	return true
}

// over says whether err ends the reading: not a deadline that has passed, in a freeze or for want of the processor,
// before the bytes of that moment could be read.
func (d *drain) over(err error, ended bool) bool {
	late := errors.Is(err, os.ErrDeadlineExceeded)
	return err != nil && (!late || ended && d.read >= d.pending)
}

// waiting is how many bytes are in a pipe.
func waiting(f *os.File) (n int) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	c.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// feed gives the stream's input to the program. A program that does not read it does not hold up the sender.
func (x *execution) feed(frames *wire.FrameReader) {
	broken := false
	for {
		t, b, err := frames.Next()
		if err != nil || t != wire.FrameStdin {
			break
		}
		if !broken {
			_, err = x.stdin.Write(b)
			broken = err != nil
		}
	}
	if !x.tty { // a terminal's end of input is a character
		x.stdin.Close()
	}
}

// buffer has room for a frame.
type buffer [wire.FrameHead + wire.MaxFrame]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// on serves a request about one command.
func (e *execs) on(serve func(r *http.Request, p *process) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := e.find(r.PathValue("id"))
		if err == nil {
			err = serve(r, p)
		}
		if err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func serveSignal(r *http.Request, p *process) error {
	name := r.URL.Query().Get("name")
	if wire.CheckSignal(name) != nil {
		return problem(wire.CodeInvalid, "There is no such signal.")
	}
	return p.signal(name)
}

func serveResize(r *http.Request, p *process) error {
	cols, _ := strconv.Atoi(r.URL.Query().Get("cols"))
	rows, _ := strconv.Atoi(r.URL.Query().Get("rows"))
	if wire.CheckSize(cols, rows) != nil {
		return problem(wire.CodeInvalid, "A terminal cannot have that size.")
	}
	return p.resize(cols, rows)
}
