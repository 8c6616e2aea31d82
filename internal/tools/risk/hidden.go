package risk

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a person can be expected to read.
const (
	longestLine = 2000   // bytes
	longestText = 20_000 // bytes
)

// hidden notes all by which a text looks like another one.
func (j *Judgement) hidden(s string) {
	for _, why := range Hidden(s) {
		j.add(Risky, why)
	}
}

// Hidden says in phrases how a text hides what it says from the person who reads it: with characters that are not seen or turn the order
// of others around, bytes that are no text, control characters, or by its length. Nil when it does not.
func Hidden(s string) []string {
	var why []string
	note := func(found bool, what string) {
		if found {
			why = append(why, what)
		}
	}
	var bidi, unseen, control, space bool
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			bidi = true
		case r == '\n' || r == '\t' || r == ' ' || r == '\r':
		case unicode.Is(unicode.Cc, r):
			control = true
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Co, r):
			unseen = true
		case unicode.IsSpace(r) || r == '\u2800' || r == '\u3164' || r == '\u115f' || r == '\u1160':
			space = true
		}
	}
	note(bidi, "it has characters that turn the order of the text around")
	note(unseen, "it has characters that are not seen")
	note(control || strings.Contains(strings.ReplaceAll(s, "\r\n", "\n"), "\r"), "it has control characters")
	note(space, "it has unusual spaces")
	note(!utf8.ValidString(s), "it has bytes that are no text")
	note(mixed(s), "it mixes letters of scripts that look alike")
	note(len(s) > longestText, fmt.Sprintf("it is very long: %d bytes", len(s)))
	for line := range strings.Lines(s) {
		if len(line) > longestLine {
			note(true, fmt.Sprintf("a line of it is very long: %d bytes", len(line)))
			break
		}
	}
	return append(why, padded(s)...)
}

// farOff is how many spaces move what follows out of sight.
const farOff = 60

// padded says whether something is pushed out of sight by spaces or empty lines.
func padded(s string) []string {
	if strings.Contains(strings.TrimRight(s, " \t\r\n"), strings.Repeat(" ", farOff)) || strings.Contains(strings.TrimSpace(s), strings.Repeat("\n", farOff/4)) {
		return []string{"a part of it is pushed out of sight"}
	}
	return nil
}

// mixed says whether a word has Latin letters and such that only look Latin.
func mixed(s string) bool {
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		latin, alike := false, false
		for _, r := range word {
			latin = latin || unicode.Is(unicode.Latin, r)
			alike = alike || unicode.Is(unicode.Cyrillic, r) || unicode.Is(unicode.Greek, r)
		}
		if latin && alike {
			return true
		}
	}
	return false
}
