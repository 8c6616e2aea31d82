package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// stateLooks are the words, tones and shapes of a sandbox's states.
var stateLooks = map[sandbox.State]views.State{
	sandbox.Creating: {Tone: "busy", Icon: "state-busy", Text: "Creating"},
	sandbox.Starting: {Tone: "busy", Icon: "state-busy", Text: "Starting"},
	sandbox.Running:  {Tone: "good", Icon: "state-running", Text: "Running"},
	sandbox.Stopping: {Tone: "busy", Icon: "state-busy", Text: "Stopping"},
	sandbox.Stopped:  {Tone: "still", Icon: "state-stopped", Text: "Stopped"},
	sandbox.Frozen:   {Tone: "calm", Icon: "state-frozen", Text: "Frozen"},
	sandbox.Sleeping: {Tone: "busy", Icon: "state-busy", Text: "Going to sleep"},
	sandbox.Asleep:   {Tone: "calm", Icon: "state-asleep", Text: "Asleep"},
	sandbox.Failed:   {Tone: "bad", Icon: "state-failed", Text: "Failed"},
	sandbox.Deleting: {Tone: "busy", Icon: "state-busy", Text: "Deleting"},

	sandbox.Capturing: {Tone: "busy", Icon: "state-busy", Text: "Being copied"},
	sandbox.Restoring: {Tone: "busy", Icon: "state-busy", Text: "Being restored"},
}

// stateOf shows how a sandbox stands and why.
func stateOf(box sandbox.Sandbox, p sandbox.Progress, o idle.Outlook, now time.Time) views.State {
	look, ok := stateLooks[box.State]
	if !ok {
		look = views.State{Tone: "still", Icon: "state-stopped", Text: string(box.State)}
	}
	look.Bar, look.Notes = views.BarNone, stateNotes(box, o, now)
	switch {
	case box.State == sandbox.Failed:
		look.Why = box.Problem
	case slices.Contains(phased, box.State):
		look.Why, look.Bar = phaseText(p), phaseBar(p)
	case box.State == sandbox.Running:
		look.Why = box.Problem
		if len(o.Because) > 0 {
			look.Title = allReasons(o.Because)
		}
	}
	if look.Title == "" && len(look.Notes) > 1 { // a narrow row cuts them
		look.Title = wholeNotes(look.Notes)
	}
	return look
}

// wholeNotes are notes as one text that stays true: with moments rather than how long ago they were.
func wholeNotes(notes []views.Note) string {
	texts := make([]string, len(notes))
	for i, n := range notes {
		at := n.Time.Absolute
		if at != "" && n.Text == "" {
			at = "since " + at
		}
		texts[i] = strings.TrimSpace(n.Text + " " + at)
	}
	return strings.Join(texts, " · ")
}

// outlook is what keeps a sandbox awake and when it is put to rest. It asks nothing of the sandbox.
func (s *workspaceHandlers) outlook(box sandbox.Sandbox) idle.Outlook {
	if box.State != sandbox.Running && box.State != sandbox.Frozen {
		return idle.Outlook{}
	}
	return s.cfg.Idle.Outlook(box)
}

// state shows how a sandbox stands now.
func (s *workspaceHandlers) state(box sandbox.Sandbox, p sandbox.Progress) views.State {
	v := stateOf(box, p, s.outlook(box), s.cfg.Now())
	if c, ok := s.creation(box, p); ok {
		v.Why, v.Bar, v.Pace = phaseText(sandbox.Progress{Phase: p.Phase}), views.BarUnknown, paceOf(c, s.cfg.Now())
	}
	switch {
	case box.State == sandbox.Capturing && s.backups.making(box.ID):
		v.Text = backedUp
	case !box.State.Settled() && s.updates.under(box):
		v.Text = beingUpdated
	case s.snapshots.newClone(box):
		v.Text = stateLooks[sandbox.Creating].Text
	}
	return v
}

// beingUpdated is what Restoring is called while a newer image is tried.
const beingUpdated = "Being updated"

// backedUp is what Capturing is called while it is for a backup.
const backedUp = "Being backed up"

// phased are the states of work that has phases.
var phased = []sandbox.State{sandbox.Creating, sandbox.Starting, sandbox.Capturing, sandbox.Restoring}

