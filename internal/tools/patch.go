package tools

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/tools/risk"
	"sandboxd/internal/wire"
)

func (t *table) applyPatch() spec {
	return spec{
		name: "apply_patch", title: "Apply a patch", changes: true,
		description: "Apply a unified diff to one or more files, as a whole or not at all. Each file begins with the lines --- a/PATH and +++ b/PATH (/dev/null for one that is made or deleted), each place with a line @@. " +
			"The lines around a change must be as they are in the file; the numbers after @@ may be left out. Paths are absolute, or relative to folder.",
		params: []param{
			{name: "patch", kind: isText, required: true, about: "The diff."},
			{name: "folder", kind: isText, about: "What paths are relative to; the home if you say nothing."},
		},
		preview: func(a args) Preview {
			p := Preview{Code: a.text("patch"), Language: "diff", Folder: a.text("folder"), Risk: atLeast(hiddenIn(a.text("folder")), risk.Changing)}
			parsed, err := parsePatch(a.text("patch"))
			if err != nil {
				return p // it will not be applied
			}
			for _, f := range parsed {
				p.Risk = p.Risk.Join(risk.Path(within(a.text("folder"), f.path)))
			}
			return p
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			parsed, err := parsePatch(a.text("patch"))
			if err != nil {
				return failed("The patch cannot be read: " + err.Error() + ". Nothing was changed."), nil
			}
			for i := range parsed {
				parsed[i].path = t.path(within(a.text("folder"), parsed[i].path))
			}
			return t.applyAll(ctx, parsed)
		},
	}
}

// within gives a path of a patch below the folder that is asked for.
func within(folder, p string) string {
	if folder == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") {
		return p
	}
	return strings.TrimSuffix(folder, "/") + "/" + p
}

// applyAll finds out what comes of all files first, and then writes them.
func (t *table) applyAll(ctx context.Context, parsed []filePatch) (Result, error) {
	versions := make([]version, len(parsed))
	for i, f := range parsed {
		v, problem, err := t.patched(ctx, f)
		if err != nil {
			return notWritten(ctx, err)
		}
		if problem != "" {
			return failed(fmt.Sprintf("%s: %s Nothing was changed.", shownPath(f.path), problem)), nil
		}
		versions[i] = v
	}
	for i := range versions {
		if err := t.commit(ctx, parsed[i], &versions[i]); err != nil {
			return t.undo(ctx, parsed[:i], versions[:i], err)
		}
	}
	r := Result{Text: "Applied.\n"}
	for i := range versions {
		c := versions[i].change()
		c.Deleted = parsed[i].remove
		r.Data.Files = append(r.Data.Files, c)
		r.Text += fmt.Sprintf("%s: +%d -%d\n", shownPath(c.Path), c.Added, c.Removed)
	}
	return r, nil
}

// patched gives a file as it will be. problem says to the model why not.
func (t *table) patched(ctx context.Context, f filePatch) (v version, problem string, err error) {
	v = version{path: f.path, created: f.create}
	v.old, v.entry, err = t.whole(ctx, t.seat.Handle, f.path, mostEdit)
	there := err == nil
	switch {
	case f.create && there:
		return v, "It is to be made, and is there already.", nil
	case f.create && fault.Is(err, fault.NotFound):
		v.fresh = []byte(joined(f.hunks[0].new, !f.hunks[0].noEnd))
		v.entry.Path = f.path
		return v, "", nil
	case fault.Is(err, fault.NotFound):
		return v, "There is no such file.", nil
	case err != nil:
		return v, "", err
	case f.remove:
		return v, "", nil
	case !isPlainText(v.old):
		return v, "It is no text.", nil
	}
	fresh, problem := applied(string(v.old), f.hunks)
	v.fresh = []byte(fresh)
	return v, problem, nil
}

func (t *table) commit(ctx context.Context, f filePatch, v *version) error {
	if !f.remove {
		return t.put(ctx, v)
	}
	_, err := t.cfg.Files.Delete(ctx, t.seat.Handle, []string{f.path}, false) // it can be taken out of the trash
	return err
}

// undo puts back what was written before something could not be.
func (t *table) undo(ctx context.Context, parsed []filePatch, versions []version, cause error) (Result, error) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var lost []string
	for i := len(versions) - 1; i >= 0; i-- {
		v := versions[i]
		var err error
		if v.created {
			_, err = t.cfg.Files.Delete(late, t.seat.Handle, []string{v.path}, true)
		} else {
			_, err = t.cfg.Files.Write(late, t.seat.Handle, wire.FilePut{Path: v.path, Size: int64(len(v.old)), Mode: v.entry.Mode & 0o777}, strings.NewReader(string(v.old)))
		}
		if err != nil {
			lost = append(lost, shownPath(parsed[i].path))
		}
	}
	r, err := notWritten(ctx, cause)
	if err != nil {
		return r, err
	}
	if len(lost) > 0 {
		r.Text += " Some files were changed already and could not be put back: " + strings.Join(lost, ", ") + "."
	} else {
		r.Text += " Nothing was changed."
	}
	return r, nil
}

// applied gives a text with all hunks applied. problem says to the model why not.
func applied(content string, hunks []hunk) (out, problem string) {
	crlf := strings.Contains(content, "\r\n")
	lines, end := split(strings.ReplaceAll(content, "\r\n", "\n"))
	var fresh []string
	from, shift := 0, 0 // lines of the old text before it are done
	for i, h := range hunks {
		at, problem := find(lines, h, from, shift)
		if problem != "" {
			return "", fmt.Sprintf("Place %d of %d: %s", i+1, len(hunks), problem)
		}
		if h.at > 0 {
			shift = at - (h.at - 1)
		}
		fresh = append(append(fresh, lines[from:at]...), h.new...)
		from = at + len(h.old)
		if from == len(lines) {
			end = !h.noEnd && (end || len(h.new) > 0)
		}
	}
	out = joined(append(fresh, lines[from:]...), end)
	if crlf {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out, ""
}

// find gives the line at which a hunk applies, from a line on: nearest to where it says, moved as the one before was.
func find(lines []string, h hunk, from, shift int) (at int, problem string) {
	wanted := h.at - 1 + shift
	if len(h.old) == 0 { // only new lines
		switch {
		case len(lines) == 0 || len(lines) == from:
			return from, ""
		case h.at == 0:
			return 0, "it has no line of the file. Give some around the change."
		}
		return min(max(wanted+1, from), len(lines)), "" // behind the line that is named
	}
	var found []int
	for i := from; i+len(h.old) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(h.old)], h.old) {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 0:
		return 0, "its lines are not in the file (after the place before it)." + nearly(strings.Join(lines, "\n"), strings.Join(h.old, "\n"))
	case len(found) == 1:
		return found[0], ""
	case h.at == 0:
		return 0, fmt.Sprintf("its lines are in the file %d times. Give more of the lines around it.", len(found))
	}
	return slices.MinFunc(found, func(a, b int) int { return distance(a, wanted) - distance(b, wanted) }), ""
}

// undoTime bounds putting files back.
const undoTime = time.Minute

func distance(a, b int) int { return max(a-b, b-a) }

// split gives the lines of a text, and whether the last one ends with a line break.
func split(s string) (lines []string, end bool) {
	if s == "" {
		return nil, true
	}
	end = strings.HasSuffix(s, "\n")
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n"), end
}

func joined(lines []string, end bool) string {
	s := strings.Join(lines, "\n")
	if end && len(lines) > 0 {
		s += "\n"
	}
	return s
}
