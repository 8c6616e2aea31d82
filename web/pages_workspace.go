package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/terminal"
	"sandboxd/views"
)

// tabsWait is how long the workspace waits for the names of the terminals that are open. Without them it shows the
// first one; the browser asks again when it is there.
const tabsWait = time.Second

// shownLog is how many lines of a log a page carries; the log's own page has more.
const shownLog = 500

// firstTab is the terminal that every sandbox has.
const firstTab = "main"

// workspacePolicy lets xterm.js make the style sheet of its cells, which it does from script. No other page needs it.
const workspacePolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// pageWorkspace is the page of one sandbox. It starts nothing and wakes nothing.
func (s *workspaceHandlers) pageWorkspace(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	r.head.Set("Content-Security-Policy", workspacePolicy)
	p := s.presenter(r, "workspace", sandboxURL(box.Name))
	progress := s.cfg.Sandboxes.Progress(box.ID)
	row := p.row(ctx, box, progress)
	arranged, preferences := s.layout(ctx, r.who)
	w := views.Workspace{
		Frame: s.frame(r, row.Title, "sandboxes"), Row: row, Rest: s.restMenu(box), Still: s.still(box),
		Ports: s.ports.ports(ctx, h, s.ports.whatListens(ctx, h)), Panes: s.arranged(ctx, arranged, h, progress), Files: filesPlace(box), Preferences: preferences,
		Alerts: s.alerts.alertSign(r, box), Restore: s.backups.failedRestore(box), Volumes: s.volumes.volumeSign(box),
	}
	w.Frame.Live = views.Live{
		Topic: sameURL(box, ""),
		Seen:  "seen=" + boxPrint(box) + "&reasons=" + printOf(w.Row.State, w.Rest) + "&ports=" + printOf(w.Ports) + "&alerts=" + strconv.Itoa(w.Alerts.Count) + "&volumes=" + printOf(w.Volumes),
	}
	if w.Restore.Problem != "" {
		w.Frame.Live.Seen += "&failed=1"
	}
	if port, err := strconv.Atoi(r.query("port")); err == nil && port > 0 && port < 1<<16 {
		url := s.cfg.Hosts.PortURL(box.Name, port)
		w.Ports.Asked = &views.Link{Icon: "open", Text: "Open port", Port: strconv.Itoa(port), URL: url, Title: url}
	}
	return views.WorkspacePage(w), nil
}

// boxPrint is a fingerprint of what the workspace shows of a sandbox. A live page compares it to see changes.
func boxPrint(box sandbox.Sandbox) string {
	return listing{boxes: []sandbox.Sandbox{box}}.print()
}

