package views

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// bareText is text on a line of its own before or after a time. templ drops the line break between them, so the space between
// the words has to be written out: { "created " }.
var bareText = regexp.MustCompile(`(?m)(^\s*[A-Za-z][A-Za-z ]*|^\s*\{ [^"\n]*\}[^\n{]*[^\n{}\s])\n\s*@(Ago|exact)\(|@(Ago|exact)\([^\n]*\)\n\s*[A-Za-z]+$`)

func TestTemplates_KeepTheSpaceBesideATime(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range bareText.FindAllString(string(source), -1) {
			t.Errorf("%s: no space in %q", file, found)
		}
	}
}
