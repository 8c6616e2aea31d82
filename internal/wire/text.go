package wire

import "strings"

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