// tabNames are the terminals that are open, the first one always.
func (s *workspaceHandlers) tabNames(ctx context.Context, h access.Handle) []string {
	ctx, cancel := context.WithTimeout(ctx, tabsWait)
	defer cancel()
	names := []string{firstTab}
	tabs, err := s.cfg.Terminals.Tabs(ctx, h)
	if err != nil { // the page is of use without: it shows the connection's state
		s.log.Debug("list terminals", "sandbox", h.Name(), "err", err)
		return names
	}
	for _, t := range tabs {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// still is what covers the panes of a sandbox that does not run: why, and what to do. It is empty for others.
func (s *workspaceHandlers) still(box sandbox.Sandbox) views.Still {
	if !still(box.State) {
		return views.Still{}
	}
	v := views.Still{Next: sandboxURL(box.Name)}
	start := views.Action{Icon: "sun", Text: "Wake", URL: sameURL(box, "/start"), Post: true, Primary: true}
	switch box.State {
	case sandbox.Failed:
		v.Title, v.Text, v.Cause = "This sandbox failed", "Retry creates its container again.", box.Problem
		if !untouched(s.Server, box) {
			v.Text = "Its files are kept. " + v.Text
		}
		start.Icon, start.Text = "restart", "Retry"
		v.Log = s.buildLog(box.Spec.Template)
		v.Acts = []views.Action{start, {Icon: "trash", Text: "Delete…", URL: sameURL(box, "/delete"), Sheet: true}}
		return v
	case sandbox.Frozen:
		v.Title, v.Text, v.Resume = "This sandbox is frozen", "Its programs are paused, and resume where they were.", true
		start.Text = "Resume"
	case sandbox.Sleeping:
		v.Title, v.Text = "This sandbox is going to sleep", "Programs are asked to end, then killed. Files are kept."
	case sandbox.Asleep:
		v.Title, v.Text = "This sandbox is asleep", "Its files are kept; programs and terminals have ended."
	default:
		v.Title, v.Text = "This sandbox is stopped", "Its files are kept. Programs that ran in it have ended."
		start.Icon, start.Text = "play", "Start"
	}
	v.Acts = []views.Action{start}
	return v
}

// buildLog is the end of the log of a template's last build, or "".
func (s *workspaceHandlers) buildLog(template string) string {
	if template == "" {
		return ""
	}
	lines := s.cfg.Images.Log(template)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines[max(0, len(lines)-shownLog):], "\n") + "\n"
}

// work is the panel of an operation under way.
func (s *workspaceHandlers) work(box sandbox.Sandbox, p sandbox.Progress) views.Work {
	w := views.Work{Detail: p.Detail, Next: sandboxURL(box.Name), Text: "You can leave this page; this continues."}
	switch box.State {
	case sandbox.Stopping:
		w.Title, w.Text = "Stopping", "Programs are asked to end, and ended after a while."
	case sandbox.Deleting:
		w.Title, w.Text = "Deleting", "Its container and its volume are being removed."
	case sandbox.Capturing:
		s.snapshots.captured(&w, box, p)
	case sandbox.Restoring:
		w.Detail = detailed(p, " written")
		w.Title, w.Text = "Creating "+box.Name, "Its home is unpacked from the backup, and then it starts. You can leave this page; this continues."
		if s.cfg.Backups.Restoring(box.ID) { // one that there was before
			w.Title, w.Text = "Being restored", "Its new home is written beside the old one, and takes its place when it is complete."
		}
		s.snapshots.snapshotted(&w, box)
		w.Phases = phases(p, sandbox.PhaseRestore, sandbox.PhaseStart, sandbox.PhaseReady)
		s.updates.updated(&w, box, p)
	case sandbox.Starting:
		w.Title, w.Phases = "Starting", phases(p, sandbox.PhaseStart, sandbox.PhaseReady)
	default:
		w.Title = "Creating " + box.Name
		w.Phases = phases(p, createPhases...)
	}
	if c, ok := s.creation(box, p); ok {
		w.Pace = paceOf(c, s.cfg.Now())
		w.Acts = append(w.Acts, views.Action{Icon: "close", Text: "Cancel", URL: sameURL(box, "/cancel"), Post: true})
	}
	if s.cfg.Backups.Restoring(box.ID) {
		w.Acts = append(w.Acts, views.Action{Icon: "close", Text: "Cancel restore", URL: sameURL(box, restorePart+"/cancel"), Post: true})
	}
	if p.Phase == sandbox.PhaseImage && !box.Updating() {
		w.Log = s.buildLog(box.Spec.Template)
		w.Phases = phases(p, createPhases...)
	}
	return w
}

// detailed says what is done with the home, as far as that has begun.
func detailed(p sandbox.Progress, did string) string {
	if p.Detail == "" || !slices.Contains([]sandbox.Phase{sandbox.PhaseBackup, sandbox.PhaseRestore, sandbox.PhaseSnapshot}, p.Phase) {
		return p.Detail
	}
	return p.Detail + did
}

var phaseTitles = map[sandbox.Phase]string{
	sandbox.PhaseImage: "Image", sandbox.PhaseVolume: "Volume", sandbox.PhaseStart: "Start", sandbox.PhaseReady: "Ready",
	sandbox.PhaseCheck: "Check", sandbox.PhaseBackup: "Home", sandbox.PhaseRestore: "Home", sandbox.PhaseSnapshot: "Home", sandbox.PhaseMemory: "Memory",
}

// phases shows steps in order: those before the present one are done.
func phases(present sandbox.Progress, order ...sandbox.Phase) []views.Phase {
	at := max(slices.Index(order, present.Phase), 0)
	var out []views.Phase
	for i, phase := range order {
		step := views.Phase{Text: phaseTitles[phase], Stand: "todo"}
		switch {
		case i < at:
			step.Stand, step.Bar = "done", 100
		case i == at:
			step.Stand, step.Bar = "now", phaseBar(present)
		}
		out = append(out, step)
	}
	return out
}

// apiTabs tells the workspace's script which terminals are open.
func (s *workspaceHandlers) apiTabs(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	if box.State != sandbox.Running { // asking would wake it
		return reply{}, fault.New(fault.Conflict, "%s does not run.", box.Name)
	}
	tabs, err := s.cfg.Terminals.Tabs(ctx, h)
	if err != nil {
		return reply{}, err
	}
	shapes := make([]tabShape, 0, len(tabs))
	for _, t := range tabs {
		shapes = append(shapes, tabShape{Name: t.Name, Title: t.Title, Viewers: t.Viewers, Folder: t.Folder})
	}
	return reply{body: map[string]any{"terminals": shapes, "labels": s.commands.tabLabels(ctx, box)}}, nil
}

// tabShape is a terminal as the workspace's script sees it. Title comes from the sandbox.
type tabShape struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Viewers int    `json:"viewers"`
	Folder  string `json:"folder,omitempty"`
}

// terminalText is all that a terminal has shown, as text with its colours, for the script that scrolls and searches it. It
// wakes nothing.
func (s *workspaceHandlers) terminalText(c echo.Context) error {
	r := requestOf(c)
	ctx, cancel := context.WithTimeout(r.http.Context(), handlerTime)
	defer cancel()
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return err
	}
	box := h.Sandbox()
	if box.State != sandbox.Running {
		return fault.New(fault.Conflict, "%s does not run.", box.Name)
	}
	shown, err := s.cfg.Terminals.Text(ctx, h, r.param("tab"), terminal.Part(r.query("part")))
	if err != nil {
		return err
	}
	r.head.Set("Cache-Control", "no-store")
	if shown.Full {
		r.head.Set(terminal.FullHeader, "1")
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", shown.Text)
}

// submitCloseTab ends one terminal and what runs in it.
func (s *workspaceHandlers) submitCloseTab(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if box.State != sandbox.Running && !box.State.Resting() { // CloseTab knows what to do with one that rests
		return "", fault.New(fault.Conflict, "%s does not run.", box.Name)
	}
	if err := s.cfg.Terminals.CloseTab(ctx, h, r.param("tab")); err != nil {
		return "", err
	}
	if err := s.cfg.TabNames.NameTab(ctx, box.ID, r.param("tab"), ""); err != nil { // the next of that tab is another terminal
		s.log.Warn("forget name of terminal", "sandbox", box.Name, "err", err)
	}
	return sandboxURL(box.Name), nil
}
