package tools

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Bounds of what a model gets.
const (
	maxText   = 28_000 // bytes of a result
	headBytes = 8_000  // of a command's output, when it is longer than both
	tailBytes = 16_000
)

// transcript keeps the beginning and the end of what is written to it.
type transcript struct {
	head, tail []byte
	total      int64
}

func (t *transcript) add(p []byte) {
	t.total += int64(len(p))
	n := min(len(p), headBytes-len(t.head))
	t.head, p = append(t.head, p[:n]...), p[n:]
	p = p[max(0, len(p)-tailBytes):]
	t.tail = append(t.tail, p...)
	if len(t.tail) > 2*tailBytes {
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-tailBytes:]...)
	}
}

// take gives what was written since the last time, as a text, and how many bytes of it are left out.
func (t *transcript) take() (s string, leftOut int64) {
	tail := t.tail[max(0, len(t.tail)-tailBytes):]
	if leftOut = t.total - int64(len(t.head)) - int64(len(tail)); leftOut > 0 {
		s = plain(string(t.head)) + fmt.Sprintf("\n… %d bytes left out …\n", leftOut) + plain(string(tail))
	} else {
		s = plain(string(t.head) + string(tail))
	}
	*t = transcript{}
	return s, leftOut
}

// escapes are what a program writes to a terminal to colour and move.
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]")

// plain is a text as a person would read it on a terminal: without escapes and controls, and of a line that is written over and over
// only what is left.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.IndexByte(s, '\r') >= 0 {
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			line = strings.TrimRight(line, "\r")
			lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
		}
		s = strings.Join(lines, "\n")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// shorten keeps the head and the tail of a text of more than limit bytes, and says how much is missing between them.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit/2, len(s)-limit/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + fmt.Sprintf("\n… %d bytes left out …\n", tail-head) + s[tail:]
}
