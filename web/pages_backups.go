package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// backupsPath is the page of all backups.
const backupsPath = "/backups"

// shownLosses bounds what a page lists of what a backup or a snapshot lacks.
const shownLosses = 100

// backupsURL is the page of a sandbox's backups.
func backupsURL(name string) string { return sandboxURL(name) + backupsPath }

// backupAsk says which backups a page shows.
type backupAsk struct {
	box  string // id of the sandbox whose page it is; "" for the page of all
	name string // of a sandbox, on the page of all; "" for any
}

// url is the address of the page of all backups with what is asked for.
func (a backupAsk) url() string {
	if a.name == "" {
		return backupsPath
	}
	return backupsPath + "?" + url.Values{"sandbox": {a.name}}.Encode()
}

func (a backupAsk) has(b backup.Backup) bool {
	return (a.box == "" || a.box == b.SandboxID) && (a.name == "" || a.name == b.Sandbox)
}

// pageBackups shows the backups of a sandbox, and what can be restored to it. It wakes nothing.
func (s *backupHandlers) pageBackups(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.SandboxBackups{
		Frame: s.frame(r, "Backups of "+boxTitle(box), "sandboxes"), Name: box.Name, Title: boxTitle(box),
		State: s.workspace.state(box, s.cfg.Sandboxes.Progress(box.ID)), BackUp: s.backUp(box), Failed: s.failedRestore(box),
		Upload: uploadTo(box),
	}
	if v.List, err = s.lists(r, h).list(ctx); err != nil {
		return nil, err
	}
	v.Frame.Live = views.Live{Topic: sameURL(box, backupsPath), Seen: "seen=" + printOf(v.List)}
	return views.SandboxBackupsPage(v), nil
}

