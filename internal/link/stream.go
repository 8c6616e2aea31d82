package link

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"
)

// A stream has two buffers, so that one is filled while the other is emptied. They are small until one is found full.
const (
	firstPiece  = 4 << 10
	pieceSize   = 128 << 10
	piecesAhead = 2
)

// stream reads a reply's body in a goroutine of its own: reading may be held up longer than who reads wants to wait, because
// HTTP/2 makes room for more by writing, which a guest that does not read holds up.
type stream struct {
	session  *transport
	reply    *reply
	ctx      context.Context // the caller's
	patience time.Duration   // for the next bytes; 0 means for ever
	until    time.Time       // for all of it; the zero time means for ever
	filled   chan piece
	empty    chan []byte
	now      piece
	rest     []byte // of now
}

// piece is some bytes, or why there are none.
type piece struct {
	buf []byte
	n   int
	err error
}

func (s *transport) newStream(ctx context.Context, r *reply) (*stream, error) {
	t := &stream{session: s, reply: r, ctx: ctx, patience: s.pace.reply,
		filled: make(chan piece, piecesAhead), empty: make(chan []byte, piecesAhead)}
	if !s.begin(t.fill) {
		return nil, s.failed(ctx, errDropped)
	}
	return t, nil
}

// fill reads until the end. Its buffers are left to the collector, because a reader that gave the stream up may still look at them.
func (t *stream) fill() {
	for range piecesAhead {
		t.empty <- make([]byte, firstPiece)
	}
	for size := firstPiece; ; {
		var buf []byte
		select {
		case buf = <-t.empty:
		case <-t.reply.ctx.Done():
			return
		}
		if len(buf) < size {
			buf = make([]byte, size)
		}
		n, err := t.reply.Body.Read(buf)
		t.filled <- piece{buf, n, err} // never waits: there are as many places as buffers
		if err != nil {
			return
		}
		if n == len(buf) {
			size = pieceSize
		}
	}
}

// Read reads, until the caller's ctx ends, the stream is closed or the guest is silent for too long.
func (t *stream) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.now.err != nil {
			return 0, t.now.err
		}
		if t.now.buf != nil {
			t.empty <- t.now.buf
			t.now.buf = nil
		}
		if err := t.await(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// await waits for the next piece.
func (t *stream) await() error {
	select {
	case t.now = <-t.filled:
		t.rest = t.now.buf[:t.now.n]
		return nil
	default:
	}
	left := t.patience
	if !t.until.IsZero() {
		left = max(min(left, time.Until(t.until)), 1)
	}
	var late <-chan time.Time
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case t.now = <-t.filled:
		t.rest = t.now.buf[:t.now.n]
		return nil
	case <-t.reply.ctx.Done():
		return context.Cause(t.reply.ctx)
	case <-late:
		return errSlow
	}
}

// Close ends the stream. It may be called more than once.
func (t *stream) Close() error {
	t.reply.close()
	return nil
}

// errAnswered ends sending when the guest has given its final answer.
var errAnswered = errors.New("the guest has answered")

// send sends body and gives the payload of the reply's end. HTTP/2 reads body by itself, so that each byte is copied once
// only; nobody reads it any more when send returns.
func (s fileClient) send(ctx context.Context, verb string, query url.Values, body io.Reader) ([]byte, error) {
	from := newFeed(body)
	r, err := s.askFiles(ctx, verb, query, from)
	if err != nil {
		if own := from.stop(); own != nil {
			err = own
		}
		return nil, err
	}
	end, err := r.end()
	r.Close()
	if own := from.stop(); own != nil {
		return nil, own
	}
	return end, err
}

// feed is a body that HTTP/2 reads.
type feed struct {
	turn chan struct{} // held while reading
	body io.Reader
	over bool
	err  error // of body, but for its end
}

func newFeed(body io.Reader) *feed { return &feed{turn: make(chan struct{}, 1), body: body} }

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.over {
		return 0, errAnswered
	}
	n, err := f.body.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// stop ends reading, waits for a running Read, and gives the body's error.
func (f *feed) stop() error {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	f.over = true
	return f.err
}
