package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestOneLine_IsSafeToShow(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"plain", 20, "plain"},
		{"a\nb\tc\r", 20, "a b c"},
		{"\x1b[31mred\x07\u009b", 20, "[31mred"},
		{"\u202eevil\ufeff\u2066\u200f", 20, "evil"},
		{"a\u2028b\u2029", 20, "ab"},
		{"bad \xff utf", 20, "bad ? utf"},
		{"0123456789é", 11, "0123456789"}, // cut within a letter
		{"0123456789", 4, "0123"},
		{"x", 0, ""},
	} {
		if got := OneLine(c.in, c.limit); got != c.want {
			t.Errorf("%q gives %q", c.in, got)
		}
	}
}

func TestExcerpt_SaysThatThereIsMore(t *testing.T) {
	for in, want := range map[string]string{"  four \r\n": "  four", "\u202e123456\n ": "123456", "1234567": "123456…", "12345é": "12345…", strings.Repeat("\x00", 20) + "x": "x"} {
		if got := Excerpt(in, 6); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// FuzzOneLine: the result is bounded, valid and has no control characters, and doing it again changes nothing.
func FuzzOneLine(f *testing.F) {
	f.Add("a\x1b]0;b\x07\xff\u202e", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || limit > 1<<16 {
			return
		}
		got := OneLine(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || OneLine(got, limit) != got || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("%q gives %q", s, got)
		}
	})
}

func TestTrim_WhatShowsNothingIsNothing(t *testing.T) {
	for _, r := range " \t\n\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u2000\u200b\u200c\u200d\u200e\u2028\u202e\u2060\u2064\u2800\u3000\u3164\ufe0f\ufeff\uffa0\ufff0\U0001d159\U000e0001\U000e0100" {
		for _, text := range []string{string(r), string(r) + " " + string(r)} {
			if got := Trim(text); got != "" {
				t.Errorf("%+q gives %+q", text, got)
			}
		}
	}
	if got := Trim("\xff\x00"); got != "\xff\x00" {
		t.Errorf("what is no text gives %q: it is not for here to be refused", got)
	}
}

func TestTrim_LeavesWhatIsSeenAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " a  b\n": "a  b", "❤\ufe0f": "❤\ufe0f", "👩\u200d💻": "👩\u200d💻", "한글": "한글", "\u3164x": "\u3164x", "é": "é", "…": "…",
	} {
		if got := Trim(text); got != want {
			t.Errorf("%+q gives %+q, want %+q", text, got, want)
		}
	}
}

func TestSize_HasThreeDigits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "0.98 KiB", 1247: "1.22 KiB", 4 << 20: "4 MiB", 312 << 20: "312 MiB", 512 << 20: "512 MiB", 1000 << 20: "0.98 GiB",
		1023 << 20: "1 GiB", 3 << 29: "1.5 GiB", 2 << 30: "2 GiB", 23388000000: "21.8 GiB", 40 << 30: "40 GiB", 3 << 50: "3 PiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestUnprintable_IsWhatForgesOrGarblesALine(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "Ünïcode ✓ 名": false, "family 👩‍👩‍👧": false, "a b": false,
		"a\nb": true, "a\tb": true, "\x1b[2J": true, "a\u202eb": true, "a\u2028b": true, "a\u00adb": true, "\ufeffa": true, "\xff": true,
	} {
		if Unprintable(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestClip_CutsBetweenCharacters(t *testing.T) {
	for in, want := range map[string]string{"abc": "abc", "abcd": "abc…", "abé": "ab…", "a\nb\u202e": "a\nb…"} {
		if got := Clip(in, 3); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
