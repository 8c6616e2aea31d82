package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Bounds on what a newcomer is to read in one go.
const (
	maxReadme   = 14_000 // bytes
	maxGlossary = 60     // lines
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPages_AreShort(t *testing.T) {
	if n := len(page(t, "README.md")); n >= maxReadme {
		t.Errorf("README.md has %d bytes, %d at most: move what is too much to a page in docs", n, maxReadme)
	}
	if n := strings.Count(page(t, "docs/GLOSSARY.md"), "\n"); n > maxGlossary {
		t.Errorf("docs/GLOSSARY.md has %d lines, %d at most", n, maxGlossary)
	}
}

// links finds the targets of Markdown links and pictures.
var links = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestPages_LinkToWhatIsThere(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages in docs", err)
	}
	for _, name := range append(pages, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(link[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(name), link[1], err)
			}
		}
	}
}

// codeNames finds what stands in backticks.
var codeNames = regexp.MustCompile("`([^`\n]*)`")

func TestRequestFlow_NamesWhatIsInTheCode(t *testing.T) {
	files, broken, err := load(filepath.Join("..", ".."))
	if err != nil || len(broken) > 0 {
		t.Fatal(err, broken)
	}
	known := map[string]bool{}
	for _, f := range files {
		if !f.test {
			declare(known, f)
		}
	}
	names := codeNames.FindAllStringSubmatch(page(t, "docs/request-flow.md"), -1)
	if len(names) < 40 {
		t.Fatalf("the page has %d names", len(names))
	}
	for _, name := range names {
		if !known[name[1]] {
			t.Errorf("docs/request-flow.md names %s, which is not in the code", name[1])
		}
	}
}

// declare notes what f declares, as "package.Name" or "package.Type.Name", where the package is its folder without
// internal/ or cmd/: "guest/files.Tree.ServeHTTP".
func declare(known map[string]bool, f *file) {
	folder := strings.TrimPrefix(strings.TrimPrefix(f.folder(), "internal/"), "cmd/")
	for _, decl := range f.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			known[folder+"."+name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					known[folder+"."+s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						known[folder+"."+name.Name] = true
					}
				}
			}
		}
	}
}
