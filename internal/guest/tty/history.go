package tty

import (
	"slices"
	"unicode/utf8"
)

// How much output a session keeps for viewers to come.
const (
	mainBytes  = 1 << 20   // the ordinary screen with its scrollback
	altBytes   = 256 << 10 // the alternate screen, since it began; the program redraws it anyway
	blockBytes = 32 << 10  // is dropped at once
)

// block is a run of output together with the modes that hold at its beginning, so that everything before it can be
// forgotten.
type block struct {
	modes modes
	bytes []byte
}

// outputLog is bounded output, the oldest forgotten first. A block begins neither inside of a character nor of a sequence.
type outputLog struct {
	limit  int
	size   int
	blocks []block
}

// write adds one piece; m is the state before it.
func (r *outputLog) write(p []byte, whole bool, m *modes) {
	if !whole && len(r.blocks) > 0 {
		p = r.complete(p)
	}
	for len(p) > 0 {
		b := r.last(m, len(p), whole)
		n := len(p)
		if room := blockBytes - len(b.bytes); !whole && n > room {
			n = characters(p, room)
		}
		b.bytes = append(b.bytes, p[:n]...)
		r.size += n
		p = p[n:]
	}
	r.forget()
}

// complete adds the rest of a character that the last read has cut.
func (r *outputLog) complete(p []byte) []byte {
	n := 0
	for n < len(p) && n < utf8.UTFMax-1 && !utf8.RuneStart(p[n]) {
		n++
	}
	b := &r.blocks[len(r.blocks)-1]
	b.bytes = append(b.bytes, p[:n]...)
	r.size += n
	return p[n:]
}

// last is the block to write to: a new one when the last has no room.
func (r *outputLog) last(m *modes, need int, whole bool) *block {
	if n := len(r.blocks); n > 0 {
		room := blockBytes - len(r.blocks[n-1].bytes)
		if room >= need || !whole && room >= utf8.UTFMax {
			return &r.blocks[n-1]
		}
	}
	r.blocks = append(r.blocks, block{modes: *m})
	return &r.blocks[len(r.blocks)-1]
}

func (r *outputLog) forget() {
	drop := 0
	for r.size > r.limit+blockBytes && drop < len(r.blocks)-1 {
		r.size -= len(r.blocks[drop].bytes)
		drop++
	}
	r.blocks = slices.Delete(r.blocks, 0, drop)
}

// characters is the largest n ≤ limit at which no UTF-8 character is cut, and at least 1.
func characters(p []byte, limit int) int {
	for back := 0; back < utf8.UTFMax && limit-back > 0; back++ {
		if utf8.RuneStart(p[limit-back]) {
			return limit - back
		}
	}
	return limit
}

// history is the kept output of a session: enough to give a new viewer the screen of the others, and its scrollback. The
// alternate screen has a log of its own, so that an editor or a monitor does not push out the ordinary screen behind it.
type history struct {
	modes modes
	main  outputLog
	alt   *outputLog // nil on the ordinary screen
	enter string     // the sequence that began the alternate screen
}

func newHistory() *history {
	return &history{modes: freshModes(), main: outputLog{limit: mainBytes}}
}

// add notes one piece of output and says how it is treated.
func (h *history) add(k kind, p []byte) effect {
	switch k {
	case chars:
		h.log().write(p, false, &h.modes)
		return keep
	case escape:
		return h.addSequence(p)
	default: // a bell, or a part of something over-long, is not for later
		return live
	}
}

func (h *history) addSequence(seq []byte) effect {
	before := h.modes
	e := h.modes.interpret(seq)
	switch e {
	case keep:
		h.log().write(seq, true, &before)
	case toAlt:
		h.enterAlt(seq)
	case fromAlt:
		h.leaveAlt()
	case wipe:
		h.main, h.alt = outputLog{limit: mainBytes}, nil
	}
	return e
}

func (h *history) log() *outputLog {
	if h.alt != nil {
		return h.alt
	}
	return &h.main
}

func (h *history) enterAlt(seq []byte) {
	if h.alt == nil {
		h.alt, h.enter = &outputLog{limit: altBytes}, string(seq)
	}
}

// leaveAlt goes back to the ordinary screen, and notes there which modes were changed meanwhile.
func (h *history) leaveAlt() {
	if h.alt == nil {
		return
	}
	h.alt = nil
	h.main.write(h.modes.restore(nil), true, &h.modes)
}

// replay is the bytes that give any terminal the present screen.
func (h *history) replay() []byte {
	out := make([]byte, 0, h.main.size+4096)
	out = append(out, "\x1bc"...)
	out = h.main.replay(out)
	if h.alt != nil {
		out = append(out, h.enter...)
		out = h.alt.replay(out)
	}
	return h.modes.restore(out)
}

func (r *outputLog) replay(out []byte) []byte {
	if len(r.blocks) == 0 {
		return out
	}
	out = r.blocks[0].modes.start(out)
	for _, b := range r.blocks {
		out = append(out, b.bytes...)
	}
	return out
}