// pageAllBackups shows the backups of all sandboxes that the person may see, also of deleted ones.
func (s *backupHandlers) pageAllBackups(ctx context.Context, r *request) (templ.Component, error) {
	l, err := s.allLists(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.Backups{Frame: s.frame(r, "Backups", "backups"), Filtered: l.ask.name != "", Sandbox: s.backedUp(r, l.ask.name), Upload: s.uploadNew()}
	if v.List, err = l.list(ctx); err != nil {
		return nil, err
	}
	v.Frame.Live = views.Live{Topic: l.ask.url(), Seen: "seen=" + printOf(v.List)}
	return views.BackupsPage(v), nil
}

// backedUp offers the names of sandboxes that have backups.
func (s *backupHandlers) backedUp(r *request, chosen string) views.LogChoice {
	var names []string
	for _, b := range s.cfg.Backups.List(func(b backup.Backup) bool { return mayBackup(r.who, b) }) {
		names = append(names, b.Sandbox)
	}
	slices.Sort(names)
	options := []views.Option{{Text: "All"}}
	for _, name := range slices.Compact(names) {
		options = append(options, views.Option{Value: name, Text: name})
	}
	return choiceOf(chosen, options)
}

// backupLists makes the list of a page, time and again. It belongs to one request or one page's live connection.
type backupLists struct {
	*backupHandlers
	request *request
	ask     backupAsk
	names   *owners
	there   map[string]sandbox.Sandbox // by id: those that the page may lead to
	plans   map[string]string          // names of the schedules that the page may lead to, by id
}

// lists is for the page of one sandbox.
func (s *backupHandlers) lists(r *request, h access.Handle) *backupLists {
	return &backupLists{s, r, backupAsk{box: h.ID()}, newOwners(s.cfg.Accounts), map[string]sandbox.Sandbox{h.ID(): h.Sandbox()}, nil}
}

// allLists is for the page of all.
func (s *backupHandlers) allLists(ctx context.Context, r *request) (*backupLists, error) {
	f := sandbox.Filter{}
	if !r.isAdmin() {
		f.Owner = r.who.User.ID
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, f)
	if err != nil {
		return nil, err
	}
	there := map[string]sandbox.Sandbox{}
	for _, box := range boxes {
		there[box.ID] = box
	}
	return &backupLists{s, r, backupAsk{name: strings.TrimSpace(r.query("sandbox"))}, newOwners(s.cfg.Accounts), there, nil}, nil
}

// list is what the page shows now.
func (l *backupLists) list(ctx context.Context) (views.BackupList, error) {
	v := views.BackupList{All: l.ask.box == "", Filtered: l.ask.name != ""}
	var total, own int64
	var err error
	if l.plans, err = l.schedules.planNames(ctx, l.request); err != nil {
		return v, err
	}
	found := l.cfg.Backups.List(func(b backup.Backup) bool { return mayBackup(l.request.who, b) })
	for _, b := range found {
		if b.Owner == l.request.who.User.ID {
			own += b.Size
		}
		if !l.ask.has(b) {
			continue
		}
		if b.State == backup.Ready {
			v.Ready, total = v.Ready+1, total+b.Size
		}
		item, err := l.item(ctx, b)
		if err != nil {
			return v, err
		}
		v.Items, v.Planned = append(v.Items, item), v.Planned || b.Schedule != ""
	}
	v.Total, v.Kept = text.Size(total), afterText(catalog.After(l.cfg.Backups.Keep))
	v.Used, v.Quota = text.Size(own), quotaText(l.cfg.Backups.Quota)
	if l.cfg.Backups.Quota > 0 {
		v.Share = percent(float64(own) / float64(l.cfg.Backups.Quota))
	}
	return v, nil
}

func quotaText(quota int64) string {
	if quota == 0 {
		return ""
	}
	return text.Size(quota)
}

// item makes a backup ready to show.
func (l *backupLists) item(ctx context.Context, b backup.Backup) (views.Backup, error) {
	now := l.cfg.Now()
	box, there := l.there[b.SandboxID]
	v := views.Backup{
		ID: b.ID, Made: timeOf(b.Created, now), State: backupState(b), Problem: b.Problem, Making: b.State == backup.Making, Ready: b.State == backup.Ready,
		Running: b.State == backup.Ready && !b.Still, Root: b.Root, Next: l.ask.url(), About: b.Sandbox, Repository: b.Repository, Unreachable: views.Plain(unreachable(l.request, b), 0),
	}
	if l.ask.box != "" {
		v.Next = backupsURL(box.Name)
	} else if v.Deleted = !there; there {
		v.Sandbox, v.URL = box.Name, sameURL(box, backupsPath)
	} else {
		v.Sandbox = b.Sandbox
	}
	if b.State != backup.Failed {
		v.Expires = leftOf(b.Expires, now)
	}
	l.plan(&v, b)
	if v.Restores = there && b.State == backup.Ready; v.Ready {
		v.Size, v.Files, v.Unpacked = text.Size(b.Size), amount(b.Stats.Files, "file"), text.Size(b.Stats.Bytes)
		v.Losses, v.Lost = lossesOf(lossShapes(b.Stats.Lost), b.Stats.MoreLost)
	}
	if b.Owner != l.request.who.User.ID {
		var err error
		if v.Owner, err = l.names.name(ctx, b.Owner); err != nil {
			return v, err
		}
	}
	return v, nil
}

// plan says which schedule made a backup, and how its last test went.
func (l *backupLists) plan(v *views.Backup, b backup.Backup) {
	if b.Schedule == "" {
		return
	}
	v.Schedule = "scheduled"
	if name, ok := l.plans[b.Schedule]; ok {
		v.Schedule, v.OfOne = name, scheduleURL(b.Schedule, "")
	}
	if t, ok := l.cfg.Schedules.Tested(b.ID); ok {
		v.TestedAt = timeOf(t.At, l.cfg.Now())
		if v.Tested = (views.State{Tone: "good", Text: "restore tested"}); t.Problem != "" {
			v.Tested = views.State{Tone: "bad", Text: "restore test failed", Why: t.Problem}
		}
	}
}

// unreachable says why the repository of a backup cannot be reached. What is said of its place is for admins.
func unreachable(r *request, b backup.Backup) string {
	if b.Unreachable == "" || r.isAdmin() {
		return b.Unreachable
	}
	return "an admin is told why."
}

// backupState says how far a backup is.
func backupState(b backup.Backup) views.State {
	switch {
	case b.State == backup.Ready:
		return views.State{Tone: "good", Icon: "check", Text: "Ready", Bar: views.BarNone}
	case b.State == backup.Failed:
		return views.State{Tone: "bad", Icon: "state-failed", Text: "Failed", Bar: views.BarNone}
	case b.Comparing:
		return views.State{Tone: "busy", Icon: "state-busy", Text: "Being made", Why: "Comparing its root file system with its image", Bar: views.BarUnknown}
	case b.Checking:
		return views.State{Tone: "busy", Icon: "state-busy", Text: "Checking", Why: "Reading back what was written", Bar: views.BarUnknown}
	}
	v := views.State{Tone: "busy", Icon: "state-busy", Text: "Being made", Why: "Waiting to begin", Bar: views.BarUnknown}
	if b.Stats.Files > 0 || b.Stats.Bytes > 0 || b.Size > 0 {
		v.Why = text.Size(b.Stats.Bytes) + " in " + amount(b.Stats.Files, "file") + " read"
	}
	return v
}

// lossesOf lists what a backup or a snapshot lacks, and says how much that is.
func lossesOf(found []lossShape, more int64) (list []views.Loss, lost string) {
	n := int64(len(found)) + more
	if n == 0 {
		return nil, ""
	}
	for _, l := range found[:min(len(found), shownLosses)] {
		list = append(list, views.Loss{Path: views.Plain(l.Path, maxPath), Reason: views.Plain(l.Reason, maxPath)})
	}
	if more := n - int64(len(list)); more > 0 {
		list = append(list, views.Loss{Reason: "and " + grouped(more) + " more"})
	}
	return list, amount(n, "entry", "entries") + " could not be kept"
}

// backUp is the button that makes a backup of a sandbox.
func (s *backupHandlers) backUp(box sandbox.Sandbox) views.BackUp {
	v := views.BackUp{URL: sameURL(box, backupsPath), Next: backupsURL(box.Name), Plan: newScheduleURL(box.Name), To: s.cfg.Repositories.Names()}
	switch {
	case s.making(box.ID):
		v.Off = "One is being made."
	case !box.State.Settled():
		v.Off = "The sandbox is " + strings.ToLower(stateLooks[box.State].Text) + "."
	}
	return v
}

// making says whether a backup of a sandbox is being made.
func (s *backupHandlers) making(sandboxID string) bool {
	return len(s.cfg.Backups.List(func(b backup.Backup) bool { return b.SandboxID == sandboxID && b.State == backup.Making })) > 0
}

// failedRestore says why the last restore to a sandbox has failed.
func (s *backupHandlers) failedRestore(box sandbox.Sandbox) views.FailedRestore {
	return views.FailedRestore{Problem: s.cfg.Backups.Problem(box.ID), Dismiss: sameURL(box, restorePart+"/dismiss"), URL: sameURL(box, backupsPath), Next: backupsURL(box.Name)}
}

// uploadTo is where an archive is restored to a sandbox.
func uploadTo(box sandbox.Sandbox) views.ArchiveUpload {
	url := sameURL(box, restorePart)
	return views.ArchiveUpload{Name: box.Name, URL: url, Cancel: url, Next: sandboxURL(box.Name)}
}

// uploadNew is where an archive becomes a new sandbox.
func (s *backupHandlers) uploadNew() views.ArchiveUpload {
	v := views.ArchiveUpload{URL: restorePart, Next: sandboxURL("")}
	for _, e := range s.cfg.Templates.List() {
		if e.Problem == nil {
			v.Templates = append(v.Templates, views.Option{Value: e.Template.Name, Text: e.Template.Title})
		}
	}
	return v
}

// keptBackups says how many backups of a sandbox outlive it; "" for none.
func (s *backupHandlers) keptBackups(box sandbox.Sandbox, now time.Time) string {
	kept := s.cfg.Backups.List(func(b backup.Backup) bool { return b.SandboxID == box.ID && b.State == backup.Ready })
	if len(kept) == 0 {
		return ""
	}
	last := kept[0].Expires // the newest expires last
	for _, b := range kept {
		if b.Expires.IsZero() { // from then on it is kept as long as one that a person made
			last = now.Add(s.cfg.Backups.Keep)
		}
	}
	left := lasted(last.Sub(now))
	if len(kept) == 1 {
		return "Its backup is kept for " + left + " more."
	}
	return "Its " + grouped(int64(len(kept))) + " backups are kept until they expire, the last one for " + left + " more."
}

// amount writes how many of something there are: "1 file", "3,400 files". many is for words that do not just take an "s".
func amount(n int64, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return grouped(n) + " " + many[0]
	}
	return grouped(n) + " " + one + "s"
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && n > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
