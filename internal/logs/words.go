package logs

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is how many bytes of a word the index knows.
const maxWord = 64

const escape = '\x1b'

// AppendPlain appends text as it is searched: in lower case, and without terminal escapes.
func AppendPlain(to []byte, text string) []byte {
	start := len(to)
	if strings.IndexByte(text, escape) >= 0 {
		to = appendPlain(to, text)
	} else {
		to = append(to, text...)
	}
	ascii := true
	for i, c := range to[start:] {
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
		if c >= 'A' && c <= 'Z' {
			to[start+i] = c | 0x20
		}
	}
	if ascii {
		return to
	}
	rest := string(to[start:])
	to = to[:start]
	for _, r := range rest {
		to = utf8.AppendRune(to, unicode.ToLower(r))
	}
	return to
}

// appendPlain appends text without terminal escapes.
func appendPlain(to []byte, text string) []byte {
	for {
		i := strings.IndexByte(text, escape)
		if i < 0 {
			return append(to, text...)
		}
		to = append(to, text[:i]...)
		text = text[i+escapeLen(text[i:]):]
	}
}

// escapeLen is how long the escape that s begins with is: a control sequence up to its final byte, a command of the terminal (OSC)
// up to its end if it has one, else two bytes.
func escapeLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] < 0x20 || s[i] > 0x3f {
				if s[i] >= 0x40 && s[i] <= 0x7e {
					return i + 1
				}
				return i
			}
		}
		return len(s)
	case ']':
		bell, end := strings.IndexByte(s, '\a'), strings.Index(s, "\x1b\\")
		if bell >= 0 && (end < 0 || bell < end) {
			return bell + 1
		}
		if end >= 0 {
			return end + 2
		}
	}
	return 1 + utf8.RuneLen(firstRune(s[1:]))
}

func firstRune(s string) rune {
	if r, size := utf8.DecodeRuneInString(s); r != utf8.RuneError || size > 1 {
		return r
	}
	return 0 // an invalid byte: one byte long
}

// Words calls see with each word of a plain text, as the index knows it: letters, digits and "_", or a single character of a script
// that writes no blanks between words. see must not keep the slice.
func Words(plain []byte, see func(word []byte)) {
	start := -1
	for i := 0; i < len(plain); {
		r, size := rune(plain[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(plain[i:])
		}
		switch kindOf(r) {
		case inWord:
			if start < 0 {
				start = i
			}
		case alone:
			if start >= 0 {
				see(known(plain[start:i]))
			}
			see(plain[i : i+size])
			start = -1
		default:
			if start >= 0 {
				see(known(plain[start:i]))
			}
			start = -1
		}
		i += size
	}
	if start >= 0 {
		see(known(plain[start:]))
	}
}

// known gives what the index knows of a word.
func known(word []byte) []byte {
	if len(word) <= maxWord {
		return word
	}
	end := maxWord
	for !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end]
}

// kind is what a character is to the index.
type kind uint8

const (
	between kind = iota // not part of a word
	inWord
	alone // a word by itself
)

// asciiKinds saves the search of tables for most characters.
var asciiKinds = func() (out [utf8.RuneSelf]kind) {
	for c := range out {
		if c == '_' || isDigit(byte(c)) || isLetter(byte(c)) {
			out[c] = inWord
		}
	}
	return out
}()

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		return asciiKinds[r]
	case r == utf8.RuneError:
		return between
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
		return alone
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return inWord
	}
	return between
}

// term is a part of a query: a text that a line must have, beginning and ending where a word does.
type term struct {
	text   []byte // plain
	prefix bool   // it need not end where a word does
}

// in reports whether a plain text has the term.
func (t term) in(plain []byte) bool {
	for from := 0; ; {
		i := bytes.Index(plain[from:], t.text)
		if i < 0 {
			return false
		}
		at := from + i
		if !splits(plain, at) && (t.prefix || !splits(plain, at+len(t.text))) {
			return true
		}
		_, size := utf8.DecodeRune(plain[at:])
		from = at + size
	}
}

// splits reports whether a place in a plain text is within a word.
func splits(plain []byte, at int) bool {
	if at == 0 || at == len(plain) {
		return false
	}
	before, after := rune(plain[at-1]), rune(plain[at])
	if before >= utf8.RuneSelf {
		before, _ = utf8.DecodeLastRune(plain[:at])
	}
	if after >= utf8.RuneSelf {
		after, _ = utf8.DecodeRune(plain[at:])
	}
	return kindOf(before) == inWord && kindOf(after) == inWord
}
