package tools_test

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFile_GivesPartsWithNumbers(t *testing.T) {
	b := live(t)
	b.put("a.txt", "one\r\ntwo\nthree")
	if r := b.do("read_file", in{"path": "a.txt"}); r.Text != "1\tone\n2\ttwo\n3\tthree\n" {
		t.Errorf("got %q", r.Text)
	}
	if r := b.do("read_file", in{"path": filepath.Join(b.home, "a.txt"), "from_line": 2, "lines": 1}); !strings.HasPrefix(r.Text, "2\ttwo\n[There is more: read on with from_line 3.") {
		t.Errorf("got %q", r.Text)
	}
	b.put("long.txt", strings.Repeat(strings.Repeat("x", 3000)+"\n", 100))
	if r := b.do("read_file", in{"path": "long.txt"}); len(r.Text) > 30_000 || !strings.Contains(r.Text, "[1000 bytes of this line left out]") || !strings.Contains(r.Text, "read on with from_line") {
		t.Errorf("%d bytes", len(r.Text))
	}
	b.put("empty", "")
	if r := b.do("read_file", in{"path": "empty"}); r.Text != "[The file is empty.]" {
		t.Errorf("got %q", r.Text)
	}
	b.put("binary", "a\x00b")
	b.fails("read_file", in{"path": "binary"}, "no text")
	b.fails("read_file", in{"path": "a.txt", "from_line": 9}, "only 3 lines")
	b.fails("read_file", in{"path": "."}, "folder")
	b.fails("read_file", in{"path": "none"}, "no")
	var pic bytes.Buffer
	png.Encode(&pic, image.NewGray(image.Rect(0, 0, 2, 2)))
	b.put("p.png", pic.String())
	if r := b.do("read_file", in{"path": "p.png"}); len(r.Images) != 1 || !bytes.Equal(r.Images[0].Bytes, pic.Bytes()) {
		t.Errorf("got %+v", r)
	}
}

func TestWriteFile_MakesAndReplaces(t *testing.T) {
	b := live(t)
	r := b.do("write_file", in{"path": "d/e/a.txt", "content": "one\n"})
	b.has("d/e/a.txt", "one\n")
	if c := r.Data.Files; len(c) != 1 || !c[0].Created || c[0].Added != 1 || !strings.Contains(c[0].Diff, "+one") || c[0].Path != filepath.Join(b.home, "d/e/a.txt") {
		t.Errorf("got %+v", c)
	}
	r = b.do("write_file", in{"path": "d/e/a.txt", "content": "two\n-- x\n"})
	b.has("d/e/a.txt", "two\n-- x\n")
	if c := r.Data.Files; len(c) != 1 || c[0].Created || c[0].Added != 2 || c[0].Removed != 1 || c[0].Same {
		t.Errorf("got %+v", c)
	}
	r = b.do("write_file", in{"path": "d/e/a.txt", "content": "two\n-- x\n"})
	if c := r.Data.Files; len(c) != 1 || !c[0].Same || c[0].Diff != "" {
		t.Errorf("the same text again: got %+v", c)
	}
	b.fails("write_file", in{"path": "d", "content": "x"}, "folder")
	b.fails("write_file", in{"path": "/proc/x", "content": "x"}, "")
}

