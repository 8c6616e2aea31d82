package tty

import (
	"bytes"
	"strconv"

	"sandboxd/internal/text"
)

// effect is how an escape sequence is treated.
type effect uint8

const (
	keep    effect = iota // everyone sees it, and a new viewer does
	live                  // everyone sees it now; a new viewer must not (a notification)
	query                 // the terminal answers: one viewer only, and never in a replay, or the answer is typed twice
	toAlt                 // the alternate screen begins
	fromAlt               // the alternate screen ends
	wipe                  // the terminal is reset
)

// interpret applies a whole escape sequence to m and says how it is treated.
func (m *modes) interpret(seq []byte) effect {
	if len(seq) < 2 {
		return keep
	}
	switch seq[1] {
	case '[':
		return m.csi(seq)
	case ']':
		return m.osc(seq)
	case 'P':
		return dcs(seq)
	case '_', '^', 'X':
		return live
	case 'Z':
		return query
	case 'c':
		*m = freshModes()
		return wipe
	case '=', '>':
		m.keypad = seq[1] == '='
	case '(':
		m.charset = ""
		if len(seq) == 3 && seq[2] != 'B' {
			m.charset = string(seq)
		}
	}
	return keep
}

// csi reads ESC [ prefix params intermediates final.
func (m *modes) csi(seq []byte) effect {
	final := seq[len(seq)-1]
	body := seq[2 : len(seq)-1]
	var prefix byte
	if len(body) > 0 && body[0] >= '<' && body[0] <= '?' {
		prefix, body = body[0], body[1:]
	}
	params := bytes.TrimRight(body, " !\"#$%&'()*+,-./")
	inter := string(body[len(params):])
	if isQuery(prefix, params, inter, final) {
		return query
	}
	switch string(prefix) + inter + string(final) {
	case "?h", "?l":
		return m.setPrivates(params, final == 'h')
	case "\x00h", "\x00l":
		m.setANSI(params, final == 'h')
	case "\x00m":
		m.style.apply(params)
	case "\x00r":
		m.region = bounded(seq, 16)
	case "\x00 q":
		m.cursor = bounded(seq, 16)
	case "\x00!p":
		m.softReset()
	case "\x00t":
		return windowOp(params)
	}
	return keep
}

// isQuery reports whether a terminal answers this control sequence.
func isQuery(prefix byte, params []byte, inter string, final byte) bool {
	switch {
	case final == 'c' && inter == "", final == 'n' && inter == "":
		return true
	case final == 'p' && inter == "$", final == 'w' && inter == "$": // DECRQM, DECRQPSR
		return true
	case final == 'x' && inter == "", final == 'y' && inter == "*": // DECREQTPARM, DECRQCRA
		return true
	case final == 'q' && prefix == '>', final == 'u' && prefix == '?', final == 'm' && prefix == '?':
		return true // XTVERSION, keyboard protocols
	case final == 't' && prefix == 0 && inter == "":
		n, _ := strconv.Atoi(string(firstParam(params)))
		return n == 11 || n >= 13 && n <= 21
	}
	return false
}

// windowOp: titles may be pushed and popped; the window itself is the viewer's.
func windowOp(params []byte) effect {
	switch string(firstParam(params)) {
	case "22", "23":
		return keep
	}
	return live
}

func (m *modes) setPrivates(params []byte, on bool) effect {
	out := keep
	for p := range bytes.SplitSeq(params, []byte(";")) {
		n, _ := strconv.Atoi(string(p))
		switch n {
		case 47, 1047, 1049:
			out = fromAlt
			if on {
				out = toAlt
			}
		case 2026:
			if out == keep {
				out = live
			}
		}
		m.setPrivate(n, on)
	}
	return out
}

func (m *modes) setANSI(params []byte, on bool) {
	for p := range bytes.SplitSeq(params, []byte(";")) {
		switch string(p) {
		case "4":
			m.insert = on
		case "20":
			m.linefeed = on
		}
	}
}

// osc reads ESC ] number ; text BEL (or ESC \).
func (m *modes) osc(seq []byte) effect {
	body := bytes.TrimSuffix(bytes.TrimSuffix(seq[2:], []byte{bel}), []byte{esc, '\\'})
	number, rest, _ := bytes.Cut(body, []byte(";"))
	switch string(number) {
	case "0", "2":
		m.title = text.OneLine(string(rest), maxTitle)
		return live // restore tells a new viewer
	case "1", "7":
		return live
	case "4", "5", "10", "11", "12", "13", "14", "17", "19":
		if bytes.Contains(rest, []byte("?")) {
			return query
		}
	case "8":
		return keep
	case "52":
		return query // to one viewer: it is that viewer's clipboard
	case "9", "99", "133", "633", "777", "1337":
		return live
	}
	return keep
}

func dcs(seq []byte) effect {
	params := bytes.TrimLeft(seq[2:], "0123456789;")
	if bytes.HasPrefix(params, []byte("$q")) || bytes.HasPrefix(params, []byte("+q")) {
		return query
	}
	return live
}

func firstParam(params []byte) []byte {
	first, _, _ := bytes.Cut(params, []byte(";"))
	return first
}

func bounded(seq []byte, limit int) string {
	if len(seq) > limit {
		return ""
	}
	return string(seq)
}
