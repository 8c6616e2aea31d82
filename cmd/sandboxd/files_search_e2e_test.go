//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// search looks for something in the sandbox "lab", whose answer may come at once or line by line.
func (s *server) search(what map[string]any, headers ...string) fileAnswer {
	s.t.Helper()
	body, err := json.Marshal(what)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.file("POST", ":search", string(body), append(headers, "Content-Type", "application/json")...)
}

// foundFile is something found, as far as the tests look at it.
type foundFile struct {
	Path, Type, Match string
	Line, Column      int
}

func (f foundFile) String() string {
	if f.Line == 0 {
		return f.Type + " " + f.Path
	}
	return fmt.Sprintf("%s:%d:%d:%s", f.Path, f.Line, f.Column, f.Match)
}

// finds gives what a search below ~/src finds, in order.
func (s *server) finds(what map[string]any) (found []string) {
	s.t.Helper()
	what = maps.Clone(what)
	what["path"] = "src"
	var got struct {
		Found []foundFile
		More  bool
	}
	s.search(what).is(200).into(&got)
	for _, f := range got.Found {
		found = append(found, strings.Replace(f.String(), "/home/agent/src/", "", 1))
	}
	if got.More {
		s.t.Errorf("%v: there is said to be more than %v", what, found)
	}
	slices.Sort(found)
	return found
}

// TestFiles_AreSearchedByTheImagesRipgrep has one folder that cannot be entered, which keeps nothing from being found, and is
// no fault of an expression.
func TestFiles_AreSearchedByTheImagesRipgrep(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	s.in(`command -v rg && mkdir -p src/deep/needles src/closed && cd src && printf 'first\nsecond Needle here\nn.edle (x)\n' > a.txt &&
		printf 'needle 42\nneedle x\n' > deep/needle.go && echo NEEDLE > .hidden && printf 'needle\0' > bin && printf 'gr\303\274n NEEDLE\n' > 'über maß.txt' && chmod 0 closed`)
	type ask = map[string]any
	for _, c := range []struct {
		what ask
		want []string
	}{
		{ask{"in": "content", "query": "needle"}, []string{".hidden:1:1:NEEDLE", "a.txt:2:8:Needle", "deep/needle.go:1:1:needle", "deep/needle.go:2:1:needle", "über maß.txt:1:7:NEEDLE"}},
		{ask{"in": "content", "query": "needle", "case": true}, []string{"deep/needle.go:1:1:needle", "deep/needle.go:2:1:needle"}},
		{ask{"in": "content", "query": "n.edle (", "case": true}, []string{"a.txt:3:1:n.edle ("}},
		{ask{"in": "content", "query": `^needle [0-9]+$`, "regex": true}, []string{"deep/needle.go:1:1:needle 42"}},
		{ask{"in": "content", "query": `\bn[e]+dle\b`, "regex": true, "case": true}, []string{"deep/needle.go:1:1:needle", "deep/needle.go:2:1:needle"}},
		{ask{"in": "content", "query": `GR\x{dc}N (n|x)`, "regex": true}, []string{"über maß.txt:1:1:grün N"}},
		{ask{"in": "content", "query": "--files"}, nil},
		{ask{"in": "content", "query": "is nowhere"}, nil},
		{ask{"in": "content", "query": "is (now)?here$", "regex": true}, nil},
		{ask{"query": "NEEDLE"}, []string{"file deep/needle.go", "folder deep/needles"}},
		{ask{"query": "NEEDLE", "case": true}, nil},
		{ask{"in": "names", "query": "*.txt"}, []string{"file a.txt", "file über maß.txt"}},
	} {
		if got := s.finds(c.what); !slices.Equal(got, c.want) {
			t.Errorf("%v finds %q, want %q", c.what, got, c.want)
		}
	}
	lines := bytes.Split(bytes.TrimSpace(s.search(ask{"path": "src", "in": "content", "query": "needle [0-9]", "regex": true}, "Accept", "application/x-ndjson").is(200).body), []byte("\n"))
	if len(lines) != 2 || !bytes.Contains(lines[0], []byte(`"match":"needle 4"`)) || !bytes.Contains(lines[1], []byte(`"end":true`)) {
		t.Errorf("line by line: %s", lines)
	}
}

// TestFiles_ABadExpressionIsSaidToBeOne whether the answer comes at once or line by line.
func TestFiles_ABadExpressionIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	s.in("mkdir src && echo needle > src/a.txt")
	for _, bad := range []string{"(", "needle)", "[z", "*", "a{2,1}", `\p{Nope}`, "(?P<>x)", "(?=look)", `(x)\1`, strings.Repeat("(", 1000)} {
		for _, headers := range [][]string{nil, {"Accept", "application/x-ndjson"}} {
			got := s.search(map[string]any{"path": "src", "in": "content", "query": bad, "regex": true}, headers...)
			var told struct{ Code, Detail string }
			if got.is(400).into(&told); !strings.Contains(told.Detail, "expression cannot be read") || got.head.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%.20q: %+v %v", bad, told, got.head)
			}
		}
	}
	var told struct{ Detail string }
	if s.search(map[string]any{"query": "n.*e", "regex": true}).is(400).into(&told); !strings.Contains(told.Detail, "not by a regular expression") {
		t.Errorf("of names: %+v", told)
	}
}
