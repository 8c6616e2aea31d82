package files

import (
	"context"
	"time"

	"sandboxd/internal/wire"
)

const (
	// watchPause is how long changes are gathered before they are told of.
	watchPause = 150 * time.Millisecond
	// maxWatches bounds the watches at the same time.
	maxWatches = 32
)

// watch sends the names of folders that change, until the request ends.
func (q *ask) watch() error {
	asked := q.v["path"]
	if len(asked) == 0 || len(asked) > wire.MaxWatched {
		return problem(wire.CodeInvalid, "A watch is on 1 to %d folders.", wire.MaxWatched)
	}
	for _, p := range asked {
		if _, err := q.clean(p); err != nil {
			return err
		}
	}
	watch, err := q.tree.watching.begin()
	if err != nil {
		return err
	}
	defer q.tree.watching.end(watch)
	q.reply.stopKeepAlives() // a watch may be silent for as long as nothing changes
	err = q.tree.act(q.Context(), func(a *actor) error {
		for _, p := range asked {
			full, _ := q.clean(p)
			a.watch(watch, full, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	watch.touch(asked...)
	return q.pass(watch)
}

// pass sends the changes.
func (q *ask) pass(watch *watch) error {
	for {
		if err := q.Context().Err(); err != nil {
			return err
		}
		select {
		case <-q.Context().Done():
			return context.Cause(q.Context())
		case <-watch.news:
		}
		for _, p := range watch.take() {
			if err := q.reply.record(wire.RecordFolder, []byte(p)); err != nil {
				return err
			}
		}
		if err := q.reply.begin(); err != nil {
			return err
		}
		select {
		case <-q.Context().Done():
			return context.Cause(q.Context())
		case <-time.After(watchPause):
		}
	}
}

// watch puts one folder on a watch. One that cannot be watched is told of once, and then no more.
func (a *actor) watch(to *watch, p, asked string) {
	s, err := a.find(p, true)
	if err != nil {
		return
	}
	defer s.walk.close()
	if s.name != "" && s.walk.enter(s.name) != nil {
		return
	}
	a.tree.watching.add(to, s.walk.fd(), asked)
}
