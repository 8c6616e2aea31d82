package program

import (
	"context"
	"strconv"
	"sync"

	"golang.org/x/time/rate"

	"sandboxd/internal/acp"
)

// ackEvery is how many bytes of output are taken before the sandbox is told to forget them.
const ackEvery = 256 << 10

// How much of what a program writes is read, in lines and KiB together: one that floods keeps no core busy.
const (
	pace  = 4000   // in a second
	burst = 40_000 // at once, as when a long session is loaded
)

// connection is the pipe of a program, with what reads from it and writes to it.
type connection struct {
	pipe    Pipe
	cancel  context.CancelFunc
	in      chan read
	out     chan string
	wrote   chan wrote
	acks    chan int64
	all     sync.WaitGroup
	writing bool
	acking  bool
}

// read is what came from the program: complete lines, and why there are no more.
type read struct {
	lines [][]byte
	bytes int
	err   error
}

// wrote says how much of what was for the program it has, or that output was forgotten.
type wrote struct {
	n     int
	err   error
	acked int64
}

func itoa(n int) string { return strconv.Itoa(n) }

// connect connects to the program where the run is.
func (d *Driver) connect(ctx context.Context, r *run) (*connection, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	pipe, err := d.c.Programs.Attach(life, r.t.Conversation(), r.s.Program, Offsets{Output: r.s.Output, Input: r.s.Input})
	if err != nil {
		cancel()
		return nil, err
	}
	c := &connection{pipe: pipe, cancel: cancel, in: make(chan read), out: make(chan string, 1), wrote: make(chan wrote), acks: make(chan int64, 1)}
	c.all.Go(func() { c.read(life) })
	c.all.Go(func() { c.writeAll(life) })
	c.all.Go(func() { c.ackAll(life) })
	return c, nil
}

// disconnect leaves the program alone.
func (r *run) disconnect() {
	if r.conn == nil {
		return
	}
	r.conn.cancel()
	r.conn.pipe.Close()
	r.conn.all.Wait()
	r.conn = nil
}

// reads gives what the program writes; nil, from which nothing comes, without a connection.
func (c *connection) reads() <-chan read {
	if c == nil {
		return nil
	}
	return c.in
}

func (c *connection) written() <-chan wrote {
	if c == nil {
		return nil
	}
	return c.wrote
}

func (c *connection) read(life context.Context) {
	limit := rate.NewLimiter(pace, burst)
	for lines := acp.NewLines(c.pipe); ; {
		var r read
		r.lines, r.bytes, r.err = lines.Next()
		if err := limit.WaitN(life, min(len(r.lines)+r.bytes>>10, burst)); err != nil {
			return // life is over
		}
		select {
		case c.in <- r:
		case <-life.Done():
			return
		}
		if r.err != nil {
			return
		}
	}
}

// write has a text written.
func (c *connection) write(s string) {
	c.writing = true
	c.out <- s
}

func (c *connection) ack(before int64) {
	c.acking = true
	c.acks <- before
}

func (c *connection) writeAll(life context.Context) {
	for {
		select {
		case s := <-c.out:
			n, err := c.pipe.Write([]byte(s))
			c.tell(life, wrote{n: n, err: err})
		case <-life.Done():
			return
		}
	}
}

func (c *connection) ackAll(life context.Context) {
	for {
		select {
		case before := <-c.acks:
			c.tell(life, wrote{acked: before, err: c.pipe.Ack(before)})
		case <-life.Done():
			return
		}
	}
}

func (c *connection) tell(life context.Context, w wrote) {
	select {
	case c.wrote <- w:
	case <-life.Done():
	}
}

// wrote notes what the program has. When it takes no more, Read tells why.
func (r *run) wrote(w wrote) {
	if w.acked > 0 {
		r.conn.acking = w.err != nil // not again, then
		r.s.Acked = w.acked
		return
	}
	r.conn.writing = w.err != nil
	r.together(func() {
		r.s.Outbox = r.s.Outbox[w.n:]
		r.s.Input += int64(w.n)
	})
	if r.s.Outbox == "" {
		r.owed = 0
	}
}
