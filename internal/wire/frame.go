package wire

import (
	"errors"
	"fmt"
	"io"
)

// FrameType says what a frame holds.
type FrameType uint8

// The frames. A frame is one byte of type, three bytes of payload length (big endian), and the payload.
const (
	FrameStart    FrameType = 1 // to the guest, first: ExecStart as JSON
	FrameStdin    FrameType = 2 // to the guest: input. The end of the request's body is the end of the input.
	FrameStdout   FrameType = 16
	FrameStderr   FrameType = 17
	FrameExit     FrameType = 18 // last: exit code
	FrameData     FrameType = 32 // bytes of a port or a terminal
	FramePorts    FrameType = 48 // from the guest: Ports as JSON
	FrameLines    FrameType = 49 // from the guest: whole lines, see AppendLogLine
	FrameDataDone FrameType = 33 // empty: the port's side has sent all, but may still read; the archive for a mover is complete
	FrameReport   FrameType = 64 // from a mover: MoverReport as JSON
)

const (
	// FrameHead is the size of a frame's head.
	FrameHead = 4
	// MaxFrame is the largest payload of every frame but FrameStart.
	MaxFrame = 32 << 10
	// MaxReport is that of FrameReport: a list of a thousand losses with long paths.
	MaxReport = 8 << 20
)

// ErrFrame means that the bytes are no frame, or one that is larger than its type allows.
var ErrFrame = errors.New("malformed frame")

func (t FrameType) limit() int {
	switch t {
	case FrameStart:
		return MaxStart
	case FramePorts:
		return MaxPorts
	case FrameReport:
		return MaxReport
	case FrameStdin, FrameStdout, FrameStderr, FrameData, FrameLines:
		return MaxFrame
	case FrameExit:
		return 4
	}
	return 0
}

func (t FrameType) known() bool { return t == FrameDataDone || t.limit() > 0 }

// PutHead writes the head of a frame with a payload of n bytes into b[:FrameHead].
func PutHead(b []byte, t FrameType, n int) {
	_ = b[FrameHead-1]
	b[0], b[1], b[2], b[3] = byte(t), byte(n>>16), byte(n>>8), byte(n)
}

// AppendFrame appends a frame. The caller keeps the payload within the type's bound.
func AppendFrame(b []byte, t FrameType, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(t), byte(n>>16), byte(n>>8), byte(n))
	return append(b, payload...)
}

// FrameReader reads frames from a stream. It holds at most one payload, of the size its type allows, and grows only as
// bytes arrive, so that an announced length costs nothing. Not safe for concurrent use.
type FrameReader struct {
	r    io.Reader
	head [FrameHead]byte
	buf  []byte
}

// NewFrameReader reads from r, which it does not buffer ahead.
func NewFrameReader(r io.Reader) *FrameReader { return &FrameReader{r: r} }

// Head reads the head of the next frame and checks it. io.EOF means a clean end between frames. The caller reads the n
// bytes of payload itself.
func (f *FrameReader) Head() (t FrameType, n int, err error) {
	if _, err := io.ReadFull(f.r, f.head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, 0, fmt.Errorf("%w: cut off", ErrFrame)
		}
		return 0, 0, err
	}
	t = FrameType(f.head[0])
	n = int(f.head[1])<<16 | int(f.head[2])<<8 | int(f.head[3])
	if !t.known() || n > t.limit() {
		return 0, 0, fmt.Errorf("%w: type %d, %d bytes", ErrFrame, t, n)
	}
	return t, n, nil
}

// Next reads the next frame. The payload is valid until the next call. io.EOF means a clean end between frames.
func (f *FrameReader) Next() (FrameType, []byte, error) {
	t, n, err := f.Head()
	if err != nil {
		return 0, nil, err
	}
	const step = 64 << 10 // of growth, so that memory follows the bytes really sent
	b := f.buf[:0]
	for len(b) < n {
		from, to := len(b), min(n, len(b)+step)
		if cap(b) < to {
			b = append(make([]byte, 0, max(to, min(2*cap(b), n))), b...)
		}
		b = b[:to]
		if _, err := io.ReadFull(f.r, b[from:to]); err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: cut off", ErrFrame)
			}
			return 0, nil, err
		}
	}
	f.buf = b[:0]
	return t, b, nil
}
