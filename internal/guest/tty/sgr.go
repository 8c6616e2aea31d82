package tty

import (
	"bytes"
	"strconv"
)

// maxColour bounds a colour as it was written; the longest that means something is 38:2::255:255:255.
const maxColour = 24

// style is the colours and attributes of characters to come, as SGR sequences set them.
type style struct {
	on        uint64 // a bit for each attribute's number
	underline string // "4", "4:3", …
	colours   [3]string
}

// The colours of style, by what the tens of their numbers begin with.
const (
	foreground = iota
	background
	underlining
)

// clears says which attributes a number turns off.
var clears = map[int]uint64{22: 1<<1 | 1<<2, 23: 1 << 3, 25: 1<<5 | 1<<6, 27: 1 << 7, 28: 1 << 8, 29: 1 << 9, 55: 1 << 53}

// apply notes the parameters of one SGR sequence.
func (s *style) apply(params []byte) {
	for {
		var one []byte
		one, params, _ = bytes.Cut(params, []byte(";"))
		head, _, sub := bytes.Cut(one, []byte(":"))
		n, _ := strconv.Atoi(string(head))
		if (n == 38 || n == 48 || n == 58) && !sub {
			one, params = extended(one, params)
		}
		s.set(n, one)
		if len(params) == 0 {
			return
		}
	}
}

// extended joins the parameters of a colour that is written with semicolons: 38;5;n and 38;2;r;g;b.
func extended(one, params []byte) (colour, rest []byte) {
	count := 2
	if bytes.HasPrefix(params, []byte("2")) {
		count = 4
	}
	colour = bytes.Clone(one)
	for range count {
		var next []byte
		next, params, _ = bytes.Cut(params, []byte(";"))
		colour = append(append(colour, ';'), next...)
	}
	return colour, params
}

func (s *style) set(n int, as []byte) {
	switch {
	case n == 0:
		*s = style{}
	case n == 4 || n == 21:
		s.underline = bounded(as, maxColour)
	case n == 24:
		s.underline = ""
	case n >= 1 && n <= 9 || n == 53:
		s.on |= 1 << n
	case clears[n] != 0:
		s.on &^= clears[n]
	case n >= 30 && n <= 38 || n >= 90 && n <= 97:
		s.colours[foreground] = bounded(as, maxColour)
	case n >= 40 && n <= 48 || n >= 100 && n <= 107:
		s.colours[background] = bounded(as, maxColour)
	case n == 58:
		s.colours[underlining] = bounded(as, maxColour)
	case n == 39 || n == 49 || n == 59:
		s.colours[n/10-3] = ""
	}
}

// append adds the sequence that sets exactly this style.
func (s *style) append(to []byte) []byte {
	to = append(to, "\x1b[0"...)
	for n := range 64 {
		if s.on&(1<<n) != 0 {
			to = strconv.AppendInt(append(to, ';'), int64(n), 10)
		}
	}
	for _, p := range []string{s.underline, s.colours[foreground], s.colours[background], s.colours[underlining]} {
		if p != "" {
			to = append(append(to, ';'), p...)
		}
	}
	return append(to, 'm')
}