// phaseNames are what the phases are called while they last.
var phaseNames = map[sandbox.Phase]string{
	sandbox.PhaseImage:  "Preparing the image",
	sandbox.PhaseVolume: "Creating its volume",
	sandbox.PhaseStart:  "Starting it",
	sandbox.PhaseReady:  "Waiting until it is ready",

	sandbox.PhaseBackup:   "Reading its home",
	sandbox.PhaseSnapshot: "Copying its home",
	sandbox.PhaseMemory:   "Keeping its memory",
	sandbox.PhaseRestore:  "Writing its home",

	sandbox.PhaseCheck: "Checking its services",
}

func phaseText(p sandbox.Progress) string {
	text := phaseNames[p.Phase]
	if text == "" {
		return "In a moment"
	}
	if p.Fraction > 0 {
		text += " · " + strconv.Itoa(percent(p.Fraction)) + " %"
	}
	return text
}

func phaseBar(p sandbox.Progress) int {
	if p.Fraction > 0 {
		return percent(p.Fraction)
	}
	return views.BarUnknown
}

// percent gives a fraction as a whole number from 0 to 100.
func percent(fraction float64) int { return int(100 * min(max(fraction, 0), 1)) }

// presenter turns sandboxes into what views show. It belongs to one request or one stream and is not safe for
// concurrent use.
type presenter struct {
	server *Server
	names  *owners
	admin  bool
	user   string // id of the reader
	place  string // "list" or "workspace": the actions differ
	next   string // page to come back to after an action
}

func (s *workspaceHandlers) presenter(r *request, place, next string) *presenter {
	return &presenter{server: s.Server, names: newOwners(s.cfg.Accounts), admin: r.isAdmin(), user: r.who.User.ID, place: place, next: next}
}

// templateOf gives a sandbox's template, or what stands for one that is gone or for a plain image.
func (s *workspaceHandlers) templateOf(spec sandbox.Spec) catalog.Template {
	if spec.Template == "" {
		return catalog.PlainImage(spec.Image)
	}
	t, err := s.cfg.Templates.Template(spec.Template)
	if err != nil { // it was deleted or broke since: the sandbox is still there
		return catalog.Template{Name: spec.Template, Title: spec.Template, Icon: "box"}
	}
	return t
}

// sandboxURL is the page of a sandbox.
func sandboxURL(name string) string { return "/sandboxes/" + name }

// sameURL is what a page asks of the very sandbox that it shows, which another one of its name must not answer.
func sameURL(box sandbox.Sandbox, path string) string {
	return sandboxURL(box.Name) + path + "?sandbox_id=" + box.ID
}

// usable reports whether links into a sandbox lead anywhere: use wakes one that rests, and waits for one that is being copied.
func usable(box sandbox.Sandbox) bool {
	state := box.State
	if state == sandbox.Capturing {
		state = box.CutOff
	}
	return wakes(state)
}

// wakes reports whether a sandbox in a state is there for use at once: it runs, or wakes by it.
func wakes(state sandbox.State) bool { return state == sandbox.Running || state.Resting() }

// quickLinks are the links into a sandbox that can be used now.
func (s *workspaceHandlers) quickLinks(box sandbox.Sandbox, t catalog.Template) []views.Link {
	if !usable(box) {
		return nil
	}
	title := s.cfg.Hosts.TerminalURL(box.Name)
	url := title
	if _, _, own := box.TerminalPassword(); own { // then as the person who is signed in here, not to the question for that
		url = s.cfg.Hosts.SignInURL(box.Name)
	}
	links := []views.Link{{Icon: "terminal", Text: "Terminal", URL: url, Title: title}}
	return append(links, s.portLinks(box.Name, t)...)
}

func (s *workspaceHandlers) portLinks(name string, t catalog.Template) []views.Link {
	var links []views.Link
	for _, p := range t.Ports {
		url := s.cfg.Hosts.PortURL(name, p.Number)
		links = append(links, views.Link{
			Icon: "globe", Text: cmp.Or(p.Title, "Port"), Port: strconv.Itoa(p.Number), URL: url, Title: url,
		})
	}
	return links
}

