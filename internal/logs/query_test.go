package logs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		query, text string
		want        bool
	}{
		{"", "x", true}, {"  ", "x", true}, {"error", "An ERROR.", true}, {"err", "error", false}, {"err*", "error", true}, {"rror", "error", false},
		{"a b", "b and a", true}, {"a c", "b and a", false}, {`"and a"`, "b and a", true}, {`"a and"`, "b and a", false}, {`"and a`, "b and a", true},
		{"GET /api/v1", "GET /api/v1/x", true}, {"/api/v", "GET /api/v1/x", false}, {"/api/v*", "GET /api/v1/x", true},
		{"550e8400-e29b", "id 550e8400-e29b-41d4", true}, {"user_id=42", "user_id=421", false}, {"->", "a -> b", true}, {"{", "{}", true},
		{"ÄRGER", "viel ärger", true}, {"日本", "これは日本語です", true}, {"日語", "日本語", false}, {"error", "\x1b[31mERROR\x1b[0m: x", true},
		{"error", "\x1b[31mERR\x1b[1mOR\x1b[0m", true}, {"31m", "\x1b[31mERROR", false}, {"title", "\x1b]0;title\x07rest", false}, {"rest", "\x1b]0;title\x07rest", true},
		{"a", "\x00a\x00", true}, {"x", "\x1b]0;x never ended", true}, {"a OR b", "a b", false}, {"a AND b", "a b", false}, {"NOT", "not", true}, {"a:b", "a:b", true},
		{"^a", "a", false}, {"(a", "(a)", true}, {"a*b", "a*b", true}, {"*", "2 * 3", true}, {"*", "23", false}, {`""`, "x", true}, {"a aa", "aa a", true}, {"\xff", "\uFFFD", true},
	} {
		m, err := newMatcher(Query{Scope: All(), Filter: Filter{Text: c.query}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.match(&Line{Text: c.text}); got != c.want {
			t.Errorf("%q in %q: %t", c.query, c.text, got)
		}
	}
}

// A line that matches has all words that the index is asked for.
func TestMatch_NeedsOnlyWordsThatTheIndexHas(t *testing.T) {
	letters := []rune("aaAb_1 ..-\"*é日本\x1b[m\u0301\x00")
	some := func(numbers []uint8, n int) string {
		var s strings.Builder
		for _, k := range numbers[:min(n, len(numbers))] {
			s.WriteRune(letters[int(k)%len(letters)])
		}
		return s.String()
	}
	holds := func(a, b []uint8) bool {
		text := some(a, 200)
		query := some(b, 6)
		if len(b)%2 == 0 && len(text) > 0 { // a part of it
			from := len(b) % len(text)
			query = text[from:min(len(text), from+5)]
		}
		m, err := newMatcher(Query{Scope: All(), Filter: Filter{Text: query}})
		if err != nil || !m.match(&Line{Text: text}) {
			return err == nil
		}
		var have []string
		Words(AppendPlain(nil, text), func(w []byte) { have = append(have, string(w)) })
		for _, w := range m.words() {
			if !slices.ContainsFunc(have, func(h string) bool { return h == w.Text || w.Prefix && strings.HasPrefix(h, w.Text) }) {
				t.Logf("%q in %q: %v of %v", query, text, w, have)
				return false
			}
		}
		return true
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}

func TestWords_LongOnesAreKnownByTheirBeginning(t *testing.T) {
	long := strings.Repeat("é", 100)
	for _, star := range []string{"", "*"} {
		m, err := newMatcher(Query{Filter: Filter{Text: long + star}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.words(); len(got) != 1 || got[0].Prefix || got[0].Text != strings.Repeat("é", 32) {
			t.Errorf("%v", got)
		}
	}
}

func TestQuery_RefusesWhatIsTooMuch(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", maxQuery+1), strings.Repeat("x ", maxTerms+1)} {
		if _, err := newMatcher(Query{Filter: Filter{Text: text}}); !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
	}
}

func TestCut(t *testing.T) {
	for _, s := range []string{strings.Repeat("x", 100<<20), strings.Repeat("é", MaxText), strings.Repeat("\xff ", MaxText/2+1), strings.Repeat("\xff ", MaxText/2), strings.Repeat("日", MaxText)} {
		got := cut(s, MaxText)
		if len(got) > MaxText || len(got) < MaxText-8 || !strings.Contains(got, " … (cut: the line has ") || !utf8.ValidString(got) {
			t.Errorf("%d bytes, end %q", len(got), got[max(0, len(got)-60):])
		}
	}
	if got := cut("a\x00\x1b[31m\xffb\r\n", MaxText); got != "a\x00\x1b[31m\uFFFDb" {
		t.Errorf("%q", got)
	}
}

func TestID(t *testing.T) {
	for _, id := range []ID{1, 1790000000000000} {
		if got, err := ParseID(id.String()); got != id || err != nil {
			t.Errorf("%s: %d %v", id, got, err)
		}
	}
	for _, s := range []string{"", "-1", "0", "+1", "01", "A", "x y", "zzzzzzzzzzzzzzzzz"} {
		if id, err := ParseID(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %d %v", s, id, err)
		}
	}
	for i := Unknown; i <= Fatal; i++ {
		if got, err := ParseLevel(i.String()); got != i || err != nil {
			t.Errorf("%s: %s %v", i, got, err)
		}
	}
	if _, err := ParseLevel("loud"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

func TestMatch_TextBetweenCommandsOfTheTerminalIsFound(t *testing.T) {
	line := Line{Text: "\x1b]8;;http://x/\x1b\\ERROR needle\x1b]8;;\x1b\\ done \a \x1b]0;title\a after"}
	for text, want := range map[string]bool{"needle": true, "done": true, "after": true, "title": false, "http": false} {
		m, err := newMatcher(Query{Scope: All(), Filter: Filter{Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.match(&line); got != want {
			t.Errorf("%s is found: %t", text, got)
		}
	}
}

func TestPace_AnswersForWhatASandboxSays(t *testing.T) {
	for what, c := range map[string]struct {
		line  Line
		most  int // lines within ten seconds
		least int
	}{"short lines": {plain("a", ""), readLinesBurst + 10*readLines, 10 * readLines}, "long lines": {plain("a", strings.Repeat("x", MaxText)), (readBytesBurst + 10*readBytes) / MaxText, 10 * readBytes / MaxText}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				p, n := newPace(), 0
				for frame := slices.Repeat([]Line{c.line}, 100); p.wait(ctx, frame) == nil; {
					n += len(frame)
				}
				if n > c.most || n < c.least-100 {
					t.Errorf("%d lines, want %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}
