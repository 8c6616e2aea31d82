package web

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/activity"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// What the list does with several sandboxes at once. Each is judged, done and recorded by itself, so that one that is refused keeps none
// of the others.

// bulk is one action on several sandboxes.
type bulk struct {
	action activity.Action
	do     func(ctx context.Context, h access.Handle) error
	is     []sandbox.State // in which there is nothing to do
	one    string          // "is going to sleep"
	many   string
	was    string    // "asleep": of those with nothing to do
	not    string    // "put to sleep"
	ended  [2]string // "was deleted", "were deleted": of what takes a while; or none
	again  bool      // those that ran can be started again
}

func (s *manyHandlers) bulk(name string) (bulk, bool) {
	boxes := s.cfg.Sandboxes
	b, ok := map[string]bulk{
		"start": {action: "sandbox.start", do: accepted(boxes.Start), is: []sandbox.State{sandbox.Running, sandbox.Starting},
			one: "is starting", many: "are starting", was: "running", not: "started"},
		"sleep": {action: activity.SandboxSleep, do: accepted(s.sandboxes.rest(false)), is: []sandbox.State{sandbox.Asleep, sandbox.Sleeping},
			one: "is going to sleep", many: "are going to sleep", was: "asleep", not: "put to sleep", again: true},
		"stop": {action: "sandbox.stop", do: accepted(boxes.Stop), is: []sandbox.State{sandbox.Stopped, sandbox.Stopping},
			one: "is stopping", many: "are stopping", was: "stopped", not: "stopped", again: true},
		"delete": {action: "sandbox.delete", is: []sandbox.State{sandbox.Deleting},
			one: "is being deleted", many: "are being deleted", was: "being deleted", not: "deleted", ended: [2]string{"was deleted", "were deleted"}},
	}[name]
	return b, ok
}

// accepted makes the do of a bulk of a change.
func accepted(c change) func(ctx context.Context, h access.Handle) error {
	return func(ctx context.Context, h access.Handle) error {
		_, err := c.of(ctx, h)
		return err
	}
}

// deletes gives what deletes a sandbox. With onlyUnused it refuses one that was used since the question was asked.
func (s *manyHandlers) deletes(keepLogs, onlyUnused bool) func(ctx context.Context, h access.Handle) error {
	return func(ctx context.Context, h access.Handle) error {
		if onlyUnused && !neverUsed(s.Server, h.Sandbox()) {
			return fault.New(fault.Conflict, "%s was used just now. Delete it again if it is to go all the same.", h.Name())
		}
		if err := keepLog(ctx, s.Server, h.Sandbox(), keepLogs); err != nil {
			return err
		}
		_, err := s.cfg.Sandboxes.Delete(ctx, h.Ref())
		return err
	}
}

// picked is one of the sandboxes that were picked, and what came of it.
type picked struct {
	choice
	box  sandbox.Sandbox
	h    access.Handle
	idle bool // there was nothing to do
	err  error
}

// picked gives those that the form names, each judged.
func (s *manyHandlers) picked(ctx context.Context, r *request) ([]picked, error) {
	chosen := readUseQuery(r.http.PostForm).chosen
	switch {
	case len(chosen) == 0:
		return nil, fault.New(fault.Invalid, "Select at least one sandbox.")
	case len(chosen) > maxChosen:
		return nil, fault.New(fault.Invalid, "Select at most %d sandboxes at once.", maxChosen)
	}
	list := make([]picked, len(chosen))
	for i, c := range chosen {
		p := picked{choice: c}
		if p.h, p.err = s.resolve(ctx, r.who, c.name); p.err == nil && p.h.ID() != c.id {
			p.err = deletedSince(p.h)
		}
		p.box = p.h.Sandbox()
		list[i] = p
	}
	return list, nil
}

// submitMany does one thing with all that were picked, and says with which it could not be done, and why.
func (s *manyHandlers) submitMany(ctx context.Context, r *request) (string, error) {
	name := r.form("do")
	b, ok := s.bulk(name)
	if !ok {
		return "", fault.New(fault.Invalid, "Choose what to do with the sandboxes.")
	}
	list, err := s.picked(ctx, r)
	if err != nil {
		return "", err
	}
	if name == "delete" {
		want, them := s.confirmation(list)
		if r.field("confirm") != want {
			return "", fault.Field("confirm", "Type %s to delete %s.", want, them)
		}
		b.do = s.deletes(r.form("keep_log") != "", want == "")
	}
	var running sync.WaitGroup
	for i := range list {
		running.Go(func() { s.perform(ctx, r, b, &list[i]) })
	}
	running.Wait()
	return s.told(ctx, r, b.told(list))
}

// perform does it with one, and records that.
func (s *manyHandlers) perform(ctx context.Context, r *request, b bulk, p *picked) {
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	who := callerOf(r)
	who.Action = b.action
	ctx = activity.With(ctx, who)
	for _, state := range b.is {
		if p.err == nil && p.box.State == state {
			p.idle = true
			return
		}
	}
	if p.err == nil {
		p.err = b.do(ctx, p.h)
	}
	e := who.Entry(b.action)
	e.SandboxID, e.Sandbox, e.Owner = p.box.ID, p.name, p.box.Owner
	if p.err != nil {
		e.Outcome, e.Problem = outcomeOf(r, p.err)
	}
	s.cfg.Activity.Add(e)
	if p.err != nil && fault.KindOf(p.err) == fault.Internal {
		s.log.Error("act on several sandboxes", "action", b.action, "sandbox", p.name, "request_id", r.id, "err", p.err)
	}
}

