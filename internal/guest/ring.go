package guest

import (
	"bytes"
	"sync"
)

// ringSize is how much of a program's output is kept.
const ringSize = 64 << 10

// ring keeps the last ringSize bytes that were written to it. Safe for concurrent use.
type ring struct {
	mu      sync.Mutex
	buf     []byte // grows beyond ringSize by a quarter before its beginning is dropped
	dropped bool   // a part was
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if n > ringSize {
		p, r.dropped = p[n-ringSize:], true
	}
	if over := len(r.buf) + len(p) - ringSize; over > ringSize/4 {
		r.buf, r.dropped = append(r.buf[:0], r.buf[min(over, len(r.buf)):]...), true
	}
	r.buf = append(r.buf, p...)
	return n, nil
}

// bytes gives a copy of all that is kept, from the beginning of a line if a part was dropped.
func (r *ring) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	over := max(0, len(r.buf)-ringSize)
	kept := r.buf[over:]
	if i := bytes.IndexByte(kept, '\n'); i >= 0 && (r.dropped || over > 0) {
		kept = kept[i+1:]
	}
	return bytes.Clone(kept)
}
