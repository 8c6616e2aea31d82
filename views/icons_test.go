package views

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var named = regexp.MustCompile(`(?:icon\(|Icon: |href="#i-)"?([a-z][a-z-]+)"`)

func TestIcons_AllThatArePutInPagesAreDrawn(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, ok := shapes[m[1]]; !ok {
				t.Errorf("%s: there is no icon %q", file, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d icons: does the search still work?", found)
	}
}

func TestIcons_StatesDifferInShape(t *testing.T) {
	drawn := map[string]string{}
	for name, shape := range shapes {
		if !strings.HasPrefix(name, "state-") {
			continue
		}
		if other, twice := drawn[shape]; twice {
			t.Errorf("%s looks like %s", name, other)
		}
		drawn[shape] = name
	}
}

func TestIconRef_UnknownIsTheBox(t *testing.T) {
	if got := iconRef(`"><script>`); got != "#i-box" {
		t.Errorf("got %s", got)
	}
}
