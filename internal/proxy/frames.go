package proxy

import (
	"encoding/binary"

	"sandboxd/internal/wire"
)

// frames parses one direction of a WebSocket, however its frames are cut into pieces. It neither holds nor changes a byte. From the
// first violation of the protocol on, everything is content.
type frames struct {
	head   [14]byte
	have   int    // bytes of the head so far
	left   uint64 // bytes of the frame's payload still to come
	mask   [maskLength]byte
	at     int  // bytes of the frame's payload so far, modulo the mask's length
	data   bool // the frame is a message's, not a ping, pong or close
	open   bool // more frames of the message will come
	first  bool // the message's first byte is still to come
	typed  bool // the message is a terminal's input
	broken bool
	inner  *ideProtocol // parses VS Code's messages; nil for all others
}

// piece describes some bytes of the stream.
type piece struct {
	content int  // bytes of messages
	data    bool // they have part of a message, even of an empty one
	typed   bool // they have part of a terminal's input
}

// Parts of a frame's head, RFC 6455 section 5.2.
const (
	frameFin       = 0x80
	frameDeflated  = 0x40 // the message is compressed, and its beginning unreadable
	frameOpcode    = 0x0f
	frameControl   = 0x08
	frameMasked    = 0x80
	frameLength    = 0x7f
	frameLength16  = 126
	frameLength64  = 127
	maxControl     = 125
	opContinuation = 0
	opBinary       = 2
	opPong         = 10
	maskLength     = 4
	shortHead      = 2
)

// read parses the next bytes of the stream.
func (f *frames) read(p []byte) piece {
	var out piece
	for len(p) > 0 {
		switch {
		case f.broken:
			return piece{content: out.content + len(p), data: true, typed: true}
		case f.left > 0:
			n := int(min(f.left, uint64(len(p))))
			f.payload(p[:n], &out)
			p = p[n:]
		default:
			f.head[f.have] = p[0]
			f.have++
			p = p[1:]
			if f.have == shortHead {
				f.broken = !f.valid()
			}
			if !f.broken && f.have == f.headLength() {
				f.begin(&out)
			}
		}
	}
	return out
}

func (f *frames) payload(p []byte, out *piece) {
	switch {
	case f.data && f.inner != nil:
		said := f.inner.read(p, f.mask, f.at)
		out.content += said
		out.data = out.data || said > 0
	case f.data:
		if f.first {
			f.first = false
			f.typed = f.typed || p[0]^f.mask[0] == wire.TTYInput
		}
		out.content += len(p)
		out.data = true
		out.typed = out.typed || f.typed
	}
	f.left -= uint64(len(p))
	f.at = (f.at + len(p)) % maskLength
}

// valid checks the first two bytes of a head.
func (f *frames) valid() bool {
	op, fin := f.head[0]&frameOpcode, f.head[0]&frameFin != 0
	switch {
	case op&frameControl != 0:
		return op <= opPong && fin && f.head[1]&frameLength <= maxControl
	case op == opContinuation:
		return f.open
	}
	return op <= opBinary && !f.open
}

// headLength is 0 as long as it is unknown.
func (f *frames) headLength() int {
	if f.have < shortHead {
		return 0
	}
	n := shortHead
	switch f.head[1] & frameLength {
	case frameLength16:
		n += 2
	case frameLength64:
		n += 8
	}
	if f.head[1]&frameMasked != 0 {
		n += maskLength
	}
	return n
}

// begin reads a complete head.
func (f *frames) begin(out *piece) {
	switch length := f.head[1] & frameLength; length {
	case frameLength16:
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case frameLength64:
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(length)
	}
	f.mask, f.at = [maskLength]byte{}, 0
	if f.head[1]&frameMasked != 0 {
		f.mask = [maskLength]byte(f.head[f.have-maskLength : f.have])
	}
	f.have = 0
	if f.broken = f.left>>63 != 0; f.broken {
		return
	}
	op := f.head[0] & frameOpcode
	if f.data = op&frameControl == 0; !f.data {
		return
	}
	f.open = f.head[0]&frameFin == 0
	if op != opContinuation {
		f.first, f.typed = true, f.head[0]&frameDeflated != 0
	}
	out.data = out.data || f.inner == nil
}

// rests reports whether the last frame and message are complete.
func (f *frames) rests() bool {
	return f.have == 0 && f.left == 0 && !f.open && !f.broken && (f.inner == nil || f.inner.rests())
}
