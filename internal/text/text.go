// Package text is about the texts that people write and read: whether one shows anything, and how figures are written in
// one.
//
// It does not make a stranger's text safe to show (wire.Clean does), and it refuses nothing: whoever asks says what may be
// empty.
//
// Invariant: what a person has to give is nowhere given by a text that looks like none.
package text

import (
	"fmt"
	"strings"
	"unicode"
)

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
