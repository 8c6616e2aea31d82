package guest

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"sandboxd/internal/wire"
)

// flow notes what goes through the gateway. Safe for concurrent use.
type flow struct {
	began    time.Time
	inFlight atomic.Int64
	last     atomic.Int64 // when a byte last flowed, as nanoseconds since began; 0 when none ever did
}

func (f *flow) begin() {
	f.inFlight.Add(1)
	f.touch()
}

func (f *flow) end() {
	f.touch()
	f.inFlight.Add(-1)
}

func (f *flow) touch() { f.last.Store(max(int64(time.Since(f.began)), 1)) }

func (f *flow) now() wire.DirectActivity {
	a := wire.DirectActivity{InFlight: int(f.inFlight.Load()), Idle: -1}
	if last := f.last.Load(); last > 0 {
		a.Idle = max(time.Since(f.began)-time.Duration(last), 0)
	}
	return a
}

// flowing is a body whose bytes count. The trailers that follow an answer's are scrubbed before anybody can see them.
type flowing struct {
	io.ReadCloser
	flow *flow
	res  *http.Response // nil for a request's
}

// Read reads.
func (b *flowing) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.flow.touch()
	}
	if err != nil {
		b.scrub()
	}
	return n, err
}

// Close scrubs too: closing may read what is left.
func (b *flowing) Close() error {
	err := b.ReadCloser.Close()
	b.scrub()
	return err
}

func (b *flowing) scrub() {
	if b.res != nil {
		scrubTrailer(b.res.Trailer)
	}
}

func (g *Guest) serveActivity(w http.ResponseWriter, _ *http.Request) {
	answer(w, &wire.Activity{Direct: g.gateway.flow.now()})
}
