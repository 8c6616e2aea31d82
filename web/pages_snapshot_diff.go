package web

import (
	"context"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// Bounds of what the page of changes shows.
const (
	shownChanges = 1000
	shownLines   = 3000
)

// pageDiff shows what has changed in the home since a snapshot, and in the file that ?path= names, line by line.
func (s *snapshotHandlers) pageDiff(ctx context.Context, r *request) (templ.Component, error) {
	h, n, err := s.snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.SnapshotDiff{
		Frame: s.frame(r, "Changes in "+boxTitle(box), "sandboxes"), Name: box.Name, Title: boxTitle(box), Snapshots: sameURL(box, snapshotsPart),
		About: s.about(n), Path: r.query("path"),
	}
	c, err := s.cfg.Snapshots.Compare(ctx, box, n.ID)
	if err != nil {
		v.Fault = fault.Message(err)
		return views.SnapshotDiffPage(v), nil
	}
	v.Total = amount(int64(len(c.Found)), "change")
	if c.More {
		v.Total = "More than " + v.Total
	}
	if len(c.Found) > shownChanges {
		v.Total += ". The first " + grouped(shownChanges) + " are shown."
	}
	for _, d := range c.Found[:min(len(c.Found), shownChanges)] {
		v.Changes = append(v.Changes, s.change(box, n, d))
	}
	if v.Path != "" {
		v.File, err = s.fileDiff(ctx, box, n, v.Path)
	}
	if err != nil {
		v.File = views.FileDiff{Path: shownPath(v.Path), Fault: fault.Message(err)}
	}
	return views.SnapshotDiffPage(v), nil
}

// change makes a difference ready to show.
func (s *snapshotHandlers) change(box sandbox.Sandbox, n snapshot.Snapshot, d snapshot.Difference) views.Change {
	v := views.Change{Path: shownPath(d.Path), Change: d.Change}
	switch d.Kind {
	case snapshot.KindFolder:
		v.Path += "/"
	case snapshot.KindLink:
		v.Size = "link"
	case snapshot.KindFile:
		v.Size = text.Size(d.Size)
	}
	if d.Kind == snapshot.KindFile && !strings.Contains(d.Path, "\uFFFD") { // which stands for what cannot be asked for
		v.URL = diffURL(box, n) + "&" + url.Values{"path": {d.Path}}.Encode() + "#file"
	}
	return v
}

// diffURL is the page of what has changed since a snapshot.
func diffURL(box sandbox.Sandbox, n snapshot.Snapshot) string { return actURL(box, n, diffPart) }

func shownPath(path string) string { return text.OneLine(path, maxPath) }

// fileDiff makes the lines of a file ready to show.
func (s *snapshotHandlers) fileDiff(ctx context.Context, box sandbox.Sandbox, n snapshot.Snapshot, path string) (views.FileDiff, error) {
	c, err := s.cfg.Snapshots.CompareFile(ctx, box, n.ID, path)
	if err != nil {
		return views.FileDiff{}, err
	}
	v := views.FileDiff{Path: shownPath(path), Cut: c.Cut, Says: saysOf(c)}
	lines := strings.Split(strings.TrimSuffix(c.Diff, "\n"), "\n")
	if c.Diff == "" {
		return v, nil
	}
	for _, line := range lines[min(2, len(lines)):] { // the first two name the file
		if len(v.Lines) == shownLines {
			v.Cut = true
			break
		}
		v.Lines = append(v.Lines, diffLine(line))
	}
	return v, nil
}

// saysOf says why no lines are shown of a file, "" when some are.
func saysOf(c snapshot.FileComparison) string {
	switch {
	case c.Binary:
		return "It is not text, so its lines are not compared."
	case c.Diff != "":
		return ""
	case c.Change == snapshot.Added:
		return "It is new, and empty."
	case c.Change == snapshot.Deleted:
		return "It was empty, and is deleted."
	}
	return "Its content is the same. Its time, owner or permissions may be others."
}

// diffLine makes a line of a unified diff ready to show.
func diffLine(line string) views.DiffLine {
	kind := views.LineSame
	switch {
	case strings.HasPrefix(line, "@@"):
		kind = views.LineAt
	case strings.HasPrefix(line, "+"):
		kind = views.LineAdded
	case strings.HasPrefix(line, "-"):
		kind = views.LineDeleted
	}
	return views.DiffLine{Kind: kind, Text: text.OneLine(strings.ReplaceAll(line, "\t", "    "), maxPath)}
}
