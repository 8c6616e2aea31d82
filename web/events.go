package web

import (
	"context"

	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// maxSnapshot bounds the first event of a stream; the list has pages for more.
const maxSnapshot = maxPage

// snapshotShape is the first event of every stream: how things stand. What follows are changes to it.
type snapshotShape struct {
	Sandboxes []sandboxShape `json:"sandboxes"`
	Total     int            `json:"total"` // more than there are in sandboxes when those are too many
}

// changeShape is one change of one sandbox.
type changeShape struct {
	Sandbox  sandboxShape   `json:"sandbox"`
	Progress *progressShape `json:"progress"` // null when nothing is under way
}

type progressShape struct {
	Phase    string  `json:"phase"`
	Fraction float64 `json:"fraction"` // 0 to 1 within the phase, 0 when it cannot be told
	Detail   string  `json:"detail"`
}

type goneShape struct {
	Name string `json:"name"`
}

// behindShape says that the reader was too slow and has missed changes; the stream ends after it.
type behindShape struct {
	Detail string `json:"detail"`
}

var behind = behindShape{Detail: "You read too slowly and have missed changes. Connect again."}

// imageChange is one change of how a template's image stands.
type imageChange struct {
	Name  string         `json:"name"`
	Image *templateImage `json:"image"`
}

// changes is what one stream listens to.
type changes struct {
	boxes  *event.Subscription[sandbox.Event]
	images *event.Subscription[catalog.ImageEvent]
	uses   *event.Subscription[idle.Change] // only of pages
	alerts *alertFeed                       // only of pages
	agents *agentFeed                       // only of pages
	told   map[string]templateImage         // by template: the last one sent
	inside <-chan news                      // what changes in a sandbox itself; nil for none
}

func (s *liveHandlers) listen() *changes {
	return &changes{boxes: s.cfg.Sandboxes.Subscribe(), images: s.cfg.Images.Subscribe(), told: map[string]templateImage{}}
}

// withUses makes c listen to what uses sandboxes too, from now on.
func (c *changes) withUses(u Uses) *changes {
	if c.uses != nil {
		c.uses.Close()
	}
	c.uses = u.Subscribe()
	return c
}

func (c *changes) close() {
	c.boxes.Close()
	c.images.Close()
	if c.uses != nil {
		c.uses.Close()
	}
	if c.alerts != nil {
		c.alerts.Close()
	}
	if c.agents != nil {
		c.agents.Close()
	}
}

// apiEvents streams what changes among the sandboxes that the caller may see, and how images stand. There is no
// history: Last-Event-ID is not looked at, and each stream begins with a snapshot, so that a reader who reconnects has
// missed nothing.
func (s *liveHandlers) apiEvents(ctx context.Context, r *request) (pump, func(), error) {
	from := s.listen() // before the snapshot, so that no change falls between
	first, err := s.snapshot(ctx, r.who)
	if err != nil {
		from.close()
		return nil, nil, err
	}
	return func(ctx context.Context, out events) error {
		if err := eventJSON(out, "snapshot", first); err != nil {
			return err
		}
		return s.tellChanges(ctx, out, r.who, from)
	}, from.close, nil
}

func (s *liveHandlers) snapshot(ctx context.Context, who auth.Principal) (snapshotShape, error) {
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	f := sandbox.Filter{Limit: maxSnapshot}
	if who.User.Role != auth.Admin {
		f.Owner = who.User.ID
	}
	boxes, total, err := s.sandboxes.list(ctx, who, f)
	if err != nil {
		return snapshotShape{}, err
	}
	out := snapshotShape{Sandboxes: make([]sandboxShape, 0, len(boxes)), Total: total}
	names := newOwners(s.cfg.Accounts)
	for _, box := range boxes {
		shape, err := s.sandboxes.shape(ctx, names, box)
		if err != nil {
			return snapshotShape{}, err
		}
		out.Sandboxes = append(out.Sandboxes, shape)
	}
	return out, nil
}

func (s *liveHandlers) tellChanges(ctx context.Context, out events, who auth.Principal, from *changes) error {
	names := newOwners(s.cfg.Accounts)
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-from.boxes.C:
			if !open {
				return eventJSON(out, "behind", behind)
			}
			if who.May(e.Sandbox.Owner, e.Sandbox.ID) {
				err = s.tellChange(ctx, out, names, *e)
			}
		case e, open := <-from.images.C:
			if !open {
				return eventJSON(out, "behind", behind)
			}
			err = from.tellImage(out, *e)
		}
		if err != nil {
			return err
		}
	}
}

// tellImage passes on changes of an image's state; the lines of its log are elsewhere.
func (c *changes) tellImage(out events, e catalog.ImageEvent) error {
	now := newTemplateImage(e.Status)
	known := *now
	known.Remaining = 0 // which shrinks all the time
	if c.told[e.Template] == known {
		return nil
	}
	c.told[e.Template] = known
	return eventJSON(out, "template", imageChange{Name: e.Template, Image: now})
}

func (s *liveHandlers) tellChange(ctx context.Context, out events, names *owners, e sandbox.Event) error {
	if e.Deleted {
		return eventJSON(out, "deleted", goneShape{Name: e.Sandbox.Name})
	}
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	shape, err := s.sandboxes.shape(ctx, names, e.Sandbox)
	if err != nil {
		return err
	}
	change := changeShape{Sandbox: shape}
	if p := e.Progress; p != (sandbox.Progress{}) {
		change.Progress = &progressShape{Phase: string(p.Phase), Fraction: p.Fraction, Detail: p.Detail}
	}
	return eventJSON(out, "sandbox", change)
}
