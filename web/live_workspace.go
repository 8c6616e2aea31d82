package web

import (
	"context"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// liveWorkspace keeps the page of one sandbox up to date.
type liveWorkspace struct {
	interior
	show     *presenter
	request  *request
	box      sandbox.Sandbox
	progress sandbox.Progress
	deleted  bool
	drawn    mark   // what the page shows of it
	reasons  string // print of what it shows of what keeps it awake
	lines    []string
	listens  listening
	ports    string // print of what it shows of ports
	stale    bool   // something has happened that may change them
	figures  bool   // there are new ones
	meters   views.Meters
	alerts   int              // that it shows to fire
	mark     views.UpdateMark // that the page shows
	failed   string           // why the last restore has failed, as it shows that
	volumes  string           // print of the sign that a restart changes its volumes
}

// openLiveWorkspace follows the sandbox that the page was drawn of, by its id: another one may have its name by now.
func (s *workspaceHandlers) openLiveWorkspace(ctx context.Context, r *request) (livePage, error) {
	h, err := named(ctx, s.Server, r)
	if showsDeleted(r, err) {
		return &deletedPage{last: func(out *parts) { s.lastUpdate(r.param("name"), out) }}, nil
	}
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	failed := ""
	if r.query("failed") != "" {
		failed = s.cfg.Backups.Problem(box.ID)
	}
	return &liveWorkspace{
		mark: s.updates.mark(box), failed: failed, interior: interior{s.Server, h}, show: s.presenter(r, "workspace", sandboxURL(box.Name)), request: r,
		box: box, progress: s.cfg.Sandboxes.Progress(box.ID), drawn: markOf(box), ports: r.query("ports"), alerts: seenNumber(r, "alerts"), volumes: r.query("volumes"),
	}, nil
}

// showsDeleted says whether err, of named, means that the page shows a sandbox that was deleted.
func showsDeleted(r *request, err error) bool {
	return fault.Is(err, fault.Gone) && r.query("sandbox_id") != ""
}

// deletedPage is a page of a sandbox that was deleted before it was followed. It is told so, and nothing else ever.
type deletedPage struct {
	nothingBeside
	last func(*parts)
}

func (d *deletedPage) begin(_ context.Context, out *parts) error {
	d.last(out)
	return nil
}

func (*deletedPage) take(news) bool                           { return false }
func (*deletedPage) tell(context.Context, bool, *parts) error { return nil }

func (l *liveWorkspace) begin(ctx context.Context, out *parts) error {
	l.tellAlerts(out)
	l.tellRestore(out)
	l.tellVolumes(out)
	if l.request.query("seen") != boxPrint(l.box) {
		l.whole(ctx, out)
		return nil
	}
	l.reasons = l.request.query("reasons")
	l.look(out)
	l.tellWork(out)
	return nil
}

// tellWork collects how far work has come, with all of its log: a build may have said much since the page was drawn, and then nothing for
// minutes.
func (l *liveWorkspace) tellWork(out *parts) {
	if l.box.State == sandbox.Running || still(l.box.State) { // no pane shows steps
		return
	}
	work := l.server.workspace.work(l.box, l.progress)
	out.add("work-steps", views.Replace, views.WorkSteps(work))
	if work.Log != "" {
		out.add("work-log", views.Fill, views.Text(work.Log))
	}
}

// look collects the state when the page does not show it as it is.
func (l *liveWorkspace) look(out *parts) {
	state, rest := l.server.workspace.state(l.box, l.progress), l.server.workspace.restMenu(l.box)
	if now := printOf(state, rest); now != l.reasons {
		l.reasons = now
		out.add("ws-state", views.Replace, views.WorkspaceState(state, rest))
	}
}

// tellRestore collects the sign of a restore that has failed when the page shows it otherwise.
func (l *liveWorkspace) tellRestore(out *parts) {
	if now := l.server.backups.failedRestore(l.box); now.Problem != l.failed {
		l.failed = now.Problem
		out.add("ws-restore", views.Replace, views.RestoreSign(now))
	}
}

// tellVolumes collects the sign that a restart changes the volumes when the page shows another one.
func (l *liveWorkspace) tellVolumes(out *parts) {
	if now := l.server.volumes.volumeSign(l.box); printOf(now) != l.volumes {
		l.volumes = printOf(now)
		out.add("ws-volumes", views.Replace, views.VolumesSign(now))
	}
}

// tellAlerts collects the sign of alerts when the page shows another number.
func (l *liveWorkspace) tellAlerts(out *parts) {
	if now := l.server.alerts.alertSign(l.request, l.box); now.Count != l.alerts {
		l.alerts = now.Count
		out.add("ws-alerts", views.Replace, views.AlertSign(now))
	}
}

func (l *liveWorkspace) take(n news) bool {
	switch {
	case n.alert != nil:
		return n.alert.Target.SandboxID == l.box.ID
	case n.backup != nil:
		return anyBackup(n.backup) || n.backup.Restore == l.box.ID
	case n.volume != nil:
		return true
	case n.update != nil:
		return concerns(n.update, l.box.ID)
	case n.figures:
		l.figures = true
		return true
	case n.ports != nil:
		l.listens, l.stale = listening{open: *n.ports, known: true}, true
		return true
	case n.uses != nil:
		return n.uses.ID == l.box.ID
	case n.box != nil && n.box.Sandbox.ID == l.box.ID:
		if l.box.Spec.Template == "" && n.box.Progress.Detail != l.progress.Detail {
			l.lines = append(l.lines, n.box.Progress.Detail)
		}
		l.box, l.progress, l.deleted, l.stale = n.box.Sandbox, n.box.Progress, n.box.Deleted, true
		return true
	case n.image != nil && n.image.Line != "" && n.image.Template == l.box.Spec.Template && l.awaitsImage():
		l.lines = append(l.lines, n.image.Line)
		return true
	}
	return false
}

// awaitsImage says whether what is built now is for the sandbox. A line may come before word that its image is made.
func (l *liveWorkspace) awaitsImage() bool {
	return l.progress.Phase == sandbox.PhaseImage || l.progress.Phase == "" && l.box.State == sandbox.Creating
}

// urgent reports that the sandbox has another state than the page shows.
func (l *liveWorkspace) urgent() bool { return l.deleted || markOf(l.box) != l.drawn }

// beside tells what listens in the sandbox, and when there are new figures.
func (l *liveWorkspace) beside(ctx context.Context, hand func(news)) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { l.interior.beside(ctx, hand) })
	running.Go(func() { followBackups(ctx, l.server, hand) })
	running.Go(func() { followVolumes(ctx, l.server, hand) })
	running.Go(func() { followUpdates(ctx, l.server, hand) })
	tellFigures(ctx, l.server, l.request, hand)
}

