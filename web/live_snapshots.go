package web

import (
	"context"
	"slices"
	"sync"

	"github.com/a-h/templ"

	"sandboxd/internal/event"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/views"
)

// follow hands on changes of one kind, until ctx ends: first one that says that anything may have changed, and so again after too much
// at once.
func follow[C any](ctx context.Context, subscribe func() *event.Subscription[C], hand func(*C)) {
	for ctx.Err() == nil {
		changes := subscribe()
		hand(new(C))
		handOn(ctx, changes.C, hand)
		changes.Close()
	}
}

func handOn[C any](ctx context.Context, changes <-chan *C, hand func(*C)) {
	for {
		select {
		case <-ctx.Done():
			return
		case c, ok := <-changes:
			if !ok {
				return
			}
			hand(c)
		}
	}
}

// anySnapshot says whether any may have changed.
func anySnapshot(c *snapshot.Change) bool { return c.Snapshot.ID == "" && c.Restore == "" }

// liveSnapshots keeps the page of a sandbox's snapshots up to date.
type liveSnapshots struct {
	server *snapshotHandlers
	admin  bool   // sees it
	seen   string // print of the list that the page has
	box    sandbox.Sandbox
	gone   bool
	drawn  drawnSnapshots
}

// drawnSnapshots are prints of what the page shows.
type drawnSnapshots struct {
	items                               []string          // ids, in order
	prints                              map[string]string // by id
	foot, state, take, restored, failed string
}

func (s *snapshotHandlers) openLiveSnapshots(ctx context.Context, r *request) (livePage, error) {
	h, err := named(ctx, s.Server, r)
	if showsDeleted(r, err) {
		return &deletedPage{last: func(out *parts) { tellSnapshotsGone(r.param("name"), out) }}, nil
	}
	if err != nil {
		return nil, err
	}
	return &liveSnapshots{server: s, admin: r.isAdmin(), seen: r.query("seen"), box: h.Sandbox()}, nil
}

func (l *liveSnapshots) beside(ctx context.Context, hand func(news)) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { followBackups(ctx, l.server.Server, hand) }) // one that is made says what is done with the sandbox
	follow(ctx, l.server.cfg.Snapshots.Subscribe, func(c *snapshot.Change) { hand(news{snapshot: c}) })
}

func (l *liveSnapshots) begin(_ context.Context, out *parts) error {
	list := l.server.list(l.box, l.admin)
	if l.seen == printOf(list) {
		l.draw(list)
	} else {
		l.whole(list, out)
	}
	l.tellBox(out)
	return nil
}

func (l *liveSnapshots) take(n news) bool {
	switch {
	case n.snapshot != nil:
		return anySnapshot(n.snapshot) || n.snapshot.Restore == l.box.ID || n.snapshot.Snapshot.SandboxID == l.box.ID
	case n.backup != nil:
		return n.backup.Backup.SandboxID == l.box.ID
	case n.box != nil && n.box.Sandbox.ID == l.box.ID:
		l.box, l.gone = n.box.Sandbox, l.gone || n.box.Deleted
		return true
	}
	return false
}

func (l *liveSnapshots) tell(_ context.Context, _ bool, out *parts) error {
	if l.gone {
		if l.drawn.state != printOf(deletedState) {
			l.drawn.state = printOf(deletedState)
			tellSnapshotsGone(l.box.Name, out)
		}
		return nil
	}
	l.tellBox(out)
	l.tellList(l.server.list(l.box, l.admin), out)
	return nil
}

// tellBox collects what differs beside the list.
func (l *liveSnapshots) tellBox(out *parts) {
	s := l.server
	state := s.workspace.state(l.box, s.cfg.Sandboxes.Progress(l.box.ID))
	take, restored, failed := s.take(l.box), s.restored(l.box), s.cfg.Snapshots.Problem(l.box.ID)
	for _, part := range []struct {
		drawn *string
		now   string
		id    string
		show  templ.Component
	}{
		{&l.drawn.state, printOf(state), "snapshots-state", views.SnapshotsState(state)},
		{&l.drawn.take, printOf(take), "snapshots-take", views.TakeSnapshotPart(take)},
		{&l.drawn.restored, printOf(restored), "snapshots-restored", views.RestoredPart(restored)},
		{&l.drawn.failed, printOf(failed), "snapshots-failed", views.FailedSnapshotPart(failed)},
	} {
		if part.now != *part.drawn {
			*part.drawn = part.now
			out.add(part.id, views.Replace, part.show)
		}
	}
}

// tellList collects what differs in the list: one by one, where those that stay are in the same order.
func (l *liveSnapshots) tellList(list views.SnapshotList, out *parts) {
	before := l.drawn
	fresh := 0
	for fresh < len(list.Items) && before.prints[list.Items[fresh].ID] == "" {
		fresh++
	}
	var stay []string
	for _, s := range list.Items[fresh:] {
		stay = append(stay, s.ID)
	}
	l.draw(list)
	kept := slices.DeleteFunc(slices.Clone(before.items), func(id string) bool { return l.drawn.prints[id] == "" })
	if len(stay) == 0 || !slices.Equal(stay, kept) {
		if len(list.Items) > 0 || len(before.items) > 0 {
			out.add("snapshots", views.Replace, views.SnapshotsPart(list))
		}
		return
	}
	for _, id := range before.items {
		if l.drawn.prints[id] == "" {
			out.gone("snapshot-" + id)
		}
	}
	for _, s := range list.Items[fresh:] {
		if before.prints[s.ID] != l.drawn.prints[s.ID] {
			out.add("snapshot-"+s.ID, views.Replace, views.SnapshotItem(s))
		}
	}
	for _, s := range slices.Backward(list.Items[:fresh]) {
		out.add("snapshot-items", views.Prepend, views.SnapshotItem(s))
	}
	if before.foot != l.drawn.foot {
		out.add("snapshots-foot", views.Replace, views.SnapshotsFoot(list.Foot))
	}
}

// whole draws the list anew.
func (l *liveSnapshots) whole(list views.SnapshotList, out *parts) {
	l.draw(list)
	out.add("snapshots", views.Replace, views.SnapshotsPart(list))
}

// draw notes what the page shows from now on.
func (l *liveSnapshots) draw(list views.SnapshotList) {
	l.drawn.items, l.drawn.prints, l.drawn.foot = nil, map[string]string{}, list.Foot
	for _, s := range list.Items {
		l.drawn.items = append(l.drawn.items, s.ID)
		l.drawn.prints[s.ID] = printOf(s)
	}
}

// tellSnapshotsGone takes away all that could be done with a sandbox that is deleted.
func tellSnapshotsGone(name string, out *parts) {
	out.add("snapshots-state", views.Replace, views.SnapshotsState(deletedState))
	out.add("snapshots", views.Replace, views.SnapshotsGone(name))
	for _, id := range []string{"snapshots-take", "snapshots-restored", "snapshots-failed"} {
		out.add(id, views.Remove, templ.NopComponent)
	}
}
