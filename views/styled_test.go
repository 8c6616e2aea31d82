package views

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// shown writes a line's runs as text: "[class:text]" for those with a class.
func shown(s Styled) string {
	var b strings.Builder
	for _, r := range s.Runs {
		if r.Class == "" {
			b.WriteString(r.Text)
		} else {
			b.WriteString("[" + r.Class + ":" + r.Text + "]")
		}
	}
	return b.String()
}

func TestStyle_KeepsColoursAndShowsTheRest(t *testing.T) {
	for line, want := range map[string]string{
		"plain\ttext":                                     "plain\ttext",
		"\x1b[31mred\x1b[0m plain":                        "[fg-red:red] plain",
		"\x1b[1;32mok\x1b[22m thin\x1b[m":                 "[fg-green sgr-bold:ok][fg-green: thin]",
		"\x1b[91;4mx\x1b[24;39my":                         "[fg-red sgr-line:x]y",
		"\x1b[38;5;196ma\x1b[38;5;21mb\x1b[38;5;244mc":    "[fg-red:a][fg-blue:b][fg-grey:c]",
		"\x1b[38;2;255;128;0ma\x1b[38:2::0:200:200mb":     "[fg-yellow:a][fg-cyan:b]",
		"\x1b[41;37mx\x1b[49my":                           "[bg-red:x]y",
		"\x1b[31;7mx\x1b[27my\x1b[0;7mz":                  "[bg-red:x][fg-red:y][bg-grey:z]",
		"\x1b[2mdim\x1b[0m\x1b[3;9mx":                     "[fg-grey:dim][sgr-italic sgr-crossed:x]",
		"\x1b[8mhidden":                                   "hidden",
		"\x1b[48;5;1;38;5;15mx":                           "[bg-red:x]",
		"\x1b[38;5mx\x1b[38mx\x1b[99999999999999999999mx": "xxx",
		"\x1b[2Ja\x1b[?25lb\x1b]0;t\x07c\x1b(Bd\x1b":      "[log-sign:‹ESC›[2J]a[log-sign:‹ESC›[?25l]b[log-sign:‹ESC›]]0;t[log-sign:‹BEL›]c[log-sign:‹ESC›](Bd[log-sign:‹ESC›]",
		"\x1b]8;;file:///etc/x\x1b\\a\x1b]8;;\x1b\\b\x1b]8;id=1;javascript:x\ac": "abc",
		"\x1b]8;;\x00\x1b\\a": "[log-sign:‹ESC›]]8;;[log-sign:‹NUL›‹ESC›]\\a",
		"\x1b[1\x00mx":        "[log-sign:‹ESC›][1[log-sign:‹NUL›]mx",
		"a\r\bb\x7f\u009b1m":  "a[log-sign:‹CR›‹BS›]b[log-sign:‹DEL›‹U+009B›]1m",
		"gpj\u202eexe\u2066\u061c\ufeff\u200b\U000e0041\u2028": "gpj[log-sign:‹U+202E›]exe[log-sign:‹U+2066›‹U+061C›‹U+FEFF›‹U+200B›‹U+E0041›‹U+2028›]",
		"שלום 👩‍👩‍👧 ☀️ नि":                                     "שלום 👩‍👩‍👧 ☀️ नि",
		"a\xff\xfeb": "a[log-sign:\uFFFD\uFFFD]b",
	} {
		if got := shown(Style(line, 0)); got != want {
			t.Errorf("%q gives %q, want %q", line, got, want)
		}
	}
}

func TestStyle_IsBounded(t *testing.T) {
	s := Style(strings.Repeat("\x1b[31ma\x1b[32mb\x00", 5000), 0)
	if len(s.Runs) > maxRuns || strings.Count(shown(s), "b") < 5000 || strings.Contains(shown(s), "\x00") {
		t.Errorf("%d runs", len(s.Runs))
	}
	s = Style(strings.Repeat("ä", 100), 11)
	if got := shown(s); !s.More || got != strings.Repeat("ä", 5) {
		t.Errorf("%q, more: %t", got, s.More)
	}
	if got := Plain("\x1b[31mred\x1b[0m\x00 and more", 12); got != "red…" {
		t.Errorf("plain is %q", got)
	}
}

func FuzzStyle(f *testing.F) {
	for _, seed := range []string{"\x1b[31mred\x1b[0m", "\x1b[38;2;1;2;3mx", "\x1b]8;;http://x\x07y", "a\u202eb", "\x1b[", "\xff\x9b", "\x1b[48:5:1m;"} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, line string, limit int) {
		s := Style(line, limit)
		if len(s.Runs) > maxRuns {
			t.Errorf("%d runs", len(s.Runs))
		}
		for _, r := range s.Runs {
			if !utf8.ValidString(r.Text) || r.Text == "" {
				t.Errorf("text %q", r.Text)
			}
			if strings.Trim(r.Class, "abcdefghijklmnopqrstuvwxyz- ") != "" {
				t.Errorf("class %q", r.Class)
			}
			for _, c := range r.Text {
				if c != '\t' && (unicode.IsControl(c) || unicode.In(c, unicode.Bidi_Control)) {
					t.Errorf("%q shows %U", line, c)
				}
			}
		}
	})
}