// acts are what can be done with a sandbox as it stands.
func (p *presenter) acts(box sandbox.Sandbox) views.Acts {
	url := sandboxURL(box.Name)
	var (
		open    = views.Action{Text: "Open", URL: url}
		look    = views.Action{Text: "View", URL: url}
		start   = views.Action{Icon: "play", Text: "Start", URL: sameURL(box, "/start"), Post: true}
		wake    = views.Action{Icon: "sun", Text: "Wake", URL: sameURL(box, "/start"), Post: true}
		retry   = views.Action{Icon: "restart", Text: "Retry", URL: sameURL(box, "/start"), Post: true}
		sleep   = views.Action{Icon: "moon", Text: "Sleep now", Hint: "Ends its programs; files are kept", URL: sameURL(box, "/sleep"), Post: true}
		stop    = views.Action{Icon: "stop", Text: "Stop", URL: sameURL(box, "/stop"), Post: true}
		restart = views.Action{Icon: "restart", Text: "Restart", URL: sameURL(box, "/restart"), Post: true}
		rest    = views.Action{Icon: "clock", Text: "Sleep settings…", URL: sameURL(box, "/rest"), Sheet: true}
		figures = views.Action{Icon: "chart", Text: "Metrics", URL: metricsURL(box)}
		log     = views.Action{Icon: "note", Text: "Logs", URL: logsURL(box)}
		acts    = views.Action{Icon: "list", Text: "Activity", URL: activityURL(box)}
		backups = views.Action{Icon: "archive", Text: "Backups", URL: sameURL(box, backupsPath)}
		shots   = views.Action{Icon: "camera", Text: "Snapshots", URL: sameURL(box, snapshotsPart)}
		clone   = views.Action{Icon: "copy", Text: "Clone…", URL: sameURL(box, clonePart), Sheet: true}
		rename  = views.Action{Icon: "pencil", Text: "Label…", URL: sameURL(box, "/rename"), Sheet: true}
		remove  = views.Action{Icon: "trash", Text: "Delete…", URL: sameURL(box, "/delete"), Sheet: true, Danger: true}
	)
	a := views.Acts{Next: p.next}
	inside := p.place == "workspace"
	switch box.State {
	case sandbox.Running:
		a.First, a.More = sleep, []views.Action{stop, restart, figures, log, acts, shots, backups, clone, rest, rename, remove}
	case sandbox.Frozen:
		a.First, a.More = wake, []views.Action{sleep, stop, restart, figures, log, acts, shots, backups, clone, rest, rename, remove}
	case sandbox.Asleep, sandbox.Sleeping:
		a.First, a.More = wake, []views.Action{stop, figures, log, acts, shots, backups, clone, rest, rename, remove}
	case sandbox.Stopped:
		a.First, a.More = start, []views.Action{figures, log, acts, shots, backups, clone, rest, rename, remove}
	case sandbox.Failed:
		a.First, a.More = retry, []views.Action{figures, log, acts, shots, backups, clone, rest, rename, remove}
	case sandbox.Deleting:
	default:
		a.More = []views.Action{shots, backups, rename, remove}
		if !inside {
			a.First = look
		}
	}
	if at := slices.Index(a.More, rest); at >= 0 {
		a.More = slices.Replace(a.More, at, at+1, p.settingActs(box, rest)...)
	}
	switch {
	case wakes(box.State) && inside:
		code := views.Action{Icon: "code", Text: "VS Code…", URL: sameURL(box, "/vscode"), Sheet: true}
		a.More = slices.Insert(a.More, slices.Index(a.More, rest), code)
	case wakes(box.State): // the list opens; its menu does the rest
		a.First, a.More = open, slices.Insert(a.More, 0, a.First)
	}
	return a
}

// settingActs are the items of a menu that lead to how a sandbox is to be, rest among them.
func (p *presenter) settingActs(box sandbox.Sandbox, rest views.Action) (list []views.Action) {
	if p.server.cfg.Updates.Standing(box).Older {
		list = append(list, views.Action{Icon: "update", Text: "Update…", URL: sameURL(box, updatePart), Sheet: true})
	}
	return append(list, views.Action{Icon: "box", Text: "Volumes…", URL: sameURL(box, "/volumes"), Sheet: true},
		views.Action{Icon: "size", Text: "Size…", URL: sameURL(box, "/size"), Sheet: true}, rest)
}

// tints is how many colours template tiles have; the one after them is for plain images.
const tints = 5

// tintOf gives a template's colour: always the same for a name.
func tintOf(t catalog.Template) string {
	if t.Name == "" {
		return "tint-" + strconv.Itoa(tints+1)
	}
	sum := 0
	for _, c := range []byte(t.Name) {
		sum = (sum*89 + int(c)) % 9973
	}
	return "tint-" + strconv.Itoa(sum%tints+1)
}
