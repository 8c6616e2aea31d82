package guest

import (
	"bytes"
	"sync"
)

// ringSize is how much of a service's output is kept.
const ringSize = 64 << 10

// ring keeps the last ringSize bytes that were written to it. Safe for concurrent use.
type ring struct {
	mu    sync.Mutex
	buf   []byte        // grows beyond ringSize by a quarter before its beginning is dropped
	end   uint64        // how many bytes were ever written
	news  chan struct{} // closed at the next write, or when it is over; nil while there is no waiter
	ended bool          // nothing more will be written
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	r.end += uint64(n)
	if n > ringSize {
		p = p[n-ringSize:]
	}
	if len(r.buf)+len(p) > ringSize*5/4 {
		r.buf = append(r.buf[:0], r.buf[max(0, len(r.buf)+len(p)-ringSize):]...)
	}
	r.buf = append(r.buf, p...)
	r.tell()
	return n, nil
}

// close says that nothing more will be written.
func (r *ring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.tell()
}

// tell wakes those who wait for news. It needs mu.
func (r *ring) tell() {
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// bytes gives a copy of all that is kept, from the beginning of a line if a part was dropped.
func (r *ring) bytes() []byte {
	b, _, _ := r.since(0, 2*ringSize)
	return b
}

// since gives a copy of the bytes from a position on, most bytes at most, and the position behind them. Bytes that were
// dropped are left out, up to the beginning of a line. When there are none, news is closed when there may be; it is nil when
// none will come.
func (r *ring) since(from uint64, most int) (b []byte, next uint64, news <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.buf[max(0, len(r.buf)-ringSize):]
	if first := r.end - uint64(len(kept)); from < first {
		from = first
		if i := bytes.IndexByte(kept, '\n'); i >= 0 {
			from += uint64(i) + 1
		}
	}
	kept = kept[len(kept)-int(r.end-from):]
	if len(kept) > 0 {
		kept = kept[:min(len(kept), most)]
		return bytes.Clone(kept), from + uint64(len(kept)), nil
	}
	if r.ended {
		return nil, from, nil
	}
	if r.news == nil {
		r.news = make(chan struct{})
	}
	return nil, from, r.news
}
