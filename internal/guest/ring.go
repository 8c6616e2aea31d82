package guest

import "sync"

// ringSize is how much of a service's output is kept.
const ringSize = 64 << 10

// ring keeps the last ringSize bytes that were written to it. Safe for concurrent use.
type ring struct {
	mu  sync.Mutex
	buf []byte // grows to twice ringSize before its first half is dropped
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if n > ringSize {
		p = p[n-ringSize:]
	}
	if len(r.buf)+len(p) > 2*ringSize {
		r.buf = append(r.buf[:0], r.buf[len(r.buf)-ringSize:]...)
	}
	r.buf = append(r.buf, p...)
	return n, nil
}

// bytes gives a copy of what is kept, from the beginning of a line where something was dropped.
func (r *ring) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buf
	if len(b) > ringSize {
		b = b[len(b)-ringSize:]
		for i, c := range b {
			if c == '\n' {
				b = b[i+1:]
				break
			}
		}
	}
	return append([]byte(nil), b...)
}
