// Package archtest checks the shape of the code: who imports whom, how large things may grow, and what is said about
// them. Its tests run over the whole tree, so that a broken rule is a failed test; so do those of the pages in docs.
//
// It does not judge behaviour and compiles nothing: it reads source, which takes well under a second.
//
// Invariant: a rule is raised or excepted only in this package's tables, where the reason stands beside it, and every
// violation is told at once, each with its file and line.
package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is our module's path: how imports of our own packages begin.
const Module = "sandboxd"

// Violation is one place that breaks one rule.
type Violation struct {
	File string // slash path from the root
	Line int
	Rule string // short and stable: "import", "file size"
	Text string
}

// String gives the violation as editors and terminals can jump to it.
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", v.File, v.Line, v.Rule, v.Text)
}

// file is one Go file of the tree.
type file struct {
	path  string // slash path from the root
	set   *token.FileSet
	tree  *ast.File
	lines int
	test  bool
}

// folder is the package's path below the module; "" is the root.
func (f *file) folder() string {
	if dir := path.Dir(f.path); dir != "." {
		return dir
	}
	return ""
}

func (f *file) violation(at token.Pos, rule, format string, args ...any) Violation {
	return Violation{f.path, f.set.Position(at).Line, rule, fmt.Sprintf(format, args...)}
}

// Check reads every Go file below root and gives all violations but the excepted ones, by file and line. The error is
// for a tree that cannot be read; a file that does not parse is a violation.
func Check(root string) ([]Violation, error) { return check(root, exceptions) }

func check(root string, allowed []exception) ([]Violation, error) {
	files, found, err := load(root)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		for _, check := range []func(*file) []Violation{checkImports, checkSizes, checkDocs, checkBanned} {
			found = append(found, check(f)...)
		}
	}
	found = append(found, checkPackages(files)...)
	found = except(found, allowed)
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
	return found, nil
}

// load parses the tree. What is generated, vendored, or a module of its own is not ours to judge.
func load(root string) (files []*file, broken []Violation, err error) {
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, name, entry.Name())
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parse(set, name, filepath.ToSlash(rel))
		if err != nil {
			broken = append(broken, Violation{filepath.ToSlash(rel), 1, "parse", err.Error()})
			return nil
		}
		if !ast.IsGenerated(f.tree) {
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the tree: %w", err)
	}
	return files, broken, nil
}

// enter says whether to look into a folder.
func enter(root, name, base string) error {
	if name == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || slices.Contains([]string{"node_modules", "testdata", "vendor", "dist", "bin", "artifacts"}, base) {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func parse(set *token.FileSet, name, rel string) (*file, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	lines := strings.Count(string(source), "\n")
	return &file{path: rel, set: set, tree: tree, lines: lines, test: strings.HasSuffix(rel, "_test.go")}, nil
}
