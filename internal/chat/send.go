package chat

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Bounds of what is said of a file, in bytes.
const (
	maxPath = 4096 // the kernel's own
	maxType = 127
)

// Send gives the agent a message: at once when it is idle, else after the messages that wait. One with the ID of another that waits, or was
// the last to be taken up, is that one. Kinds: Invalid, NotFound.
func (s *Service) Send(ctx context.Context, id string, m Queued) (Queued, error) {
	if err := m.check(); err != nil {
		return m, err
	}
	if m.ID == "" {
		m.ID = sandbox.NewID()
	}
	m.At = s.c.Now()
	l, done, err := s.use(ctx, id)
	if err != nil {
		return m, err
	}
	defer done()
	l.change(func(l *live) {
		switch {
		case l.last == m.ID || slices.ContainsFunc(l.queue, func(q Queued) bool { return q.ID == m.ID }):
		case l.full():
			err = errFull
		case len(l.queue) >= MaxQueue:
			err = fault.New(fault.Invalid, "%d messages wait already. Delete one, or wait for the agent.", MaxQueue)
		case pictured(append(slices.Clone(l.queue), m)) > MaxWaiting:
			err = fault.New(fault.Invalid, "The pictures of the messages that wait have at most %d MiB together. Delete one, or wait for the agent.", MaxWaiting>>20)
		default:
			l.setQueue(append(slices.Clone(l.queue), m))
			l.header(m.At).Held = false
		}
	})
	if err != nil {
		return m, err
	}
	if err := l.commit(ctx); err != nil {
		l.change(func(l *live) {
			l.setQueue(slices.DeleteFunc(slices.Clone(l.queue), func(q Queued) bool { return q.ID == m.ID }))
		})
		return m, err
	}
	if err := s.next(ctx, l); err != nil { // the message is kept, and taken up later
		s.c.Log.Warn("begin a turn", "conversation", id, "error", err)
	}
	return m, nil
}

// pictured is how many bytes the pictures of messages have.
func pictured(queue []Queued) (n int) {
	for _, m := range queue {
		for _, f := range m.Files {
			n += len(f.Data)
		}
	}
	return n
}

func (m *Queued) check() error {
	m.Text = strings.ToValidUTF8(m.Text, "\uFFFD")
	switch {
	case strings.TrimSpace(m.Text) == "" && len(m.Files) == 0:
		return fault.Field("text", "The message is empty.")
	case len(m.Text) > MaxMessage:
		return fault.Field("text", "A message has at most %d KiB. Put the text into a file of the sandbox.", MaxMessage>>10)
	case len(m.ID) > 64:
		return fault.Field("id", "The id of a message has at most 64 bytes.")
	case len(m.Files) > MaxFiles:
		return fault.Field("files", "There can be at most %d files beside a message.", MaxFiles)
	}
	room := MaxImage
	for _, f := range m.Files {
		room -= len(f.Data)
		switch {
		case f.Name == "" || len(f.Name) > 255 || text.Unprintable(f.Name):
			return fault.Field("files", "The name of a file has 1 to 255 bytes of printable characters.")
		case len(f.Path) > maxPath || text.Unprintable(f.Path):
			return fault.Field("files", "The path of the file %s has at most %d bytes of printable characters.", f.Name, maxPath)
		case len(f.Type) > maxType || text.Unprintable(f.Type):
			return fault.Field("files", "The type of the file %s is none, such as image/png.", f.Name)
		case room < 0:
			return fault.Field("files", "The pictures of a message have at most %d MiB together.", MaxImage>>20)
		case f.Path == "" && len(f.Data) == 0:
			return fault.Field("files", "The file %s needs a path in the sandbox, or its data if it is a picture.", f.Name)
		case len(f.Data) > 0 && (!slices.Contains(PictureTypes, f.Type) || http.DetectContentType(f.Data) != f.Type):
			return fault.Field("files", "The file %s is no picture of the type %.40q. Only PNG, JPEG, GIF and WebP can be sent as data.", f.Name, f.Type)
		}
	}
	return nil
}

// Arrange puts the messages that wait into another order: those whose IDs are named, in that order. The others are deleted. Kind: NotFound.
func (s *Service) Arrange(ctx context.Context, id string, ids []string) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	l.change(func(l *live) {
		var next []Queued
		for _, m := range ids {
			at := slices.IndexFunc(l.queue, func(q Queued) bool { return q.ID == m })
			if at >= 0 && !slices.ContainsFunc(next, func(q Queued) bool { return q.ID == m }) {
				next = append(next, l.queue[at])
			}
		}
		l.setQueue(next)
	})
	return l.commit(ctx)
}

// SendNow has a message that waits taken up at once: it ends the turn under way. Kind: NotFound.
func (s *Service) SendNow(ctx context.Context, id, message string) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if err := s.takeUp(ctx, l); err != nil {
		return err
	}
	l.change(func(l *live) {
		at := slices.IndexFunc(l.queue, func(q Queued) bool { return q.ID == message })
		if at < 0 {
			err = fault.New(fault.NotFound, "The message does not wait any more.")
			return
		}
		l.setQueue(slices.Concat(l.queue[at:at+1], l.queue[:at], l.queue[at+1:]))
		l.header(s.c.Now()).Held = false
		if l.turn != nil {
			l.turn.steered = true
			l.turn.cancel(errCancelled)
		}
	})
	if err != nil {
		return err
	}
	return errors.Join(l.commit(ctx), s.next(ctx, l))
}

// Cancel ends the turn under way. What was said and done stays; messages that wait do so until the next one is sent. Without a turn it does
// nothing.
func (s *Service) Cancel(ctx context.Context, id string) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if err := s.takeUp(ctx, l); err != nil {
		return err
	}
	l.change(func(l *live) {
		if l.turn != nil {
			l.header(s.c.Now()).Held = true // also when sandboxd ends before the turn has
			l.turn.cancel(errCancelled)
		}
	})
	return l.commit(ctx)
}

// Answer answers a question. Kinds: Invalid, NotFound, Conflict when it is not open.
func (s *Service) Answer(ctx context.Context, id, question, answered, user string) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if err := s.takeUp(ctx, l); err != nil {
		return err
	}
	l.mu.Lock()
	turn := l.turn
	l.mu.Unlock()
	if turn == nil {
		return errAnswered
	}
	if err := turn.answer(question, answered, user); err != nil {
		return err
	}
	return l.commit(ctx)
}

// Resume continues a turn that failed or was cancelled. Kinds: NotFound, Conflict.
func (s *Service) Resume(ctx context.Context, id string) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	l.mu.Lock()
	can, turn := l.turn == nil && l.c.Turn > 0, l.c.Turn
	l.mu.Unlock()
	items, err := s.c.Store.Items(ctx, id, ItemQuery{Turn: turn})
	if err != nil {
		return err
	}
	if !can || len(items) > 0 && items[0].Undone {
		return fault.New(fault.Conflict, "There is no turn that could be continued.")
	}
	return s.resume(ctx, l, false)
}
