// Package plain is about the texts that people write and read: whether one shows anything, and how figures are written in
// one.
//
// It does not make a stranger's text safe to show (wire.Clean does), and it refuses nothing: whoever asks says what may be
// empty.
//
// Invariant: what a person has to give is nowhere given by a text that looks like none.
package plain

import (
	"strings"
	"unicode"

	"github.com/docker/go-units"
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
	return units.CustomSize("%.4g %s", float64(bytes), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"})
}