// told says what came of it.
func (b bulk) told(list []picked) views.ManyDone {
	v := views.ManyDone{Tone: "good"}
	var done, waits []string
	idle := 0
	for _, p := range list {
		switch {
		case p.err != nil:
			v.Refused = append(v.Refused, refusalOf(p.choice, p.err))
		case p.idle:
			idle++
		default:
			done, waits = append(done, p.name), append(waits, views.RowID(p.box.ID))
			if b.again && (p.box.State == sandbox.Running || p.box.State == sandbox.Frozen) {
				v.Again = append(v.Again, p.value())
			}
		}
	}
	var parts []string
	if len(done) > 0 {
		parts = append(parts, doneWith(done, b.one, b.many))
	}
	switch {
	case idle == 1:
		parts = append(parts, "1 was already "+b.was+".")
	case idle > 1:
		parts = append(parts, fmt.Sprintf("%d were already %s.", idle, b.was))
	}
	if n := len(v.Refused); n > 0 {
		v.Tone = "busy"
		parts = append(parts, fmt.Sprintf("%d could not be %s:", n, b.not))
	}
	if len(done)+idle == 0 {
		v.Tone = "bad"
	}
	v.Title = strings.Join(parts, " ")
	if b.ended[0] != "" && len(done) > 0 {
		parts[0] = doneWith(done, b.ended[0], b.ended[1])
		v.Waits, v.Ended = strings.Join(waits, " "), strings.Join(parts, " ")
	}
	return v
}

// doneWith says what is done with some, the only one by name.
func doneWith(done []string, one, many string) string {
	if len(done) == 1 {
		return done[0] + " " + one + "."
	}
	return strconv.Itoa(len(done)) + " sandboxes " + many + "."
}

// told shows what was done: to the page's script as a part of the list's page, else as that page.
func (s *manyHandlers) told(ctx context.Context, r *request, v views.ManyDone) (string, error) {
	q := shownList(r)
	v.Next = q.url("/")
	if r.byScript() {
		r.head.Set("HX-Reswap", "none")
		r.head.Set("HX-Trigger", "sheet-done, many-done")
		r.answer = views.Part("many-done", views.Fill, views.ManyDonePart(v))
		return "", nil
	}
	var err error
	r.answer, err = s.list.listPage(ctx, r, q, &v)
	return "", err
}

// confirmation is what is to be typed before these are deleted, "" when nobody has used any of them, and what they are called then.
func (s *manyHandlers) confirmation(list []picked) (text, them string) {
	n, used, name := 0, false, ""
	for _, p := range list {
		if p.err == nil {
			n, name = n+1, p.name
			used = used || !neverUsed(s.Server, p.box)
		}
	}
	switch {
	case !used:
		return "", ""
	case n == 1:
		return name, "it"
	}
	return "delete " + strconv.Itoa(n), "them"
}

// submitAskDelete asks before the picked ones go: it changes nothing, and is posted because there may be many. A script gets the question
// as a sheet.
func (s *manyHandlers) submitAskDelete(ctx context.Context, r *request) (string, error) {
	var err error
	r.answer, err = s.deleteForm(ctx, r, views.Field{})
	return "", err
}

// againMany shows the question again when something is wrong with its answer. Of anything else the page of the error tells.
func (s *manyHandlers) againMany(ctx context.Context, r *request, cause error) (templ.Component, error) {
	if fault.FieldOf(cause) != "confirm" {
		return nil, cause
	}
	return s.deleteForm(ctx, r, views.Field{Value: r.form("confirm"), Fault: fault.Message(cause)})
}

func (s *manyHandlers) deleteForm(ctx context.Context, r *request, typed views.Field) (templ.Component, error) {
	list, err := s.picked(ctx, r)
	if err != nil {
		return nil, err
	}
	confirm, _ := s.confirmation(list) // the label of its field has no pronoun
	v := views.ManyDelete{Confirm: confirm, Typed: typed, Keep: r.form("keep_log") != "", Next: shownList(r).url("/")}
	for _, p := range list {
		if p.err == nil {
			v.Boxes = append(v.Boxes, s.asked(p))
		}
	}
	what := several(len(v.Boxes), "sandbox")
	if len(v.Boxes) == 1 {
		what = v.Boxes[0].Title
	}
	v.Heading, v.Button = "Delete "+what+"?", "Delete "+several(len(v.Boxes), "sandbox")
	if v.Confirm != "" {
		v.Lost = manyLost
		if len(list) == 1 {
			v.Lost = s.workspace.lost(list[0].box)
		}
	}
	if r.byScript() {
		return views.ManyDeleteSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete sandboxes", "sandboxes")
	return views.ManyDeletePage(v), nil
}

// manyLost says what goes with sandboxes that were used.
var manyLost = []string{
	"Everything in their /home/agent and /workspace (their volumes).", "All that runs in them, and all that was installed or changed in their systems.",
	"Their snapshots. Backups stay for as long as they are kept.", "Their addresses, tokens limited to them, and links to their ports.",
}

// asked is one of those that are asked about.
func (s *manyHandlers) asked(p picked) views.ManyBox {
	b := views.ManyBox{Pick: p.value(), Title: p.name}
	if p.box.Label != "" {
		b.Title = fmt.Sprintf("%s (%s)", p.box.Label, p.name)
	}
	notes := []string{stateLooks[p.box.State].Text}
	if neverUsed(s.Server, p.box) {
		notes = append(notes, unused)
	}
	if snapshots := s.snapshots.lostSnapshots(p.box); snapshots != "" {
		notes = append(notes, "has snapshots")
	}
	b.Note = strings.Join(notes, " · ")
	return b
}
