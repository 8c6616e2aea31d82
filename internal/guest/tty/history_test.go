package tty

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// feed gives h a program's output in reads of the given length.
func feed(h *history, s *scanner, out string, read int) (shown string, effects []effect) {
	var b strings.Builder
	for p := []byte(out); len(p) > 0; {
		n := min(read, len(p))
		s.scan(p[:n], func(k kind, piece []byte) {
			effects = append(effects, h.add(k, piece))
			b.Write(piece)
		})
		p = p[n:]
	}
	return b.String(), effects
}

func TestScanner_ChangesNothingWhereverReadsAreCut(t *testing.T) {
	out := "a\x1b[1;31mb\x1b]0;title\x07c\a\x1b]8;;http://x\x1b\\l\x1b]8;;\x1b\\\x1bP+q544e\x1b\\é世\x1b[?1049h\x1b(0q\x1b[6n\x1b]2;x\x1b[0md\x1b[3\x1b[4mz" +
		"\x1bP" + strings.Repeat("s", 3*maxSequence) + "\x1b\\end"
	for read := 1; read < 40; read++ {
		got, _ := feed(newHistory(), &scanner{}, out, read)
		if got != out {
			t.Fatalf("read %d: output changed:\n%q\n%q", read, got, out)
		}
	}
}

func TestScanner_HoldsBackOnlyAnUnfinishedSequence(t *testing.T) {
	var s scanner
	got, _ := feed(newHistory(), &s, "text\x1b[3", 100)
	if got != "text" {
		t.Fatalf("got %q", got)
	}
	if got, _ = feed(newHistory(), &s, "1mred", 100); got != "\x1b[31mred" {
		t.Fatalf("got %q", got)
	}
}

func TestHistory_QueriesAreNeverReplayed(t *testing.T) {
	queries := []string{"\x1b[c", "\x1b[>c", "\x1b[=c", "\x1b[5n", "\x1b[6n", "\x1b[?6n", "\x1b[?996n", "\x1bZ", "\x1b[?2026$p", "\x1b[18t", "\x1b[>q",
		"\x1b[?u", "\x1b]10;?\x07", "\x1b]11;?\x1b\\", "\x1b]4;1;?\x07", "\x1b]52;c;?\x07", "\x1b]52;c;aGk=\x07", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b[x"}
	for _, q := range queries {
		h := newHistory()
		_, effects := feed(h, &scanner{}, "before"+q+"after", 3)
		if !strings.Contains(string(h.replay()), "beforeafter") {
			t.Errorf("%q is in the replay: %q", q, h.replay())
		}
		if !bytes.ContainsRune([]byte(fmt.Sprint(effects)), rune('0'+query)) {
			t.Errorf("%q is not known as a query: %v", q, effects)
		}
	}
}

func TestHistory_ReplayHasOutputAndModes(t *testing.T) {
	h := newHistory()
	feed(h, &scanner{}, "\x1b]0;vim\x07\x1b[?2004h\x1b[?1h\x1b=\x1b[?1006;1002h\x1b[?25l\x1b[2;5r\x1b[4 q\x1b[1m\x1b[38;5;3mbold\a", 5)
	got := string(h.replay())
	if !strings.HasPrefix(got, "\x1bc") || strings.Contains(got, "\a") {
		t.Errorf("replay begins without reset or rings: %q", got)
	}
	tail := got[strings.LastIndex(got, "bold"):]
	for _, want := range []string{"\x1b[?2004h", "\x1b[?1h", "\x1b=", "\x1b[?1006h", "\x1b[?1002h", "\x1b[?1000l", "\x1b[?25l", "\x1b[?7h", "\x1b[4 q", "\x1b[0;1;38;5;3m", "\x1b]2;vim\x1b\\"} {
		if !strings.Contains(tail, want) {
			t.Errorf("%q is not restored: %q", want, tail)
		}
	}
	if strings.Contains(tail, "\x1b[2;5r") {
		t.Error("setting the scroll region at the end moves the cursor")
	}
}

func TestHistory_AltScreenDoesNotPushOutTheOrdinaryOne(t *testing.T) {
	h := newHistory()
	feed(h, &scanner{}, "$ ls\r\nfile\r\n", 100)
	feed(h, &scanner{}, "\x1b[?1049h"+strings.Repeat("\x1b[Hscreen of an editor", 200_000), 1000)
	got := string(h.replay())
	ordinary, alternate := strings.Index(got, "$ ls"), strings.Index(got, "\x1b[?1049h")
	if ordinary < 0 || alternate < ordinary || !strings.Contains(got[alternate:], "screen of an editor") {
		t.Fatalf("order: ordinary at %d, alternate at %d", ordinary, alternate)
	}
	if len(got) > altBytes+4*blockBytes {
		t.Errorf("replay of %d bytes", len(got))
	}
	feed(h, &scanner{}, "\x1b[?1049l$ ", 100)
	got = string(h.replay())
	if strings.Contains(got, "editor") || strings.Contains(got, "1049h") || !strings.Contains(got, "$ ls\r\nfile\r\n") {
		t.Errorf("after the editor: %q", got)
	}
}

func TestHistory_IsBoundedAndBeginsClean(t *testing.T) {
	h, s := newHistory(), &scanner{}
	feed(h, s, "\x1b[31m", 100)
	line := "\x1b[1m" + strings.Repeat("世界", 20) + "\x1b[22m\r\n"
	feed(h, s, strings.Repeat(line, 3*mainBytes/len(line)), 4093)
	got := h.replay()
	if len(got) < mainBytes || len(got) > mainBytes+3*blockBytes {
		t.Fatalf("replay of %d bytes", len(got))
	}
	if !utf8.Valid(got) {
		t.Error("a character is cut")
	}
	if !bytes.Contains(got[:1000], []byte(";31m")) {
		t.Errorf("the colour at the cut is lost: %q", got[:300])
	}
}

func TestHistory_ResetForgets(t *testing.T) {
	h := newHistory()
	feed(h, &scanner{}, "old\x1b[?1049hold\x1bcnew", 100)
	if got := string(h.replay()); strings.Contains(got, "old") || !strings.Contains(got, "new") {
		t.Fatalf("replay: %q", got)
	}
}

// FuzzHistory feeds hostile output: nothing panics, changes, grows without bound, or is asked again in a replay.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("a\x1b[1;31mb\x1b]0;t\x07\x1b[?1049h\x1bP+q\x1b\\\x1b[?1049l\x1b[6n"), uint64(1))
	f.Add([]byte("\x1b]\x1b\x1b\\\x1b\x1b[\x18\x1b[?;;;;h\x1b[;m\x1b(0\x1bc\x1b[r"), uint64(2))
	f.Add([]byte("\x1b\x1b\x1b]52;c;\x1b[\x1b]11;?\x1b"), uint64(3))
	f.Fuzz(func(t *testing.T, out []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		h, s := newHistory(), &scanner{}
		var got []byte
		rest := out
		for len(rest) > 0 {
			n := 1 + random.IntN(len(rest))
			s.scan(rest[:n], func(k kind, piece []byte) {
				got = append(got, piece...)
				h.add(k, piece)
			})
			rest = rest[n:]
		}
		got = append(got, s.pending...)
		if !bytes.Equal(got, out) {
			t.Fatalf("output changed:\n%q\n%q", got, out)
		}
		(&scanner{}).scan(h.replay(), func(k kind, piece []byte) {
			if k == escape && new(modes).interpret(bytes.Clone(piece)) == query {
				t.Fatalf("a replay asks %q", piece)
			}
		})
	})
}
