package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// watched are the changes of containers that matter. Health checks and commands, which are many, are left out.
var watched = []events.Action{events.ActionCreate, events.ActionStart, events.ActionDie, events.ActionDestroy,
	events.ActionPause, events.ActionUnPause}

// Watch follows the engine. See sandbox.Runtime. It first learns the engine anew, since it may have been away. A
// sandbox whose container is destroyed is seen once more, as partial.
func (e *Engine) Watch(ctx context.Context, ready func(), seen func(sandbox.Instance)) error {
	if err := e.refresh(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.seen.reset()
	defer e.seen.reset()
	// The engine repeats the events since it was asked for the time: its subscription may begin a moment
	// after its answer does.
	messages, ended := e.client.Load().Events(ctx, events.ListOptions{Since: stamp(e.facts.Load().asked), Filters: e.changes()})
	if err := e.Ping(ctx); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return over(ctx, err)
	default:
	}
	e.seen.watch()
	ready()
	for {
		select {
		case m := <-messages:
			e.tell(ctx, m, seen)
		case err := <-ended:
			return over(ctx, err)
		}
	}
}

func (e *Engine) changes() filters.Args {
	f := e.ours()
	f.Add("type", string(events.ContainerEventType))
	for _, a := range watched {
		f.Add("event", string(a))
	}
	return f
}

// stamp writes a time as the engine reads it: seconds and nanoseconds.
func stamp(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }

// over says why a watch has ended.
func over(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = errors.Join(errWatch, err)
	return fault.Wrap(err, fault.Unavailable, "The connection to the container engine has ended.")
}

var errWatch = errors.New("watch ended")

// tell passes one event on.
func (e *Engine) tell(ctx context.Context, m events.Message, seen func(sandbox.Instance)) {
	id, ours := e.idOf(m.Actor.Attributes["name"], m.Actor.Attributes)
	if !ours {
		return
	}
	e.seen.drop(id)
	i := instance(m.Actor.Attributes)
	at := time.Unix(0, m.TimeNano).UTC()
	switch m.Action {
	case events.ActionStart:
		i.Running, i.Started = true, at
	case events.ActionPause, events.ActionUnPause:
		i.Running, i.Frozen = true, m.Action == events.ActionPause
		// Not only for the time: the engine tells of a freeze before its list shows it, and an inspection waits until then.
		i.Started = e.inspected(ctx, m.Actor.ID).started
	case events.ActionDie:
		d := e.inspected(ctx, m.Actor.ID)
		i.Started = d.started
		i.ExitCode = exitCode(m.Actor.Attributes["exitCode"])
		i.OOM = d.oom && d.exitCode == i.ExitCode
	case events.ActionDestroy:
		i.Partial = true
	}
	seen(i)
}

// inspected looks at a container, best effort: it may be gone already.
func (e *Engine) inspected(ctx context.Context, containerID string) detail {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	r, err := e.client.Load().ContainerInspect(ctx, containerID)
	if err != nil {
		e.c.Log.Debug("look at a container after an event", "error", err)
		return detail{}
	}
	return newDetail(r)
}

func exitCode(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
