package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/wire"
)

// searchFor gives what is found, as path:line:column:[match].
func (b *box) searchFor(s wire.Search) (found []string, more bool, err error) {
	b.t.Helper()
	must(b.t, s.Check())
	a, err := b.form(wire.FilesSearch, s.Values())
	if err != nil {
		return nil, false, err
	}
	for _, f := range a.found {
		text := ""
		if s.In == wire.SearchContent {
			text = fmt.Sprintf(":%d:%d:[%s]", f.Line, f.Column, f.Text[f.Start:f.End])
		}
		found = append(found, f.Path+text)
	}
	slices.Sort(found)
	var cut int64
	must(b.t, wire.DecodeNumbers(a.end, &cut))
	return found, cut > 0, nil
}

func searchBox(t *testing.T) *box {
	b := newBox(t, 1000)
	b.put("home/a.txt", "first\nsecond Needle here\r\nno newline NEEDLE")
	b.put("home/d/deep.go", strings.Repeat("x", 1000)+"needle"+strings.Repeat("y", 1000)+"\n")
	b.put("home/d/bad\xffname", "n\xffeedle needle\n")
	b.put("home/uml.txt", "GR\u00dcN \u00fcber\n")
	b.put("home/binary", "needle\x00needle\n")
	b.put("home/.git/x", "needle\n")
	b.put("home/empty", "")
	b.put("home/.hidden", "needle\n")
	b.put("home/-regexp", "n.edle\n")
	must(t, os.WriteFile(b.host("home/closed"), []byte("needle"), 0o600))
	return b
}

