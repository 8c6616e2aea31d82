package web

import (
	"context"
	"encoding/json"
	"slices"

	"sandboxd/internal/access"
	"sandboxd/internal/lastview"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
	"sandboxd/views"
)

// paneEntry is one pane of the workspace. One more entry is all that one more pane needs: the page's frame, its
// splitters, the tabs of a phone and the stored layout go by the list.
type paneEntry struct {
	id    string // the section is "pane-ID"
	title string
	icon  string
	share int // of the width, in thousandths, unless the person has chosen otherwise
	show  func(s *workspaceHandlers, ctx context.Context, h access.Handle, p sandbox.Progress) views.Pane
}

// workspacePanes are the workspace's panes from left to right.
var workspacePanes = []paneEntry{
	{"files", "Files", "folder", 450, (*workspaceHandlers).filesPane},
	{"terminal", "Terminal", "terminal", 550, (*workspaceHandlers).terminalPane},
}

// mainPane is what a phone shows first.
const mainPane = "terminal"

// slots are the panes with their places, as the person has arranged them.
func (s *workspaceHandlers) slots(ctx context.Context, l layout, h access.Handle, p sandbox.Progress) []views.Slot {
	slots := make([]views.Slot, 0, len(s.panes))
	none := !slices.ContainsFunc(s.panes, func(e paneEntry) bool { return !l.place(e).Hidden }) // then all
	seen := false
	for _, entry := range s.panes {
		place := l.place(entry)
		shown := none || !place.Hidden
		slots = append(slots, views.Slot{
			ID: entry.id, Title: entry.title, Icon: entry.icon, Share: place.Share, Usual: entry.share, Hidden: !shown,
			First: shown && !seen, Max: shown && l.Whole == entry.id, Body: s.pane(ctx, entry, h, p),
		})
		seen = seen || shown
	}
	for _, front := range []string{l.Front, mainPane, slots[0].ID} { // the first of them that there is
		if at := slices.IndexFunc(slots, func(v views.Slot) bool { return v.ID == front }); at >= 0 {
			slots[at].Front = true
			break
		}
	}
	return slots
}

// pane is what one of them shows now.
func (s *workspaceHandlers) pane(ctx context.Context, e paneEntry, h access.Handle, p sandbox.Progress) views.Pane {
	pane := e.show(s, ctx, h, p)
	pane.Label, pane.State = e.title, string(h.Sandbox().State)
	return pane
}

// terminalPane is what the terminal's pane shows for a sandbox as it stands.
func (s *workspaceHandlers) terminalPane(ctx context.Context, h access.Handle, p sandbox.Progress) views.Pane {
	box := h.Sandbox()
	switch {
	case box.State == sandbox.Running:
		return views.Pane{Kind: "terminals", Terminals: views.Terminals{
			Path: sandboxURL(box.Name) + "/terminals/", Box: box.ID, Names: s.tabNames(ctx, h), Labels: labelsText(s.commands.tabLabels(ctx, box)),
		}}
	case still(box.State):
		return views.Pane{Kind: string(box.State), Screen: lastScreen(s.lastView(ctx, box))}
	}
	return views.Pane{Kind: "work", Work: s.work(box, p)}
}

// filesPane is the content of the files' pane. Running work shows in the terminal's.
func (s *workspaceHandlers) filesPane(ctx context.Context, h access.Handle, _ sandbox.Progress) views.Pane {
	box := h.Sandbox()
	switch {
	case box.State == sandbox.Running:
		return views.Pane{Kind: "files", Files: filesPlace(box)}
	case still(box.State):
		return views.Pane{Kind: string(box.State), Names: lastNames(s.lastView(ctx, box))}
	}
	return views.Pane{Kind: "waits"}
}

// lastView is what a sandbox that does not run showed last. The page is of use without.
func (s *workspaceHandlers) lastView(ctx context.Context, box sandbox.Sandbox) lastview.View {
	v, err := s.cfg.LastViews.LastView(ctx, box.ID)
	if err != nil {
		s.log.Warn("what a sandbox showed last cannot be read", "sandbox", box.Name, "err", err)
	}
	return v
}

func lastScreen(v lastview.View) []views.Styled {
	lines := make([]views.Styled, 0, len(v.Screen))
	for _, line := range v.Screen {
		lines = append(lines, views.Style(line, 0))
	}
	return lines
}

func lastNames(v lastview.View) []views.LastName {
	names := make([]views.LastName, 0, len(v.Files))
	for _, f := range v.Files {
		icon := "file"
		if f.Folder {
			icon = "folder"
		}
		names = append(names, views.LastName{Icon: icon, Name: views.Style(f.Name, 120)})
	}
	return names
}

// filesPlace is where a sandbox's files are.
func filesPlace(box sandbox.Sandbox) views.Files {
	return views.Files{Base: sandboxURL(box.Name) + "/files", Home: wire.HomePath, State: string(box.State), Box: box.ID}
}

// still says whether nothing is under way in a sandbox that does not run.
func still(state sandbox.State) bool {
	return state.Resting() || state == sandbox.Stopped || state == sandbox.Failed
}

// labelsText is the names of terminals as the page's script reads them.
func labelsText(labels map[string]string) string {
	text, err := json.Marshal(labels)
	if err != nil { // a map of texts can always be written
		return "{}"
	}
	return string(text)
}
