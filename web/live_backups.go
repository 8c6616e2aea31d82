package web

import (
	"context"
	"slices"
	"sync"

	"github.com/a-h/templ"

	"sandboxd/internal/backup"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/views"
)

// followBackups hands on what changes about backups, until ctx ends.
func followBackups(ctx context.Context, s *Server, hand func(news)) {
	follow(ctx, s.cfg.Backups.Subscribe, func(c *backup.Change) { hand(news{backup: c}) })
}

// anyBackup says whether any may have changed.
func anyBackup(c *backup.Change) bool { return c.Backup.ID == "" && c.Restore == "" }

// liveBackups keeps a list of backups up to date, with what else there is on the page of one sandbox.
type liveBackups struct {
	lists *backupLists
	box   *sandbox.Sandbox // of its page; nil on the page of all
	gone  bool
	drawn drawnBackups
}

// drawnBackups are prints of what the page shows.
type drawnBackups struct {
	items             []string          // ids, in order
	prints            map[string]string // by id
	summary           string
	state, up, failed string
}

func (s *backupHandlers) openLiveBackups(ctx context.Context, r *request) (livePage, error) {
	h, err := named(ctx, s.Server, r)
	if showsDeleted(r, err) {
		return &deletedPage{last: func(out *parts) { tellBackupsGone(r.param("name"), out) }}, nil
	}
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return &liveBackups{lists: s.lists(r, h), box: &box}, nil
}

func (s *backupHandlers) openLiveAllBackups(ctx context.Context, r *request) (livePage, error) {
	lists, err := s.allLists(ctx, r)
	return &liveBackups{lists: lists}, err
}

func (l *liveBackups) beside(ctx context.Context, hand func(news)) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { followBackups(ctx, l.lists.Server, hand) })
	follow(ctx, l.lists.cfg.Schedules.Subscribe, func(c *schedule.Change) { hand(news{schedule: c}) }) // their names, and how tests went
}

func (l *liveBackups) begin(ctx context.Context, out *parts) error {
	list, err := l.lists.list(ctx)
	if err != nil {
		return err
	}
	if l.lists.request.query("seen") == printOf(list) {
		l.draw(list)
	} else {
		l.whole(list, out)
	}
	l.tellBox(out)
	return nil
}

func (l *liveBackups) take(n news) bool {
	switch {
	case n.schedule != nil:
		return true
	case n.backup != nil:
		return anyBackup(n.backup) || n.backup.Restore != "" && l.box != nil || l.lists.concerns(n.backup.Backup)
	case n.box != nil && l.box != nil:
		if n.box.Sandbox.ID != l.box.ID {
			return false
		}
		*l.box, l.gone = n.box.Sandbox, l.gone || n.box.Deleted
		return true
	case n.box != nil:
		return l.lists.takeBox(*n.box)
	}
	return false
}

// concerns says whether a backup, or its size, is on the page.
func (l *backupLists) concerns(b backup.Backup) bool { return mayBackup(l.request.who, b) }

// takeBox notes that a sandbox is there or gone, and says whether that changes anything.
func (l *backupLists) takeBox(e sandbox.Event) bool {
	box := e.Sandbox
	if !l.request.who.May(box.Owner, box.ID) {
		return false
	}
	_, was := l.there[box.ID]
	if e.Deleted {
		delete(l.there, box.ID)
	} else {
		l.there[box.ID] = box
	}
	return was == e.Deleted
}

func (l *liveBackups) tell(ctx context.Context, _ bool, out *parts) error {
	if l.gone {
		if l.drawn.state != printOf(deletedState) {
			l.drawn.state = printOf(deletedState)
			tellBackupsGone(l.box.Name, out)
		}
		return nil
	}
	l.tellBox(out)
	list, err := l.lists.list(ctx)
	if err == nil {
		l.tellList(list, out)
	}
	return err
}

// tellBox collects what differs on the page of one sandbox beside the list.
func (l *liveBackups) tellBox(out *parts) {
	if l.box == nil {
		return
	}
	s := l.lists.backupHandlers
	state := s.workspace.state(*l.box, s.cfg.Sandboxes.Progress(l.box.ID))
	up, failed := s.backUp(*l.box), s.failedRestore(*l.box)
	if now := printOf(state); now != l.drawn.state {
		l.drawn.state = now
		out.add("backups-state", views.Replace, views.BackupsState(state))
	}
	if now := printOf(up); now != l.drawn.up {
		l.drawn.up = now
		out.add("backups-up", views.Replace, views.BackUpPart(up))
	}
	if now := printOf(failed); now != l.drawn.failed {
		l.drawn.failed = now
		out.add("backups-failed", views.Replace, views.FailedRestorePart(failed))
	}
}

// tellList collects what differs in the list: one by one, where others stay.
func (l *liveBackups) tellList(list views.BackupList, out *parts) {
	before := l.drawn
	fresh := 0
	for fresh < len(list.Items) && before.prints[list.Items[fresh].ID] == "" {
		fresh++
	}
	same := func(b views.Backup) bool { return before.prints[b.ID] != "" }
	if fresh == len(list.Items) || len(before.items) == 0 || slices.ContainsFunc(list.Items[fresh:], func(b views.Backup) bool { return !same(b) }) {
		if fresh > 0 || len(before.items) > 0 {
			l.whole(list, out)
		}
		return
	}
	l.draw(list)
	for _, id := range before.items {
		if l.drawn.prints[id] == "" {
			out.gone("backup-" + id)
		}
	}
	for _, b := range list.Items[fresh:] {
		if before.prints[b.ID] != l.drawn.prints[b.ID] {
			out.add("backup-"+b.ID, views.Replace, views.BackupItem(b))
		}
	}
	for _, b := range slices.Backward(list.Items[:fresh]) {
		out.add("backup-items", views.Prepend, views.BackupItem(b))
	}
	if before.summary != l.drawn.summary {
		out.add("backups-summary", views.Replace, views.BackupsSummary(list))
	}
}

// whole draws the list anew.
func (l *liveBackups) whole(list views.BackupList, out *parts) {
	l.draw(list)
	out.add("backups", views.Replace, views.BackupsPart(list))
}

// draw notes what the page shows from now on.
func (l *liveBackups) draw(list views.BackupList) {
	l.drawn.items, l.drawn.prints = nil, map[string]string{}
	for _, b := range list.Items {
		l.drawn.items = append(l.drawn.items, b.ID)
		l.drawn.prints[b.ID] = printOf(b)
	}
	list.Items = nil
	l.drawn.summary = printOf(list)
}

// tellBackupsGone takes away all that could be done with a sandbox that is deleted. Its backups are on the page of all.
func tellBackupsGone(name string, out *parts) {
	out.add("backups-state", views.Replace, views.BackupsState(deletedState))
	out.add("backups", views.Replace, views.BackupsGone(name))
	for _, id := range []string{"backups-up", "backups-failed", "archive-upload"} {
		out.add(id, views.Remove, templ.NopComponent)
	}
}
