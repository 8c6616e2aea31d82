package tty

import (
	"strconv"
)

// modes is the state of a terminal besides its characters, as far as a new viewer needs it. It is a value;
// its strings are bounded, because a program in the sandbox chooses them.
type modes struct {
	private  [len(privateModes)]bool
	keypad   bool   // application keypad
	insert   bool   // insert mode
	linefeed bool   // new line mode
	cursor   string // DECSCUSR, the cursor's shape
	region   string // DECSTBM, the scroll region
	charset  string // G0, as selected
	style    style
	title    string
}

// privateModes are the DEC private modes that are kept, with the ones that are on in a fresh terminal first.
// The alternate screen (47, 1047, 1049) is kept by history; synchronized output (2026) ends by itself.
var privateModes = [...]int{7, 25, 1, 9, 12, 45, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2031}

// onByDefault is how many of privateModes are on in a fresh terminal: auto-wrap and the cursor.
const onByDefault = 2

const maxTitle = 256

func freshModes() modes {
	var m modes
	for i := range onByDefault {
		m.private[i] = true
	}
	return m
}

// setPrivate notes one DEC private mode.
func (m *modes) setPrivate(number int, on bool) {
	for i, n := range privateModes {
		if n == number {
			m.private[i] = on
		}
	}
}

// softReset is DECSTR: most modes go back to their start, the title and the mouse stay.
func (m *modes) softReset() {
	m.setPrivate(25, true)
	m.setPrivate(1, false)
	m.insert, m.keypad = false, false
	m.style, m.region, m.charset = style{}, "", ""
}

// restore is the sequences that bring a terminal in any state to m, except for the scroll region, whose setting
// moves the cursor.
func (m *modes) restore(to []byte) []byte {
	for i, n := range privateModes {
		to = append(to, "\x1b[?"...)
		to = strconv.AppendInt(to, int64(n), 10)
		to = append(to, pick(m.private[i], "h", "l")...)
	}
	to = append(to, pick(m.keypad, "\x1b=", "\x1b>")...)
	to = append(to, pick(m.insert, "\x1b[4h", "\x1b[4l")...)
	to = append(to, pick(m.linefeed, "\x1b[20h", "\x1b[20l")...)
	to = append(to, m.cursor...)
	to = append(to, pick(m.charset == "", "\x1b(B", m.charset)...)
	to = m.style.append(to)
	if m.title != "" {
		to = append(append(append(to, "\x1b]2;"...), m.title...), esc, '\\')
	}
	return to
}

// start is the sequences that bring a fresh terminal to m; the cursor is at home afterwards.
func (m *modes) start(to []byte) []byte {
	return append(m.restore(to), m.region...)
}

func pick[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}
