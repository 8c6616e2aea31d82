package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTree_KeepsTheRules(t *testing.T) {
	found, err := Check(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

const goodComment = "// Package %s is a test's.\n//\n// It is nothing else.\n//\n// Invariant: none.\n"

// tree writes files ("path" to source) into a folder of their own.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, source := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// rules gives the violations of a tree as "path:line rule".
func rules(t *testing.T, files map[string]string) []string {
	t.Helper()
	found, err := check(tree(t, files), nil)
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, v := range found {
		short = append(short, fmt.Sprintf("%s:%d %s", v.File, v.Line, v.Rule))
	}
	return short
}

func good(name, rest string) string {
	return fmt.Sprintf(goodComment, name) + "package " + name + "\n" + rest
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestImports_ArrowsGoDown(t *testing.T) {
	want(t, rules(t, map[string]string{
		"internal/fault/a.go":       good("fault", `import _ "sandboxd/internal/sandbox"`),
		"internal/sandbox/a.go":     good("sandbox", `import _ "sandboxd/internal/fault"`),
		"internal/docker/a.go":      good("docker", `import _ "sandboxd/internal/sqlite"`),
		"internal/sqlite/a.go":      good("sqlite", `import _ "sandboxd/internal/sandboxtest"`),
		"internal/sqlite/b_test.go": "package sqlite\nimport _ \"sandboxd/internal/sandboxtest\"\n",
		"internal/guest/tty/a.go":   good("tty", `import _ "sandboxd/internal/wire"`),
		"web/a.go":                  good("web", "import (\n_ \"sandboxd/internal/auth\"\n_ \"sandboxd/internal/sqlite\"\n)"),
		"cmd/sandboxd/main.go":      "// Command sandboxd.\npackage main\nimport _ \"sandboxd/internal/sqlite\"\nfunc main() {}\n",
	}), "internal/docker/a.go:7 import", "internal/fault/a.go:7 import", "internal/sqlite/a.go:7 import", "web/a.go:9 import")
}

func TestImports_DriversHaveOneOwner(t *testing.T) {
	want(t, rules(t, map[string]string{
		"internal/docker/a.go":       good("docker", "import (\n_ \"github.com/docker/docker/client\"\n_ \"github.com/docker/go-units\"\n)"),
		"internal/sandbox/a.go":      good("sandbox", "import (\n_ \"github.com/docker/docker/client\"\n_ \"log/slog\"\n_ \"math/rand/v2\"\n)"),
		"internal/sandbox/a_test.go": "package sandbox\nimport (\n_ \"github.com/google/go-cmp/cmp\"\n_ \"github.com/stretchr/testify/assert\"\n)\n",
		"internal/event/a.go":        good("event", "import (\n_ \"github.com/google/go-cmp/cmp\"\n_ \"example.com/new\"\n_ \"io/ioutil\"\n)"),
		"internal/guest/tty/a.go":    good("tty", `import _ "github.com/creack/pty"`),
	}), "internal/event/a.go:8 import", "internal/event/a.go:9 import", "internal/event/a.go:10 import", "internal/sandbox/a.go:8 import",
		"internal/sandbox/a_test.go:4 import")
}

func TestPackages_HaveALayerANameAndAComment(t *testing.T) {
	want(t, rules(t, map[string]string{
		"internal/surprise/a.go": good("surprise", ""),
		"internal/fault/a.go":    "package fault\n",
		"internal/event/a.go":    "// Package event is short.\npackage event\n",
		"internal/wire/a.go":     good("wire", ""),
		"internal/wire/b.go":     good("wire", ""),
		"internal/auth/a.go":     strings.Replace(good("auth", ""), "Package auth", "Paket auth", 1),
		"internal/access/a.go":   good("util", ""),
	}), "internal/access/a.go:6 package name", "internal/auth/a.go:1 package comment", "internal/event/a.go:1 package comment",
		"internal/fault/a.go:1 package comment", "internal/surprise/a.go:6 layer", "internal/wire/b.go:1 package comment")
}

func TestMethods_OfATypeHaveALimit(t *testing.T) {
	of := func(name string, n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("func (%s) m%d() {}\n", name, i)
		}
		return text
	}
	want(t, rules(t, map[string]string{
		"internal/fault/a.go": good("fault", "type many struct{}\ntype few struct{}\n"+of("*many", maxMethods)),
		"internal/fault/b.go": "package fault\nfunc (many) more() {}\n" + of("few", maxMethods),
	}), "internal/fault/a.go:9 methods")
}

func TestSizes_HaveLimits(t *testing.T) {
	body := strings.Repeat("_ = 0\n", maxFunction-1)
	want(t, rules(t, map[string]string{
		"internal/fault/fault.go": good("fault", ""),
		"internal/fault/func.go": "package fault\nfunc f() {\n" + body + "}\nfunc g() {\n" + strings.TrimSuffix(body, "_ = 0\n") + "}\n" +
			"func h(a, b, c int, d string, e, f, g bool) {}\nfunc i(int, int, int, int, int, int) {}\n",
		"internal/fault/long.go":      "package fault\n" + strings.Repeat("\n", maxLines),
		"internal/fault/fits.go":      "package fault\n" + strings.Repeat("\n", maxLines-1),
		"internal/fault/generated.go": "// Code generated by a test. DO NOT EDIT.\n\npackage fault\n" + strings.Repeat("\n", maxLines),
	}), "internal/fault/func.go:2 function size", "internal/fault/func.go:123 parameters", "internal/fault/long.go:1 file size")
}

func TestDocs_AreOnEveryExportedName(t *testing.T) {
	want(t, rules(t, map[string]string{
		"internal/fault/a.go": good("fault", `type A int
// B is.
type B int
func (a A) Method() {}
func (b *B) Method() {}
func (h hidden) Method() {}
type hidden int
// C and D are.
const (
	C = 1
	D = 2
)
const E = 1
var (
	F = 1 // is
	G = 1
)
func H() {}
// Generic is.
type Generic[T any] struct{ X T }
func (g *Generic[T]) Method() {}
`),
		"internal/fault/a_test.go": "package fault\nfunc TestX() {}\n",
	}), "internal/fault/a.go:7 docs", "internal/fault/a.go:10 docs", "internal/fault/a.go:11 docs", "internal/fault/a.go:19 docs",
		"internal/fault/a.go:22 docs", "internal/fault/a.go:24 docs", "internal/fault/a.go:27 docs")
}

func TestBanned_SleepsSkipsAndErrorTexts(t *testing.T) {
	source := `
func f() {
	time.Sleep(1)
	t.Skip()
	_ = err.Error() == "x"
	_ = strings.Contains(err.Error(), "x")
	switch err.Error() {
	}
	log(err.Error())
	_ = rec.Error(1) == 1
}
`
	want(t, rules(t, map[string]string{
		"internal/fault/a.go":      good("fault", source),
		"internal/fault/a_test.go": "package fault\n" + source,
	}), "internal/fault/a.go:11 error text", "internal/fault/a.go:12 error text", "internal/fault/a.go:13 error text",
		"internal/fault/a_test.go:4 sleep", "internal/fault/a_test.go:5 skip")
}

func TestBanned_ARowIsNoHandle(t *testing.T) {
	source := `
func f() {
	_ = box.Ref()
	_ = h.Ref()
	_ = a.handle.Ref()
}
`
	want(t, rules(t, map[string]string{"internal/ide/a.go": good("ide", source), "internal/idle/a.go": good("idle", source)}), "internal/ide/a.go:9 row")
}

func TestBanned_FakeTimeMaySleep(t *testing.T) {
	want(t, rules(t, map[string]string{
		"internal/fault/a.go": good("fault", ""),
		"internal/fault/a_test.go": `package fault
func f() {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1)
	})
}
func g() {
	bubble(func() {
		time.Sleep(1)
		synctest.Wait()
	})
}
func h() {
	time.Sleep(1)
}
`}), "internal/fault/a_test.go:14 sleep")
}

func TestCheck_TellsOfWhatDoesNotParseAndLeavesForeignModulesAlone(t *testing.T) {
	want(t, rules(t, map[string]string{
		"internal/fault/a.go":          good("fault", ""),
		"internal/fault/b.go":          "package fault\nfunc {",
		"tools/go.mod":                 "module tools\n",
		"tools/x.go":                   "package util\n",
		"node_modules/x/x.go":          "package util\n",
		"internal/fault/testdata/x.go": "package util\n",
	}), "internal/fault/b.go:1 parse")
}

func TestExcept_AnExceptionNeedsAReasonAndAUse(t *testing.T) {
	exceptions := []exception{
		{"a.go", "docs", "Old", "kept for a year"},
		{"a.go", "docs", "New", ""},
		{"b.go", "docs", "Gone", "no more"},
	}
	got := except([]Violation{{"a.go", 1, "docs", "Old is"}, {"a.go", 2, "docs", "New is"}, {"a.go", 3, "sleep", "Old"}}, exceptions)
	var short []string
	for _, v := range got {
		short = append(short, v.File+" "+v.Rule)
	}
	want(t, short, "a.go docs", "a.go sleep", "a.go exception", "b.go exception")
}
