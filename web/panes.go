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
// splitters, the tabs of a phone and the stored layout use the list.
type paneEntry struct {
	id    string // the section is "pane-ID"
	title string
	icon  string
	side  bool // it is a sidebar of its own width, and comes first
	open  bool // it shows only while something is open in it
	hides bool // it shows only once the person wants it
	keys  string
	share int // of the room that all but the sidebar have, in thousandths, unless the person has chosen otherwise
	show  func(s *workspaceHandlers, ctx context.Context, h access.Handle, p sandbox.Progress) views.Pane
}

// workspacePanes are the workspace's panes in their order.
var workspacePanes = []paneEntry{
	{id: "files", title: "Files", icon: "folder", side: true, keys: "Control+B", show: (*workspaceHandlers).filesPane},
	{id: "editor", title: "Editor", icon: "code", open: true, share: 600, show: (*workspaceHandlers).editorPane},
	{id: mainPane, title: "Terminal", icon: "terminal", keys: "Control+`", share: 400, show: (*workspaceHandlers).terminalPane},
	{id: "chat", title: "Chat", icon: "chat", hides: true, keys: "Control+Shift+4", share: 450, show: (*workspaceHandlers).chatPane},
}

// mainPane is what a phone shows first.
const mainPane = "terminal"

// arranged are the panes with their places, as the person has arranged them in the window that was used last. The page's script
// corrects it for a window of another width.
func (s *workspaceHandlers) arranged(ctx context.Context, l layout, h access.Handle, p sandbox.Progress) views.Panes {
	sh := l.Shapes[l.Last]
	all := views.Panes{Flow: sh.Flow, Side: sh.Side, Slots: make([]views.Slot, 0, len(s.panes))}
	seen := false
	for _, e := range s.panes {
		place := sh.place(e)
		shown := !place.Hidden && !e.open
		all.Slots = append(all.Slots, views.Slot{
			ID: e.id, Title: e.title, Icon: e.icon, Side: e.side, Empty: e.open, Keys: e.keys, Share: place.Share, Usual: e.share, Hides: e.hides,
			Hidden: place.Hidden, First: shown && !seen && !e.side, Max: shown && !e.side && l.Whole == e.id, Body: s.pane(ctx, e, h, p),
		})
		seen = seen || shown && !e.side
	}
	for _, front := range []string{l.Front, mainPane, all.Slots[0].ID} { // the first of them that there is
		if at := slices.IndexFunc(all.Slots, func(v views.Slot) bool { return v.ID == front }); at >= 0 {
			all.Slots[at].Front = true
			break
		}
	}
	return all
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
	case box.State == sandbox.Capturing && box.CutOff == sandbox.Running && !s.backups.making(box.ID) && !s.updates.under(box):
		return views.Pane{Kind: "copied", Work: s.work(box, p)} // terminals that are in view stay there
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

// editorPane is empty while the sandbox does not run. The browser keeps an editor with open files.
func (s *workspaceHandlers) editorPane(_ context.Context, h access.Handle, _ sandbox.Progress) views.Pane {
	if box := h.Sandbox(); box.State == sandbox.Running {
		return views.Pane{Kind: "editor", Files: filesPlace(box)}
	}
	return views.Pane{Kind: "none"}
}

// chatPane is the same in every state: a conversation can be read while its sandbox is asleep, and a message wakes it.
func (s *workspaceHandlers) chatPane(_ context.Context, h access.Handle, _ sandbox.Progress) views.Pane {
	box := h.Sandbox()
	return views.Pane{Kind: "chat", Chat: views.Chat{
		Base: sandboxURL(box.Name) + "/conversations", Files: sandboxURL(box.Name) + "/files", Box: box.ID, Models: s.modelNames(box.Owner),
	}}
}

// modelNames are the models that the agent of a user's sandbox can ask, as the page's script reads them.
func (s *workspaceHandlers) modelNames(owner string) string {
	text, err := json.Marshal(s.cfg.ChatModels(owner))
	if err != nil { // texts can always be written
		return "[]"
	}
	return string(text)
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
