package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean gives s as one line that is safe to show: at most limit bytes, valid UTF-8, without control and formatting
// characters.
func Clean(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.ValidString(s); i++ {
			s = s[:len(s)-1]
		}
	}
	s = strings.ToValidUTF8(s, "?")
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

// CheckTab says whether name can name a terminal tab: ^[a-z0-9][a-z0-9-]{0,31}$.
func CheckTab(name string) error { return checkLabel("tab", name, 32) }

func checkLabel(what, s string, limit int) error {
	if s == "" || len(s) > limit || s[0] == '-' {
		return badField(what)
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return badField(what)
		}
	}
	return nil
}

func checkText(what, s string, limit int) error {
	if len(s) > limit || strings.IndexByte(s, 0) >= 0 {
		return badField(what)
	}
	return nil
}

type badField string

func (f badField) Error() string { return "bad " + string(f) }