func TestEditFile_SaysWhyItDoesNot(t *testing.T) {
	b := live(t)
	b.put("a.go", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	b.fails("edit_file", in{"path": "a.go", "old": "return 1", "new": "return 2"}, "2 times, at lines 2, 6")
	b.fails("edit_file", in{"path": "a.go", "old": "return 3", "new": "return 2"}, "not in the file")
	b.fails("edit_file", in{"path": "a.go", "old": "func a() {\n    return 1", "new": "x"}, "at line 1 that differs in spaces")
	b.fails("edit_file", in{"path": "a.go", "old": "func b() {\n\treturn 7", "new": "x"}, "first line is at line 5")
	b.fails("edit_file", in{"path": "a.go", "old": "", "new": "x"}, "empty")
	b.fails("edit_file", in{"path": "a.go", "old": "x", "new": "x"}, "same")
	b.fails("edit_file", in{"path": "none", "old": "x", "new": "y"}, "")
	r := b.do("edit_file", in{"path": "a.go", "old": "func a() {\n\treturn 1", "new": "func a() {\n\treturn 2"})
	if c := r.Data.Files; len(c) != 1 || c[0].Added != 1 || c[0].Removed != 1 || !strings.Contains(c[0].Diff, "-\treturn 1\n+\treturn 2\n") {
		t.Errorf("got %+v", c)
	}
	r = b.do("edit_file", in{"path": "a.go", "old": "return", "new": "yield", "replace_all": true})
	if !strings.Contains(r.Text, "2 places") {
		t.Errorf("got %q", r.Text)
	}
	b.has("a.go", "func a() {\n\tyield 2\n}\n\nfunc b() {\n\tyield 1\n}\n")
	b.put("dos.txt", "one\r\ntwo\r\n")
	b.do("edit_file", in{"path": "dos.txt", "old": "one\ntwo", "new": "1\n2"})
	b.has("dos.txt", "1\r\n2\r\n")
}

func TestApplyPatch_IsWholeOrNot(t *testing.T) {
	b := live(t)
	b.put("p/a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")
	b.put("p/gone.txt", "x\n")
	patch := "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n@@ -7,2 +7,3 @@\n 7\n 8\n+9\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+--- b\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
	b.fails("apply_patch", in{"patch": strings.Replace(patch, " 8", " eight", 1), "folder": "p"}, "Place 2 of 2: its lines are not in the file")
	b.has("p/a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")
	r := b.do("apply_patch", in{"patch": patch, "folder": "p"})
	b.has("p/a.txt", "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n")
	b.has("p/new.txt", "a\n--- b\n")
	if _, err := os.Stat(filepath.Join(b.home, "p/gone.txt")); err == nil {
		t.Error("it is still there")
	}
	if c := r.Data.Files; len(c) != 3 || c[0].Added != 2 || c[0].Removed != 1 || !c[1].Created || !c[2].Deleted {
		t.Errorf("got %+v", c)
	}
	b.do("apply_patch", in{"patch": "*** Begin Patch\n*** Update File: p/a.txt\n@@\n 3\n-4\n+four\n*** Add File: q.txt\n+hi\n*** End Patch"})
	b.has("p/a.txt", "1\ntwo\n3\nfour\n5\n6\n7\n8\n9\n")
	b.has("q.txt", "hi\n")
	for patch, says := range map[string]string{
		"":                                 "no file",
		"hello":                            "no file",
		"--- a/x\n+++ b/y\n@@\n-a\n+b\n":   "renamed",
		"--- a/none\n+++ b/none\n@@\n-a":   "no such file",
		"--- a/q.txt\n+++ b/q.txt\n":       "nothing of what to change",
		"--- a/q.txt\n+++ b/q.txt\n-hi\n":  "@@ is missing",
		"--- /dev/null\n+++ b/q.txt\n@@\n": "there already",
		"--- a/q.txt\n+++ b/q.txt\n@@\n-hi\n--- a/q.txt\n+++ b/q.txt\n@@\n-hi\n": "twice",
		"--- a/q.txt\n+++ b/q.txt\n@@\n*hi\n":                                    "must begin with a space",
	} {
		b.fails("apply_patch", in{"patch": patch}, says)
	}
	b.has("q.txt", "hi\n")
}

func TestFolders_AreListedAndSearched(t *testing.T) {
	b := live(t)
	b.put("src/a.go", "package a // needle\n")
	b.put("src/evil\nname.go", "x")
	if r := b.do("list_folder", in{"path": "src"}); !strings.Contains(r.Text, "a.go  20 B") || !strings.Contains(r.Text, `"evil\nname.go"`) {
		t.Errorf("got %q", r.Text)
	}
	if r := b.do("list_folder", in{}); !strings.Contains(r.Text, "src/\n") {
		t.Errorf("got %q", r.Text)
	}
	if r := b.do("search_files", in{"query": "NEEDLE"}); !strings.Contains(r.Text, "src/a.go:1: package a // needle\n") {
		t.Errorf("got %q", r.Text)
	}
	if r := b.do("search_files", in{"query": "*.go", "in": "names", "folder": "src"}); strings.Count(r.Text, "\n") != 2 {
		t.Errorf("got %q", r.Text)
	}
	if r := b.do("search_files", in{"query": "nothing like it"}); r.Text != "[Nothing was found.]" {
		t.Errorf("got %q", r.Text)
	}
	b.fails("search_files", in{"query": "(", "regex": true}, "")
	b.fails("list_folder", in{"path": "none"}, "")
}
