// Package text is about the texts that people write and read: how a stranger's is made safe to show, whether one shows anything, and
// how figures are written in one.
//
// It refuses nothing: the caller says what may be empty or too long. What is written to a page is escaped there.
//
// Invariant: what a stranger wrote becomes a line of a page, a terminal or a log by OneLine and no other rule, and what a person has to
// give is nowhere given by a text that looks like none.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine gives s as one line that is safe to show: at most limit bytes, valid UTF-8, without controls, line breaks and whatever has no
// shape of its own, such as marks that turn the direction of a text around.
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

// Size writes a number of bytes in binary units, without decimals that say nothing: "21.78 GiB".
func Size(bytes int64) string {
	n, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for ; n >= 1024 && len(units) > 1; units = units[1:] {
		n /= 1024
	}
	return fmt.Sprintf("%.4g %s", n, units[0])
}