func TestSearchContents_FindsLines(t *testing.T) {
	b := searchBox(t)
	for _, c := range []struct {
		search wire.Search
		want   []string
	}{
		{wire.Search{Path: ".", Query: "needle", Case: true}, []string{".hidden:1:1:[needle]", "d/bad\xffname:1:9:[needle]", "d/deep.go:1:1001:[needle]"}},
		{wire.Search{Path: "/home", Query: "nEEdle"}, []string{".hidden:1:1:[needle]", "a.txt:2:8:[Needle]", "a.txt:3:12:[NEEDLE]",
			"d/bad\xffname:1:9:[needle]", "d/deep.go:1:1001:[needle]"}},
		{wire.Search{Path: "/home/d", Query: "needley"}, []string{"deep.go:1:1001:[needley]"}},
		{wire.Search{Path: "/home", Query: "gr\u00fcn"}, []string{"uml.txt:1:1:[GR\u00dcN]"}},
		{wire.Search{Path: "/home", Query: "n.edle"}, []string{"-regexp:1:1:[n.edle]"}},
		{wire.Search{Path: "/home", Query: "nowhere"}, nil},
	} {
		c.search.In = wire.SearchContent
		if got, more, err := b.searchFor(c.search); !slices.Equal(got, c.want) || more || err != nil {
			t.Errorf("%+v: got %q, %v, %v", c.search, got, more, err)
		}
	}
	if got, more, err := b.searchFor(wire.Search{Path: "/", Query: "needle", In: wire.SearchContent, Limit: 2}); len(got) != 2 || !more || err != nil {
		t.Errorf("got %q, %v, %v", got, more, err)
	}
	if _, _, err := b.searchFor(wire.Search{Path: "/", Query: "n.*e", In: wire.SearchContent, Regex: true}); code(err) != wire.CodeConflict || !strings.Contains(err.Error(), "ripgrep") {
		t.Errorf("got %v", err)
	}
	if _, _, err := b.searchFor(wire.Search{Path: "a.txt", Query: "x", In: wire.SearchContent}); code(err) != wire.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestSearchNames_FindsPartsAndGlobs(t *testing.T) {
	b := searchBox(t)
	for _, c := range []struct {
		search wire.Search
		want   []string
	}{
		{wire.Search{Query: "EEP"}, []string{"d/deep.go"}},
		{wire.Search{Query: "EEP", Case: true}, nil},
		{wire.Search{Query: "*.txt"}, []string{"a.txt", "uml.txt"}},
		{wire.Search{Query: "?"}, []string{"d", ".git/x"}},
		{wire.Search{Query: "\xff"}, []string{"d/bad\xffname"}},
	} {
		c.search.Path, c.search.In = "/home", wire.SearchNames
		slices.Sort(c.want)
		if got, _, err := b.searchFor(c.search); !slices.Equal(got, c.want) || err != nil {
			t.Errorf("%+v: got %q, %v", c.search, got, err)
		}
	}
	if _, _, err := b.searchFor(wire.Search{Path: "/", Query: "[", In: wire.SearchNames}); code(err) != wire.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

// ripgrepSays is a program that notes how it was called, in NOTES, and says what ripgrep 13 says.
const ripgrepSays = `#!/bin/sh
{ pwd -P; id -u; printf '%s\n' "$@"; } > 'NOTES'
cat <<'END'
{"type":"begin","data":{"path":{"text":"./a.txt"}}}
{"type":"match","data":{"path":{"text":"./a.txt"},"lines":{"text":"second Needle here\r\n"},"line_number":2,"absolute_offset":6,"submatches":[{"match":{"text":"Needle"},"start":7,"end":13}]}}
{"type":"match","data":{"path":{"bytes":"Li9kL2JhZP9uYW1l"},"lines":{"bytes":"bv9lZWRsZSBuZWVkbGUK"},"line_number":1,"absolute_offset":0,"submatches":[{"match":{"text":"needle"},"start":8,"end":14}]}}
{"type":"match","data":{"path":{"text":"../outside"},"lines":{"text":"x\n"},"line_number":1,"submatches":[{"match":{"text":"x"},"start":0,"end":1}]}}
{"type":"match","data":{"path":{"text":"./bad"},"lines":{"text":"x\n"},"line_number":1,"submatches":[{"match":{"text":"x"},"start":-4,"end":100}]}}
not JSON at all
{"type":"summary","data":{}}
END
exit 1
`

func TestSearchContents_ByRipgrepWhereThereIsOne(t *testing.T) {
	b := searchBox(t)
	program, notes := filepath.Join(t.TempDir(), "rg"), b.host("home/notes")
	must(t, os.WriteFile(program, []byte(strings.ReplaceAll(ripgrepSays, "NOTES", notes)), 0o755))
	for dir := filepath.Dir(program); dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	b.tree.cfg.Find = func(string) string { return program }
	got, more, err := b.searchFor(wire.Search{Path: "d/..", Query: "--n[e]dle", In: wire.SearchContent, Regex: true})
	if want := []string{"a.txt:2:8:[Needle]", "d/bad\xffname:1:9:[needle]"}; !slices.Equal(got, want) || more || err != nil {
		t.Errorf("got %q, %v, %v", got, more, err)
	}
	told, err := os.ReadFile(notes)
	must(t, err)
	lines := strings.Split(string(told), "\n")
	if lines[0] != b.host("home") || lines[1] != "1000" || !slices.Contains(lines, "--regexp=--n[e]dle") || !slices.Contains(lines, "--no-follow") {
		t.Errorf("called as %q", lines)
	}
}

// TestSearchContents_OnlyABadExpressionIsOne: ripgrep fails with the same code when there is a folder that it may not read.
func TestSearchContents_OnlyABadExpressionIsOne(t *testing.T) {
	b := searchBox(t)
	program := filepath.Join(t.TempDir(), "rg")
	for dir := filepath.Dir(program); dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	b.tree.cfg.Find = func(string) string { return program }
	for said, want := range map[string]string{"": wire.CodeInvalid, `{"type":"summary","data":{}}`: ""} {
		must(t, os.WriteFile(program, []byte("#!/bin/sh\necho '"+said+"'\nexit 2\n"), 0o755))
		if got, _, err := b.searchFor(wire.Search{Path: "/home", Query: "x(", In: wire.SearchContent, Regex: true}); len(got) > 0 || code(err) != want {
			t.Errorf("%q: got %q, %v", said, got, err)
		}
	}
}

// FuzzSearchLine: with any line, a result is within its bounds.
func FuzzSearchLine(f *testing.F) {
	f.Add([]byte("a Needle b"), "needle", false)
	f.Add([]byte("GR\u00dcN\xff"), "gr\u00fcn", false)
	f.Fuzz(func(t *testing.T, line []byte, query string, inCase bool) {
		s := wire.Search{Query: query, In: wire.SearchContent, Case: inCase}
		if s.Check() != nil {
			return
		}
		m, err := (&finding{Search: s}).matcher()
		must(t, err)
		start, end := m(line)
		if start < 0 {
			return
		}
		if x := foundIn("p", 1, line, start, end); x.Check() != nil {
			t.Errorf("%q in %q gives %+v", query, line, x)
		}
	})
}