// tellMeters collects the meters when the page shows others. A change of state brings them by itself.
func (l *liveWorkspace) tellMeters(out *parts) {
	if !l.figures || l.box.State != sandbox.Running {
		return
	}
	l.figures = false
	if now := workspaceMeters(l.server.cfg.Metrics, l.box); now != l.meters {
		l.meters = now
		out.add("ws-meters", views.Replace, views.MetersPart("ws-meters", now))
	}
}

func (l *liveWorkspace) tell(ctx context.Context, reasons bool, out *parts) error {
	lines := l.lines
	l.lines = nil
	l.tellAlerts(out)
	l.tellRestore(out)
	l.tellVolumes(out)
	if l.deleted || markOf(l.box) != l.drawn {
		l.drawn = markOf(l.box)
		l.whole(ctx, out) // the log comes with it
		return nil
	}
	if now := l.server.updates.mark(l.box); now != l.mark {
		l.mark = now
		out.add("ws-name", views.Replace, views.WorkspaceName(l.show.row(ctx, l.box, l.progress)))
	}
	l.tellPorts(ctx, out)
	if reasons {
		l.look(out)
	}
	l.tellMeters(out)
	if l.box.State == sandbox.Running || still(l.box.State) { // no pane shows steps
		return nil
	}
	out.add("work-steps", views.Replace, views.WorkSteps(l.server.workspace.work(l.box, l.progress)))
	if len(lines) > 0 {
		out.add("work-log", views.Append, views.Text(strings.Join(lines, "\n")+"\n"))
	}
	return nil
}

// tellPorts collects the quick links and the menu of ports when the page shows other ones.
func (l *liveWorkspace) tellPorts(ctx context.Context, out *parts) {
	if !l.stale || !l.listens.known { // what listens comes soon
		return
	}
	l.stale = false
	menu := l.server.ports.ports(ctx, l.handle.With(l.box), l.listens)
	if now := printOf(menu); now != l.ports {
		l.ports = now
		out.add("ws-links", views.Replace, views.WorkspaceLinks(l.show.row(ctx, l.box, l.progress), menu))
	}
}

// whole draws all parts anew. The browser leaves running terminals as they are.
func (l *liveWorkspace) whole(ctx context.Context, out *parts) {
	if l.deleted {
		l.server.workspace.lastUpdate(l.box.Name, out)
		return
	}
	row := l.show.row(ctx, l.box, l.progress)
	l.mark = row.Update
	out.add("ws-name", views.Replace, views.WorkspaceName(row))
	rest := l.server.workspace.restMenu(l.box)
	l.reasons = printOf(row.State, rest)
	out.add("ws-state", views.Replace, views.WorkspaceState(row.State, rest))
	out.add("ws-acts", views.Replace, views.WorkspaceActs(row))
	menu := l.server.ports.ports(ctx, l.handle.With(l.box), l.listens)
	l.ports, l.stale = printOf(menu), false
	out.add("ws-links", views.Replace, views.WorkspaceLinks(row, menu))
	out.add("ws-still", views.Replace, views.StillPart(l.server.workspace.still(l.box)))
	for _, e := range l.server.panes {
		out.add("pane-"+e.id, views.Replace, views.PanePart(e.id, l.server.workspace.pane(ctx, e, l.handle.With(l.box), l.progress)))
	}
}

// deletedState is shown of a sandbox that is gone.
var deletedState = views.State{Tone: "still", Icon: "state-stopped", Text: "Deleted", Bar: views.BarNone}

// lastUpdate is a workspace's last update, when the sandbox is gone.
func (s *workspaceHandlers) lastUpdate(name string, out *parts) {
	out.add("ws-state", views.Replace, views.WorkspaceState(deletedState, views.Rest{}))
	out.add("ws-acts", views.Fill, templ.NopComponent)
	out.add("ws-links", views.Fill, templ.NopComponent)
	out.add("ws-still", views.Replace, views.StillPart(views.Still{
		Deleted: true, Title: "This sandbox was deleted", Text: name + " and everything in it is gone.",
		Acts: []views.Action{{Text: "Go to sandboxes", URL: "/", Primary: true}},
	}))
	for _, e := range s.panes {
		out.add("pane-"+e.id, views.Replace, views.PanePart(e.id, views.Pane{Label: e.title, Kind: "deleted"}))
	}
}
