package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/text"
	"sandboxd/internal/tools/risk"
	"sandboxd/internal/wire"
)

// Bounds of diffs.
const (
	mostDiffed = 512 << 10 // bytes of a file whose lines are compared
	mostDiff   = 64 << 10  // bytes of a diff that are kept
)

func (t *table) writeFile() spec {
	return spec{
		name: "write_file", title: "Write a file", changes: true,
		description: "Write a whole text file; one that is there is replaced, and folders on the way are made. To change a part of a file use edit_file.",
		params: []param{
			{name: "path", kind: isText, required: true, about: "Absolute, or relative to the home."},
			{name: "content", kind: isText, required: true, about: "The whole new content."},
		},
		preview: func(a args) Preview {
			return Preview{Path: a.text("path"), Code: a.text("content"), Language: "text", Risk: risk.Path(a.text("path"))}
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			old, e, err := t.whole(ctx, t.seat.Handle, t.path(a.text("path")), mostDiffed)
			v := version{path: t.path(a.text("path")), old: old, entry: e, fresh: []byte(a.text("content"))}
			switch {
			case fault.Is(err, fault.NotFound):
				v.created = true
			case fault.Is(err, fault.TooLarge):
				v.unknown = true
			case err != nil:
				return notWritten(ctx, err)
			}
			if err := t.put(ctx, &v); err != nil {
				return notWritten(ctx, err)
			}
			done := "Replaced"
			if v.created {
				done = "Made"
			}
			return Result{Text: fmt.Sprintf("%s %s (%s).", done, shownPath(v.entry.Path), text.Size(int64(len(v.fresh)))), Data: Data{Files: []Change{v.change()}}}, nil
		},
	}
}

// version is a file before and after.
type version struct {
	path    string
	entry   files.Entry // before; after put, after
	old     []byte
	fresh   []byte
	created bool
	unknown bool // old is not known
}

// put writes a version, unless the file has changed since it was read.
func (t *table) put(ctx context.Context, v *version) error {
	put := wire.FilePut{Path: v.path, Size: int64(len(v.fresh)), IfMatch: v.entry.ETag, IfNone: v.created, Parents: true}
	w, err := t.cfg.Files.Write(ctx, t.seat.Handle, put, bytes.NewReader(v.fresh))
	if err == nil {
		v.entry = w.Entry
	}
	return err
}

func notWritten(ctx context.Context, err error) (Result, error) {
	switch {
	case errors.Is(err, files.ErrChanged):
		return failed("The file has changed since it was read, and nothing was written. Read it again."), nil
	case errors.Is(err, files.ErrIsFolder):
		return failed("That is a folder, and nothing was written."), nil
	}
	return ended(ctx, err)
}

// change says what was done.
func (v *version) change() Change {
	c := Change{Path: v.entry.Path, Created: v.created}
	if v.unknown || len(v.fresh) > mostDiffed || len(v.old) > mostDiffed || !isPlainText(v.old) || !isPlainText(v.fresh) {
		return c
	}
	c.setDiff(string(v.old), string(v.fresh))
	return c
}

// Compare says how a file's text changed, as the tools that write do.
func Compare(path, old, fresh string) Change {
	c := Change{Path: path}
	if len(old) <= mostDiffed && len(fresh) <= mostDiffed && isPlainText([]byte(old)) && isPlainText([]byte(fresh)) {
		c.setDiff(old, fresh)
	}
	return c
}

func (c *Change) setDiff(old, fresh string) {
	name := shownPath(c.Path)
	diff := udiff.Unified("a/"+strings.TrimPrefix(name, "/"), "b/"+strings.TrimPrefix(name, "/"), old, fresh)
	inHunk := false
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@"):
			inHunk = true
		case inHunk && line[0] == '+':
			c.Added++
		case inHunk && line[0] == '-':
			c.Removed++
		}
	}
	if len(diff) > mostDiff {
		diff, c.Cut = diff[:strings.LastIndexByte(diff[:mostDiff], '\n')+1], true
	}
	c.Diff, c.Same = diff, old == fresh
}

func isPlainText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

