package tools

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	udiff "github.com/aymanbagabas/go-udiff"
)

// someText is a text of n lines, few of which are alike.
func someText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%s %d\n", []string{"alpha", "-- beta", "++ gamma", "", "@@ delta"}[r.IntN(5)], r.IntN(40))
	}
	return b.String()
}

// edited changes some lines of a text.
func edited(r *rand.Rand, s string) string {
	lines, _ := split(s)
	var out []string
	for _, line := range lines {
		switch r.IntN(12) {
		case 0:
		case 1:
			out = append(out, line, fmt.Sprint("new ", r.IntN(1000)))
		case 2:
			out = append(out, line+"!")
		default:
			out = append(out, line)
		}
	}
	return joined(out, r.IntN(4) > 0)
}

func TestPatch_WhatADiffSaysIsDone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		old := someText(r, 1+r.IntN(120))
		if r.IntN(4) == 0 {
			old = strings.TrimSuffix(old, "\n")
		}
		want := edited(r, old)
		if old == want || want == "" {
			continue
		}
		parsed, err := parsePatch(udiff.Unified("a/x", "b/x", old, want))
		if err != nil || len(parsed) != 1 {
			t.Fatalf("%d: %v", i, err)
		}
		got, problem := applied(old, parsed[0].hunks)
		if problem != "" || got != want {
			t.Fatalf("%d: %s\n%s\ngot  %q\nwant %q", i, problem, udiff.Unified("a/x", "b/x", old, want), got, want)
		}
	}
}

func TestPatch_NumbersAreHints(t *testing.T) {
	file := "a\nb\nc\nd\na\nb\nc\n"
	for name, c := range map[string]struct{ patch, want, says string }{
		"wrong numbers":      {"@@ -90,2 +90,2 @@\n c\n-d\n+D\n", "a\nb\nc\nD\na\nb\nc\n", ""},
		"the nearest":        {"@@ -5,2 +5,2 @@\n a\n-b\n+B\n", "a\nb\nc\nd\na\nB\nc\n", ""},
		"no numbers, twice":  {"@@\n a\n-b\n+B\n", "", "2 times"},
		"blank lines at end": {"@@\n-d\n+D\n\n\n", "a\nb\nc\nD\na\nb\nc\n", ""},
		"new lines alone":    {"@@ -1,0 +2,1 @@\n+x\n", "a\nx\nb\nc\nd\na\nb\nc\n", ""},
		"no place":           {"@@\n+x\n", "", "Give some around"},
		"spaces":             {"@@\n-d \n+D\n", "", "spaces"},
		"no end":             {"@@ -6,2 +6,2 @@\n b\n-c\n+C\n\\ No newline at end of file\n", "a\nb\nc\nd\na\nb\nC", ""},
	} {
		parsed, err := parsePatch("--- a/x\n+++ b/x\n" + c.patch)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, problem := applied(file, parsed[0].hunks)
		if got != c.want || !strings.Contains(problem, c.says) || (problem == "") != (c.says == "") {
			t.Errorf("%s: got %q, %q", name, got, problem)
		}
	}
}

func FuzzParsePatch(f *testing.F) {
	f.Add("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nb\n")
	f.Add("*** Begin Patch\n*** Add File: x\n+a\n*** Delete File: y\n*** End Patch", "")
	f.Fuzz(func(t *testing.T, patch, file string) {
		parsed, err := parsePatch(patch)
		if err != nil {
			return
		}
		for _, p := range parsed {
			if p.path == "" || len(p.hunks) > mostHunks || p.create && len(p.hunks) == 0 {
				t.Errorf("got %+v", p)
			}
			applied(file, p.hunks)
		}
	})
}

func TestTranscript_SaysHowMuchIsLeftOut(t *testing.T) {
	var tr transcript
	for i := range 100_000 {
		tr.add(fmt.Appendf(nil, "%06d\n", i))
	}
	s, leftOut := tr.take()
	if want := int64(700_000 - headBytes - tailBytes); leftOut != want || !strings.HasPrefix(s, "000000\n") || !strings.HasSuffix(s, "099999\n") {
		t.Errorf("left out %d of %d bytes", leftOut, len(s))
	}
	tr.add([]byte("more"))
	if s, leftOut := tr.take(); s != "more" || leftOut != 0 {
		t.Errorf("got %q, %d", s, leftOut)
	}
}

func TestPlain_IsWhatAPersonReads(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[1;31mb\x1b[0m": "ab", "\x1b]0;title\x07x": "x", "10%\r20%\r100%\nok": "100%\nok", "a\r\nb": "a\nb", "a\x00\x07b": "ab", "a\xffb": "a\uFFFDb", "tab\there": "tab\there", "done\r": "done",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
