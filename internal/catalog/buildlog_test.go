package catalog

import (
	"fmt"
	"strings"
	"testing"
)

func TestCleanLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                              "plain",
		"\x1b[1;31mred\x1b[0m \x1b(Bend\r\n": "red end",
		"10%\r50%\r100%\r":                   "100%",
		"a\tb\x00\x07c":                      "a    bc",
		"\x1b]0;title\x07after":              "after",
		"bad\xffbyte":                        "bad?byte",
		"\u202eevil":                         "evil",
		repeat("x", 5000):                    repeat("x", maxLogLine) + "…",
	} {
		if got := CleanLine(in); got != want {
			t.Errorf("CleanLine(%.40q) is %.40q, want %.40q", in, got, want)
		}
	}
}

func TestBuildLog_ForgetsTheOldestBeyondItsBounds(t *testing.T) {
	var l buildLog
	for n := range 2 * maxLogLines {
		l.add(fmt.Sprint(n))
	}
	if got := l.all(); len(got) != maxLogLines || got[len(got)-1] != fmt.Sprint(2*maxLogLines-1) {
		t.Errorf("%d lines, the last is %s", len(got), got[len(got)-1])
	}
	for range maxLogLines {
		l.add(strings.Repeat("x", maxLogLine))
	}
	total := 0
	for _, line := range l.all() {
		total += len(line)
	}
	if total > maxLogBytes || total != l.bytes {
		t.Errorf("%d bytes are kept (%d counted), the bound is %d", total, l.bytes, maxLogBytes)
	}
}
