package main

import (
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// shown writes a sandbox's text to a terminal. Of all control characters only line ends, tabs and colours pass: others could
// retitle the window, fill the clipboard, or type in the user's name.
type shown struct {
	out      io.Writer
	held     []byte // the beginning of a character or of a colour
	coloured bool
}

// maxColour bounds the length of an escape that sets colours, in bytes.
const maxColour = 64

// forScreen gives a writer to out that is safe for what a sandbox has written: out itself where it is no terminal. The caller must
// call rest in the end.
func forScreen(out io.Writer) (w io.Writer, rest func()) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return out, func() {}
	}
	s := &shown{out: out}
	return s, s.rest
}

// rest puts the colours back.
func (s *shown) rest() {
	if s.coloured {
		_, _ = io.WriteString(s.out, "\x1b[0m") // a terminal that is gone has none
	}
}

// Write implements io.Writer.
func (s *shown) Write(p []byte) (int, error) {
	in := append(s.held, p...)
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		keep, n := s.next(in)
		if n == 0 {
			break // more has to come
		}
		out, in = append(out, keep...), in[n:]
	}
	s.held = append([]byte(nil), in...)
	if _, err := s.out.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// next gives the visible part of text's first n bytes; n is 0 when more input is needed to tell.
func (s *shown) next(text []byte) (keep []byte, n int) {
	switch c := text[0]; {
	case c == '\n' || c == '\t' || c >= ' ' && c < 0x7f:
		return text[:1], 1
	case c == '\x1b':
		n, whole := colour(text)
		if !whole {
			return nil, 0
		}
		if n > 0 {
			s.coloured = true
			return text[:n], n
		}
		return nil, 1
	case c < utf8.RuneSelf:
		return nil, 1
	case !utf8.FullRune(text):
		return nil, 0
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r == utf8.RuneError:
		return []byte(string(utf8.RuneError)), n
	case r < 0xa0: // controls, too
		return nil, n
	}
	return text[:n], n
}

// colour gives the length of the escape that sets colours at the beginning of text: 0 when it is another, not whole when that
// cannot be told yet.
func colour(text []byte) (n int, whole bool) {
	for i, c := range text[:min(len(text), maxColour)] {
		switch {
		case i == 0, i == 1 && c == '[':
		case i > 1 && (c >= '0' && c <= '9' || c == ';' || c == ':'):
		case i > 1 && c == 'm':
			return i + 1, true
		default:
			return 0, true
		}
	}
	return 0, len(text) >= maxColour
}
