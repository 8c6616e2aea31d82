package views

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRuns bounds the elements that one hostile line can make. What comes after the last has no style.
const maxRuns = 256

// Run is a stretch of a line in one style.
type Run struct {
	Text  string
	Class string // "" for plain text
}

// Styled is a line of a program's output, ready to show.
type Styled struct {
	Runs []Run
	More bool // the line goes on
}

// Style makes a line ready to show: its colours become classes, and all other controls and what is not seen become signs, so that
// nothing in it acts. It takes the first limit bytes, about; 0 takes all.
func Style(line string, limit int) Styled {
	s := styler{}
	if limit > 0 && len(line) > limit {
		for limit > 0 && !utf8.RuneStart(line[limit]) {
			limit--
		}
		line, s.out.More = line[:limit], true
	}
	for line != "" {
		line = s.next(line)
	}
	s.end()
	return s.out
}

// styler makes runs.
type styler struct {
	out   Styled
	now   attributes
	style string // class of now
	class string // of the run under way
	text  strings.Builder
}

// next takes plain text, a character or a sequence off a line.
func (s *styler) next(line string) string {
	if line[0] == '\x1b' {
		return s.escape(line)
	}
	n := 0
	for n < len(line) && (line[n] >= ' ' && line[n] < 0x7f || line[n] == '\t') {
		n++
	}
	if n > 0 {
		s.add(s.style, line[:n])
		return line[n:]
	}
	r, n := utf8.DecodeRuneInString(line)
	if sign, ok := signOf(r, n); ok {
		s.add("log-sign", sign)
	} else {
		s.add(s.style, line[:n])
	}
	return line[n:]
}

// escape takes a sequence off a line: a style is taken in, any other is shown.
func (s *styler) escape(line string) string {
	if rest, ok := afterLink(line); ok {
		return rest
	}
	end := sequenceEnd(line)
	if end >= 3 && line[end-1] == 'm' && strings.Trim(line[2:end-1], "0123456789;:") == "" {
		s.now.take(line[2 : end-1])
		s.style = s.now.class()
		return line[end:]
	}
	s.add("log-sign", "‹ESC›"+line[1:end])
	return line[end:]
}

// afterLink takes off where a link of OSC 8 begins or ends, as ls and gcc write them: its text is shown, its address is not.
func afterLink(line string) (rest string, ok bool) {
	const longest = 4 << 10 // bytes
	if !strings.HasPrefix(line, "\x1b]8;") {
		return line, false
	}
	head := line[:min(len(line), longest)]
	for i := 4; i < len(head); i++ {
		switch {
		case head[i] == '\a':
			return line[i+1:], true
		case strings.HasPrefix(head[i:], "\x1b\\"):
			return line[i+2:], true
		case head[i] < ' ':
			return line, false
		}
	}
	return line, false
}

// sequenceEnd tells where the control sequence ends that a line begins with; for any other escape that is after its first byte.
func sequenceEnd(line string) int {
	if !strings.HasPrefix(line, "\x1b[") {
		return 1
	}
	const longest = 64 // bytes
	for i := 2; i < min(len(line), longest); i++ {
		switch c := line[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return 1
		}
	}
	return 1
}

func (s *styler) add(class, text string) {
	if len(s.out.Runs) >= maxRuns-2 {
		class = ""
	}
	if class != s.class {
		s.end()
		s.class = class
	}
	s.text.WriteString(text)
}

func (s *styler) end() {
	if s.text.Len() > 0 {
		s.out.Runs = append(s.out.Runs, Run{Text: s.text.String(), Class: s.class})
		s.text.Reset()
	}
}

// controls are the names of the control characters of ASCII. Few fonts have signs for them.
var controls = [...]string{"NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI",
	"DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"}

// signOf gives what is shown for a character that acts, or that is not seen. Joiners and variation selectors stay: scripts and
// pictures are made of them.
func signOf(r rune, n int) (string, bool) {
	switch {
	case r == utf8.RuneError && n == 1:
		return "\uFFFD", true
	case r == '\t', r >= ' ' && r < 0x7f, r == '\u200c', r == '\u200d':
		return "", false
	case r < ' ':
		return "‹" + controls[r] + "›", true
	case r == 0x7f:
		return "‹DEL›", true
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs), blank(r):
		return fmt.Sprintf("‹U+%04X›", r), true
	}
	return "", false
}

// blank tells of characters that are letters by their class but show nothing.
func blank(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return false
}

// Plain is Style without styles.
func Plain(line string, limit int) string {
	var b strings.Builder
	s := Style(line, limit)
	for _, r := range s.Runs {
		b.WriteString(r.Text)
	}
	if s.More {
		b.WriteString("…")
	}
	return b.String()
}
