package terminal

import "bytes"

const (
	esc = 0x1b
	bel = 0x07
)

// isReport says whether input is nothing but what a terminal says by itself: answers to a program's questions (what it is,
// where the cursor is, its colours) and whether its window has the focus. A forgotten page gives them for ever, to whatever
// asks: they are not a person's doing.
func isReport(p []byte) bool {
	for len(p) > 0 {
		n := reportLength(p)
		if n == 0 {
			return false
		}
		p = p[n:]
	}
	return true
}

// reportLength gives the length of the report that p begins with, 0 when it begins with none.
func reportLength(p []byte) int {
	if len(p) < 3 || p[0] != esc {
		return 0
	}
	switch p[1] {
	case '[':
		return controlLength(p)
	case ']', 'P': // OSC, DCS: no key sends them
		return stringLength(p)
	}
	return 0
}

// stringLength gives the length of a control string, to its terminator.
func stringLength(p []byte) int {
	at := bytes.IndexAny(p[2:], "\x1b\x07")
	switch {
	case at < 0:
		return 0
	case p[2+at] == bel:
		return 2 + at + 1
	case 2+at+1 < len(p) && p[2+at+1] == '\\':
		return 2 + at + 2
	}
	return 0
}

// controlLength gives the length of a control sequence that no key sends.
func controlLength(p []byte) int {
	end := 2
	for end < len(p) && p[end] >= 0x20 && p[end] < 0x40 {
		end++
	}
	if end == len(p) || !isAnswer(p[2:end], p[end]) {
		return 0
	}
	return end + 1
}

// isAnswer judges a control sequence by its parameters and its last byte.
func isAnswer(parameters []byte, last byte) bool {
	private := len(parameters) > 0 && parameters[0] >= '<'
	switch last {
	case 'I', 'O': // focus
		return len(parameters) == 0
	case 'R': // the cursor's place; F3 with Shift and the like looks like the first columns of the first row
		return private || len(parameters) > 0 && !(len(parameters) == 3 && parameters[0] == '1')
	case 'c', 'u': // what it is, how it sends keys
		return private
	case 'n', 't': // its state, its size
		return true
	case 'y': // a mode
		return bytes.HasSuffix(parameters, []byte("$"))
	}
	return false
}