func (t *table) editFile() spec {
	return spec{
		name: "edit_file", title: "Edit a file", changes: true,
		description: "Replace a text in a file by another one. The old text must be in the file exactly as you give it, with all spaces and line breaks, and just once: give enough lines around the place to make it unique, " +
			"or set replace_all. Read the file first.",
		params: []param{
			{name: "path", kind: isText, required: true, about: "Absolute, or relative to the home."},
			{name: "old", kind: isText, required: true, about: "The text to replace."},
			{name: "new", kind: isText, required: true, about: "What to put in its place; empty to delete it."},
			{name: "replace_all", kind: isFlag, about: "Replace it wherever it is."},
		},
		preview: func(a args) Preview {
			c := Change{Path: a.text("path")}
			c.setDiff(a.text("old"), a.text("new"))
			p := Preview{Path: a.text("path"), Code: c.Diff, Language: "diff", Risk: risk.Path(a.text("path"))}
			if c.Cut {
				p.Code = "- " + a.text("old") + "\n+ " + a.text("new")
			}
			return p
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			old, e, err := t.whole(ctx, t.seat.Handle, t.path(a.text("path")), mostEdit)
			if err != nil {
				return notWritten(ctx, err)
			}
			fresh, n, problem := replaced(string(old), a.text("old"), a.text("new"), a.flag("replace_all", false))
			if problem != "" {
				return failed(problem), nil
			}
			v := version{path: t.path(a.text("path")), old: old, entry: e, fresh: []byte(fresh)}
			if err := t.put(ctx, &v); err != nil {
				return notWritten(ctx, err)
			}
			r := Result{Data: Data{Files: []Change{v.change()}}}
			r.Text = fmt.Sprintf("Edited %s: %s.", shownPath(v.entry.Path), times(n))
			return r, nil
		},
	}
}

func times(n int) string {
	if n == 1 {
		return "one place"
	}
	return fmt.Sprintf("%d places", n)
}

// replaced gives the content with old replaced by fresh, and in how many places. problem says to the model why not.
func replaced(content, old, fresh string, all bool) (out string, n int, problem string) {
	switch {
	case !isPlainText([]byte(content)):
		return "", 0, "The file is no text."
	case old == "":
		return "", 0, "The old text is empty. To write a whole file use write_file."
	case old == fresh:
		return "", 0, "The new text is the same as the old one."
	}
	if n = strings.Count(content, old); n == 0 && strings.Contains(content, "\r\n") && !strings.Contains(old, "\r") {
		old, fresh = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(fresh, "\n", "\r\n")
		n = strings.Count(content, old)
	}
	switch {
	case n == 0:
		return "", 0, "The old text is not in the file." + nearly(content, old)
	case n > 1 && !all:
		return "", 0, fmt.Sprintf("The old text is in the file %d times, at lines %s. Give more of the lines around the place that you mean, or set replace_all.", n, places(content, old))
	}
	return strings.ReplaceAll(content, old, fresh), n, ""
}

// mostPlaces bounds the places that are told.
const mostPlaces = 10

// places gives the lines at which a text begins.
func places(content, s string) string {
	var at []string
	for from := 0; len(at) < mostPlaces; {
		i := strings.Index(content[from:], s)
		if i < 0 {
			return strings.Join(at, ", ")
		}
		at = append(at, fmt.Sprint(1+strings.Count(content[:from+i], "\n")))
		from += i + len(s)
	}
	return strings.Join(at, ", ") + " …"
}

// nearly says where a text is that differs in spaces alone, or where its first line is.
func nearly(content, old string) string {
	wanted := strings.Split(strings.TrimSpace(old), "\n")
	have := strings.Split(content, "\n")
	first := squeezed(wanted[0])
	if first == "" {
		return " Read it again."
	}
	for i := range have {
		if squeezed(have[i]) != first {
			continue
		}
		same := len(have)-i >= len(wanted)
		for k := 0; same && k < len(wanted); k++ {
			same = squeezed(have[i+k]) == squeezed(wanted[k])
		}
		if same {
			return fmt.Sprintf(" There is one at line %d that differs in spaces or tabs only. Read it again and give it exactly.", i+1)
		}
		return fmt.Sprintf(" Its first line is at line %d, but what follows differs. Read it again.", i+1)
	}
	return " Read it again."
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }
