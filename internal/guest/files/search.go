package files

import (
	"context"
	"errors"
	"time"

	"sandboxd/internal/wire"
)

// searchTime bounds one search.
const searchTime = 30 * time.Second

var errTime = errors.New("it takes too long")

// search sends the matches, and at the end whether there may be more.
func (q *ask) search() error {
	s, err := wire.SearchOf(q.v)
	if err != nil {
		return problem(wire.CodeInvalid, "That cannot be searched for: %v.", err)
	}
	if s.Path, err = q.clean(s.Path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(q.Context(), searchTime, errTime)
	defer cancel()
	f := &finding{Search: s, reply: q.reply}
	err = q.tree.actIn(ctx, q.tree.seeks, func(a *actor) error {
		w, err := a.openIn(s.Path, false)
		if err != nil {
			return err
		}
		defer w.close()
		if s.In == wire.SearchNames {
			return f.byName(w)
		}
		return f.byContent(w)
	})
	more := int64(0)
	if errors.Is(err, errEnough) || err != nil && context.Cause(ctx) == errTime {
		more, err = 1, nil
	}
	if err != nil {
		return about(s.Path, err)
	}
	q.reply.end(wire.AppendNumbers(nil, more))
	return nil
}
