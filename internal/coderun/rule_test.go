package coderun

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// runnable are the languages of these tests.
func runnable(language string) bool {
	return strings.Contains(" python py javascript js bash sh go ", " "+language+" ")
}

// labelled is a message, and what is to be done.
type labelled struct{ want, text string }

// messages reads the labelled ones. A third of them, by the hash of their texts, is held out: phrases are never chosen by looking at how
// the rule does on those.
func messages(t *testing.T) (known, heldOut []labelled) {
	t.Helper()
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n=== ")[1:] {
		want, said, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
		if sha256.Sum256([]byte(said))[0]%3 == 0 {
			heldOut = append(heldOut, labelled{want, said})
		} else {
			known = append(known, labelled{want, said})
		}
	}
	return known, heldOut
}

// does gives what the rule says of a message, as a label.
func does(text string) string {
	block, asked := Asked(text, runnable)
	if !asked {
		return "no"
	}
	return fmt.Sprintf("run %s %d", Blocks(text)[block].Named(), block)
}

func TestAsked_IsRightOnLabelledMessages(t *testing.T) {
	known, heldOut := messages(t)
	if n := len(known) + len(heldOut); n < 120 || len(heldOut) < n/4 || len(heldOut) > n/2 {
		t.Fatalf("%d messages, of which %d are held out", n, len(heldOut))
	}
	for _, m := range known {
		if got := does(m.text); got != m.want {
			t.Errorf("%s, want %s:\n%s", got, m.want, m.text)
		}
	}
	wrong, runs := 0, 0
	for _, m := range heldOut { // which ones are wrong is not said, so that nothing is tuned to them
		if does(m.text) != m.want {
			wrong++
		}
		if m.want != "no" {
			runs++
		}
	}
	if runs < len(heldOut)/4 || runs > 3*len(heldOut)/4 {
		t.Errorf("%d of the %d messages held out ask to run: too much of one kind", runs, len(heldOut))
	}
	right := 100 * float64(len(heldOut)-wrong) / float64(len(heldOut))
	t.Logf("held out: %.1f %% of %d messages", right, len(heldOut))
	if right < 95 {
		t.Errorf("%.1f %% of the messages held out are judged rightly, want 95 %%", right)
	}
}

func TestPhrases_AreWellFormed(t *testing.T) {
	for _, p := range phrases {
		if p.kind != "run" && p.kind != "not" && p.kind != "never" {
			t.Errorf("a phrase is under %q", p.kind)
		}
		first := p.steps[0]
		if first.words == nil || first.maybe {
			t.Errorf("a phrase of %q begins with a word that may be missing", p.kind)
		}
		for _, s := range p.steps {
			for _, w := range s.words {
				if got := wordsOf(w); len(got) != 1 || got[0] != w {
					t.Errorf("%q of a phrase is no word of a message", w)
				}
			}
		}
	}
}

func TestAsked_OfHugeMessagesIsKnownInTime(t *testing.T) {
	for _, text := range []string{strings.Repeat("don't ", 1<<15), strings.Repeat("what is ", 1<<15), strings.Repeat("\"", 1<<18), strings.Repeat("does the ", 1<<15)} {
		began := time.Now()
		Asked(text+"\n```py\nx\n```", runnable)
		if took := time.Since(began); took > muchTooLong {
			t.Errorf("%.10q took %s", text, took)
		}
	}
}
