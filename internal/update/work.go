package update

import (
	"context"
	"errors"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// imageLimit bounds the wait for an image that is built first.
const imageLimit = 45 * time.Minute

// work is what a run does.
type work struct {
	*Service
	life   context.Context // ends with the Service
	wanted context.Context // and when the run is cancelled
	run    Run
	boxes  []sandbox.Sandbox // of its items
}

// do works through the run. What the end of the Service cuts off is left as it is on record: the next New marks it.
func (w *work) do() {
	if err := w.image(); err != nil {
		w.refuse(err)
		return
	}
	w.keep(w.life, w.run)
	again := false
	for at := range w.boxes {
		if !w.turn(at) {
			return
		}
		again = again || w.run.Items[at].State == InUse && w.run.SandboxID == ""
	}
	for at := range w.boxes {
		if again && w.run.Items[at].State == InUse && !w.turn(at) {
			return
		}
	}
	w.close(Done, "")
}

// image gets the newest image, building it first when it is not there.
func (w *work) image() error {
	t, err := w.c.Templates.Template(w.run.Template)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.wanted, imageLimit)
	defer cancel()
	w.run.Image, err = w.c.Images.Ensure(ctx, t, func(catalog.BuildEvent) {})
	return err
}

// refuse ends a run that has no image to put sandboxes on.
func (w *work) refuse(err error) {
	switch {
	case w.life.Err() != nil:
	case w.wanted.Err() != nil:
		w.close(Cancelled, wasCancelled)
	default:
		w.run.Problem = fault.Message(err)
		w.c.Log.Warn("sandboxes are not updated: their image cannot be made", "template", w.run.Template, "error", err)
		w.close(Failed, "The image could not be made.")
	}
}

// Why items were skipped.
const (
	wasCancelled = "The update was cancelled before its turn."
	wasStopped   = "The update stopped before its turn, because another sandbox failed."
)

// turn updates one sandbox, if it is not in use, and says whether the run continues.
func (w *work) turn(at int) bool {
	if w.wanted.Err() != nil && w.life.Err() == nil {
		w.close(Cancelled, wasCancelled)
		return false
	}
	i := &w.run.Items[at]
	i.State, i.Problem, i.Began, i.Ended = Updating, "", now(), time.Time{}
	w.keep(w.life, w.run)
	w.update(at)
	if w.life.Err() != nil {
		w.c.Log.Info("update of sandboxes was cut off", "template", w.run.Template, "sandbox", i.Sandbox)
		return false
	}
	i.Ended = now()
	if w.run.Count(Broken) >= w.run.MaxFailures {
		w.close(Stopped, wasStopped)
		return false
	}
	w.keep(w.life, w.run)
	return true
}

// close ends the run. Those that were not begun are skipped, for the reason why.
func (w *work) close(s State, why string) {
	w.run.State, w.run.Ended = s, now()
	for n := range w.run.Items {
		if i := &w.run.Items[n]; i.State == Waiting {
			i.State, i.Problem = Skipped, why
		}
	}
	w.keep(w.life, w.run)
}

// update updates one sandbox, and notes how it went.
func (w *work) update(at int) {
	i := &w.run.Items[at]
	box, err := w.c.Sandboxes.Current(w.life, w.boxes[at].Ref())
	if err == nil {
		w.boxes[at] = box
		i.Sandbox, i.Owner = box.Name, box.Owner
	}
	switch {
	case fault.Is(err, fault.Gone):
		i.State, i.Problem = Skipped, wasDeleted
		return
	case err != nil:
		i.State, i.Problem = Broken, fault.Message(err)
		return
	case box.State == sandbox.Failed && w.run.SandboxID == "":
		i.State, i.Problem = Skipped, "It has failed. Start it again, or update it by itself."
		return
	case !box.State.Settled():
		i.State, i.Problem = InUse, "It is "+string(box.State)+"."
		return
	}
	u := sandbox.Update{Image: w.run.Image}
	if !w.run.Force {
		if because := w.c.InUse(w.life, box); len(because) > 0 {
			i.State, i.Problem = InUse, usedBy(because)
			return
		}
		u.Unused = func() bool { return w.c.Unused(box.ID) }
	}
	c := &checkup{Service: w.Service, before: w.services(box), began: i.Began}
	u.Check = c.check
	safety, err := w.c.Snapshots.Update(w.life, box, u)
	i.Safety = safety.ID
	if errors.Is(err, snapshot.ErrClosing) || errors.Is(err, sandbox.ErrClosing) {
		<-w.life.Done() // it ends as well, if not at the very moment
		return
	}
	w.note(i, err)
	if i.State == Broken {
		i.Log = c.log
	}
}

// note notes how the update of a sandbox went.
func (w *work) note(i *Item, err error) {
	switch {
	case err == nil:
		i.State = Updated
		return
	case errors.Is(err, sandbox.ErrInUse):
		i.State, i.Problem = InUse, "It was used again meanwhile."
		return
	case fault.Is(err, fault.Gone):
		i.State, i.Problem = Skipped, wasDeleted
		return
	case fault.Is(err, fault.Conflict) && !errors.Is(err, sandbox.ErrTakenBack):
		i.State, i.Problem = InUse, fault.Message(err)
		return
	}
	i.State, i.Problem, i.TakenBack = Broken, fault.Message(err), errors.Is(err, sandbox.ErrTakenBack)
	w.c.Log.Warn("update of a sandbox failed", "sandbox", i.Sandbox, "taken_back", i.TakenBack, "error", err)
}
