package coderun

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBlocks_AreThoseOfThePane uses the cases that static/chat/fences.test.js uses too.
func TestBlocks_AreThoseOfThePane(t *testing.T) {
	text, err := os.ReadFile("../../static/chat/fence_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		What, Text string
		Blocks     []Block
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		got := Blocks(c.Text)
		if got == nil {
			got = []Block{}
		}
		if diff := cmp.Diff(c.Blocks, got); diff != "" {
			t.Errorf("%s:\n%s", c.What, diff)
		}
	}
}

// muchTooLong is what only a text takes whose time grows with the square of its length, also on a busy machine and under the race detector.
const muchTooLong = 20 * time.Second

func TestBlocks_OfHugeTextsAreFoundInTime(t *testing.T) {
	for what, text := range map[string]string{
		"fences":  strings.Repeat("```\n", 1<<18),
		"marks":   strings.Repeat("- ", 1<<19),
		"numbers": strings.Repeat("1. ", 1<<18) + "```py\nx",
		"spaces":  strings.Repeat(" ", 1<<20) + "```",
		"nested":  strings.Repeat("- a\n  ", 1<<17),
		"ends":    strings.Repeat("- ", 3<<17) + "\n" + strings.Repeat(" ", 1<<18) + "x",
	} {
		began := time.Now()
		Blocks(text)
		if took := time.Since(began); took > muchTooLong {
			t.Errorf("%s took %s", what, took)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add("- ```py\n  x\n```\n\t~~~ go\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
		if n := len(Blocks(text)); n > lines {
			t.Errorf("%d blocks in %d lines", n, lines)
		}
	})
}
