// Package text handles text that people write and read: it makes untrusted text safe to show, tells whether a text shows anything,
// and formats sizes.
//
// It refuses nothing: the caller decides what may be empty or too long. Pages escape text themselves.
//
// Invariant: untrusted text becomes a line of a page, a terminal or a log by OneLine alone, and a text that shows nothing never
// passes for an answer.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine gives s as one line that is safe to show: at most limit bytes, valid UTF-8, without controls, line breaks and invisible
// characters, such as direction marks.
func OneLine(s string, limit int) string {
	s = strings.ToValidUTF8(cut(s, limit), "?")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, s)
}

// Excerpt gives the beginning of s as OneLine does, without blanks at its end, and with "…" behind when there is more.
func Excerpt(s string, limit int) string {
	line := strings.TrimRight(OneLine(s, 4*limit), " ")
	if len(line) > limit {
		line = cut(line, limit) + "…"
	}
	return line
}

// Clip gives s, or its beginning of at most limit bytes and "…" behind. It changes nothing else.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return cut(s, limit) + "…"
}

// printable reports whether a name or label of one line may hold a character: no control, line break or direction mark, which could
// forge or garble a line.
func printable(r rune) bool {
	const joiner = '\u200d' // holds composed emoji together
	return r == joiner || unicode.IsGraphic(r) && r != utf8.RuneError && !unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// Unprintable reports whether s is unfit for a name or label of one line: it is not valid UTF-8, or holds a control, a line break or a
// direction mark.
func Unprintable(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !printable(r) })
}

// cut gives at most limit bytes of s, and no part of a character at their end.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for i := 0; i < utf8.UTFMax && limit > 0 && !utf8.RuneStart(s[limit]); i++ {
		limit--
	}
	return s[:limit]
}

// Trim gives text without the space around it: "" when nothing of it would be seen.
func Trim(text string) string {
	if strings.IndexFunc(text, seen) < 0 {
		return ""
	}
	return strings.TrimSpace(text)
}

// seen reports whether a character by itself leaves a mark.
func seen(r rune) bool {
	const brailleBlank, nullNotehead = '\u2800', '\U0001d159' // symbols that are drawn empty
	return r != brailleBlank && r != nullNotehead && unicode.IsGraphic(r) && !unicode.IsSpace(r) &&
		!unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
