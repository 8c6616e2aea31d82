package tty

import "bytes"

// maxSequence bounds an escape sequence that is held back until it is whole. A longer one (an image, a large
// clipboard) is passed on in pieces and not interpreted.
const maxSequence = 8 << 10

// kind is that of a piece of a terminal's output.
type kind uint8

const (
	chars    kind = iota // characters and control characters that move the cursor
	bell                 // BEL outside of a sequence
	escape               // a whole escape sequence of at most maxSequence bytes
	fragment             // a part of an over-long control string
)

// scanner cuts a terminal's output into pieces. What it is given comes out in order and unchanged; only an unfinished
// sequence is held back until the next call. The bytes of a piece are valid during the call of emit only.
type scanner struct {
	state   state
	long    bool   // the sequence under way has been passed on in part
	pending []byte // the sequence being read
}

type state uint8

const (
	ground       state = iota
	afterEsc           // ESC was read
	intermediate       // ESC and intermediate bytes
	inCSI              // ESC [
	inString           // OSC, DCS, APC, PM or SOS
	inStringEsc        // ESC inside of a string
)

const (
	esc = 0x1b
	bel = 0x07
	can = 0x18
	sub = 0x1a
)

// scan cuts p and calls emit for every piece that is complete.
func (s *scanner) scan(p []byte, emit func(kind, []byte)) {
	for len(p) > 0 {
		if s.state == ground {
			p = s.scanText(p, emit)
		} else {
			p = s.scanSequence(p, emit)
		}
	}
}

// scanText emits everything up to the next sequence and gives the rest.
func (s *scanner) scanText(p []byte, emit func(kind, []byte)) []byte {
	end := bytes.IndexByte(p, esc)
	if end < 0 {
		emitText(p, emit)
		return nil
	}
	emitText(p[:end], emit)
	s.begin()
	return p[end+1:]
}

func emitText(p []byte, emit func(kind, []byte)) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, bel)
		if i < 0 {
			emit(chars, p)
			return
		}
		if i > 0 {
			emit(chars, p[:i])
		}
		emit(bell, p[i:i+1])
		p = p[i+1:]
	}
}

// scanSequence continues the current sequence and gives the rest after its end.
func (s *scanner) scanSequence(p []byte, emit func(kind, []byte)) []byte {
	for i, c := range p {
		switch {
		case s.state == inStringEsc && c != '\\': // ESC ends a string also when it begins the next sequence
			s.pending = s.pending[:len(s.pending)-1]
			s.finish(emit)
			s.begin()
			if c == esc {
				s.abandon(emit)
				continue
			}
		case c == esc && s.state != inString: // a sequence that is cut off means nothing
			s.abandon(emit)
			continue
		}
		s.pending = append(s.pending, c)
		if s.state = s.next(c); s.state == ground {
			s.finish(emit)
			return p[i+1:]
		}
		if len(s.pending) >= maxSequence && s.state != inStringEsc {
			emit(fragment, s.pending)
			s.pending, s.long = s.pending[:0], true
		}
	}
	return nil
}

func (s *scanner) begin() {
	s.state, s.long, s.pending = afterEsc, false, append(s.pending[:0], esc)
}

// abandon passes on a sequence that is not to be interpreted, and begins the next.
func (s *scanner) abandon(emit func(kind, []byte)) {
	s.long = true
	s.finish(emit)
	s.begin()
}

// finish emits the sequence that was read and keeps no large buffer for the next.
func (s *scanner) finish(emit func(kind, []byte)) {
	k := escape
	if s.long {
		k = fragment
	}
	if len(s.pending) > 0 {
		emit(k, s.pending)
	}
	s.pending = s.pending[:0]
	if cap(s.pending) > 256 {
		s.pending = nil
	}
}

// next is the state after c, as a terminal of the VT500 line has it.
func (s *scanner) next(c byte) state {
	if c == can || c == sub {
		return ground
	}
	switch s.state {
	case afterEsc:
		return nextAfterEsc(c)
	case intermediate:
		if c >= 0x30 && c <= 0x7e {
			return ground
		}
	case inCSI:
		if c >= 0x40 && c <= 0x7e {
			return ground
		}
	case inString:
		if c == bel {
			return ground
		}
		if c == esc {
			return inStringEsc
		}
	case inStringEsc:
		return ground // only ESC \ comes here
	}
	return s.state
}

func nextAfterEsc(c byte) state {
	switch {
	case c == '[':
		return inCSI
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X':
		return inString
	case c >= 0x20 && c <= 0x2f:
		return intermediate
	case c < 0x20:
		return afterEsc
	default:
		return ground
	}
}
