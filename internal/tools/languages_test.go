package tools

import (
	"os"
	"regexp"
	"testing"
)

func TestLanguages_AreThoseThatThePaneHasButtonsFor(t *testing.T) {
	text, err := os.ReadFile("../../static/chat/languages.js")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(text, -1) {
		shown[string(m[1])] = true
	}
	n := 0
	for _, l := range languages {
		for _, name := range l.names {
			if n++; !shown[name] {
				t.Errorf("the pane has no button for %s", name)
			}
		}
	}
	if n != len(shown) {
		t.Errorf("the pane knows %d names, not %d", len(shown), n)
	}
}
