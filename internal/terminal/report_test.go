package terminal

import (
	"strings"
	"testing"
)

func TestIsReport_TellsAnswersFromKeys(t *testing.T) {
	for _, answer := range []string{
		"\x1b[?1;2c", "\x1b[>0;276;0c", "\x1b[0n", "\x1b[24;80R", "\x1b[?24;80R", "\x1b[1;80R", "\x1b[8;24;80t", "\x1b[?2026;2$y",
		"\x1b[?0u", "\x1b[I", "\x1b[O", "\x1b]11;rgb:0000/0000/0000\x1b\\", "\x1b]10;rgb:ffff/ffff/ffff\x07", "\x1bP1$r0m\x1b\\",
		"\x1bP>|xterm.js(6.0.0)\x1b\\", "\x1b[?1;2c\x1b[>0;276;0c\x1b[O",
	} {
		if !isReport([]byte(answer)) {
			t.Errorf("%q counts as typed", answer)
		}
	}
	for _, typed := range []string{
		"a", "\r", "\x03", "\x1b", "\x1b\x1b", "é", "\x1b[A", "\x1bOA", "\x1bOP", "\x1b[1;5C", "\x1b[15~", "\x1b[1;2R", "\x1b[Z", "\x1b[27;5;9~",
		"\x1b[97;5u", "\x1b[200~pasted\x1b[201~", "\x1b[<0;10;5M", "\x1b[<35;10;5M", "\x1b[M !!", "\x1b[?1;2cx", "\x1b]no end", "\x1bP", "\x1b[", "\x1b[12",
	} {
		if isReport([]byte(typed)) {
			t.Errorf("%q does not count as typed", typed)
		}
	}
}

// FuzzIsReport: a report is found in full, so that what is typed after one counts.
func FuzzIsReport(f *testing.F) {
	for _, s := range []string{"\x1b[?1;2c", "\x1b]11;x\x07", "\x1bP\x1b\\", "\x1b[1;2R", "\x1b[", "a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if isReport([]byte(s)) && isReport([]byte(s+"x")) {
			t.Fatalf("%q swallows a key", s)
		}
		if s != "" && isReport([]byte(s)) && !strings.HasPrefix(s, "\x1b") {
			t.Fatalf("%q is a report", s)
		}
	})
}
