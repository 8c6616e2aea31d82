package template

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/cron"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/text"
)

const (
	storeLimit = 10 * time.Second // a call of the store
	lookEvery  = time.Minute      // between two looks at the clock, which may be set
	changeLine = 8                // changes of one template in line
)

// Service keeps the templates that are made here, and rebuilds images. Safe for concurrent use.
type Service struct {
	c       Config
	disk    disk
	sweeper *sweeper
	bus     *event.Bus[Change]
	turns   semaphore.Keyed // by template: one change at a time
	changed chan struct{}   // wakes Run
	life    context.Context
	end     context.CancelFunc
	works   sync.WaitGroup

	mu       sync.Mutex
	sources  map[string]Source
	plans    map[string]Plan
	fetching map[string]bool
	orders   map[string]bool // rebuilds that are to follow a fetch
}

// Open reads sources and plans, removes what a crash has left, and marks builds as cut off that have no end. Nothing may build meanwhile,
// and no other process may change templates.
func Open(ctx context.Context, c Config) (*Service, error) {
	s := &Service{c: c, disk: disk{c.Folder}, bus: event.NewBus[Change](eventBuffer), changed: make(chan struct{}, 1),
		sources: map[string]Source{}, plans: map[string]Plan{}, fetching: map[string]bool{}, orders: map[string]bool{}}
	s.sweeper = &sweeper{roots: c.Roots, disk: s.disk, log: c.Log, unnamed: map[string]bool{}}
	s.life, s.end = context.WithCancel(context.Background())
	if err := errors.Join(s.disk.sweep(), c.Store.Cut(ctx, now())); err != nil {
		return nil, err
	}
	sources, err := c.Store.Sources(ctx)
	if err != nil {
		return nil, err
	}
	for _, src := range sources {
		if _, err := s.disk.current(src.Template); err != nil { // a crash came before its files
			if err := c.Store.DeleteSource(ctx, src.Template); err != nil {
				return nil, err
			}
			continue
		}
		s.sources[src.Template] = src
	}
	plans, err := c.Store.Plans(ctx)
	for _, p := range plans {
		s.plans[p.Template] = p
	}
	return s, err
}

// turn runs act when nothing else changes the template. Conflict when too much is in line.
func (s *Service) turn(ctx context.Context, name string, act func() (Files, error)) (Files, error) {
	release, err := s.turns.Acquire(ctx, name, 1, changeLine)
	if errors.Is(err, semaphore.ErrFull) {
		err = fault.New(fault.Conflict, "The template %s is being changed by others. Try again in a moment.", name)
	}
	if err != nil {
		return Files{}, err
	}
	defer release()
	if s.life.Err() != nil {
		return Files{}, errClosing
	}
	f, err := act()
	s.sweeper.soon()
	s.nudge()
	s.tell(name)
	return f, err
}

// change is turn for a template that is written here.
func (s *Service) change(ctx context.Context, name string, act func() (Files, error)) (Files, error) {
	return s.turn(ctx, name, func() (Files, error) {
		if _, ok := s.source(name); ok {
			return Files{}, &fault.Error{Kind: fault.Conflict, Field: "name", Message: "The template " + name + " comes from a git repository. Change it there, or make a copy."}
		}
		names, err := s.disk.names()
		if _, isNew := s.disk.current(name); err == nil && isNew != nil && len(names) >= maxOwn {
			err = fault.New(fault.Conflict, "There can be at most %d templates of your own. Delete one first.", maxOwn)
		}
		if err != nil {
			return Files{}, err
		}
		return act()
	})
}

// Delete deletes a template that was made here, with its source, its plan and the record of its builds. Images stay, but for those of a root.
// Conflict when sandboxes are made from it or templates build on it, and no other template of its name takes its place; NotFound when it was not
// made here.
func (s *Service) Delete(ctx context.Context, name string) error {
	_, err := s.turn(ctx, name, func() (none Files, err error) {
		if _, err := s.disk.current(name); err != nil {
			return none, err
		}
		e, err := entryOf(s.c.Templates, name)
		if err != nil {
			return none, err
		}
		beneath := e.Replaces != ""
		if !beneath {
			if err := s.unused(ctx, name); err != nil {
				return none, err
			}
		}
		if err := s.disk.remove(name); err != nil {
			return none, err
		}
		err = s.dropSource(name)
		if !beneath {
			err = errors.Join(err, s.dropPlan(ctx, name), s.c.Store.DeleteBuilds(ctx, name))
		}
		return none, err
	})
	return err
}

// unused refuses to delete what is in use, and says by whom.
func (s *Service) unused(ctx context.Context, name string) error {
	boxes, err := s.c.Users(ctx, name)
	if err != nil {
		return err
	}
	if len(boxes) > 0 {
		return fault.New(fault.Conflict, "The template %s is in use by %s. Delete %s first.", name, few(boxes, "sandbox", "sandboxes"), those(boxes))
	}
	if on := s.c.Templates.BuiltOn(name); len(on) > 0 {
		return fault.New(fault.Conflict, "The template %s is the base of %s. Delete %s first, or give another base.", name, few(on, "template", "templates"), those(on))
	}
	return nil
}

func those(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "those"
}

// few names some, and says how many more there are.
func few(names []string, one, many string) string {
	const most = 5
	if len(names) == 1 {
		return "the " + one + " " + names[0]
	}
	list := strings.Join(names[:min(most, len(names))], ", ")
	if n := len(names) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%d %s: %s", len(names), many, list)
}

// Plan gives when a template is rebuilt by itself; ok is false when it is not.
func (s *Service) Plan(name string) (p Plan, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok = s.plans[name]
	return p, ok
}

// SetPlan says when a template is rebuilt by itself; an empty Cron ends that, also for a template that is gone. Kinds: Invalid with the field
// "cron" or "zone", NotFound.
func (s *Service) SetPlan(ctx context.Context, p Plan) (Plan, error) {
	_, planned := s.Plan(p.Template)
	if _, err := entryOf(s.c.Templates, p.Template); err != nil && !(planned && text.Trim(p.Cron) == "") {
		return p, err
	}
	p.Cron, p.Zone, p.Next = text.Trim(p.Cron), text.Trim(p.Zone), time.Time{}
	if p.Zone == "" {
		p.Zone = "UTC"
	}
	if p.Cron == "" {
		return p, s.dropPlan(ctx, p.Template)
	}
	times, err := cron.Check("cron", p.Cron, p.Zone)
	if err != nil {
		return p, err
	}
	p.Next = times.Next(time.Now()).UTC()
	return p, s.keepPlan(ctx, p)
}

func (s *Service) keepPlan(ctx context.Context, p Plan) error {
	if err := s.c.Store.PutPlan(ctx, p); err != nil {
		return err
	}
	s.mu.Lock()
	s.plans[p.Template] = p
	s.mu.Unlock()
	s.nudge()
	s.tell(p.Template)
	return nil
}

func (s *Service) dropPlan(ctx context.Context, name string) error {
	if err := s.c.Store.DeletePlan(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.plans, name)
	s.mu.Unlock()
	s.tell(name)
	return nil
}

func (s *Service) tell(name string) { s.bus.Publish(Change{name}) }

func (s *Service) nudge() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Builds gives the newest builds of a template without their logs, the newest first.
func (s *Service) Builds(ctx context.Context, name string) ([]Build, error) {
	return s.c.Store.Builds(ctx, name)
}

// Build gives one build of a template with its log. NotFound.
func (s *Service) Build(ctx context.Context, name string, id int64) (Build, error) {
	return s.c.Store.Build(ctx, name, id)
}

// Rebuild begins to build a template's image, after a look for a newer revision if it comes from git. It does not wait for that: what goes
// wrong is told by the source and by the record of builds. One that is under way is left alone.
func (s *Service) Rebuild(name string, o catalog.Order) error {
	if _, ok := s.source(name); !ok {
		return s.c.Build(name, o)
	}
	if _, err := entryOf(s.c.Templates, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return errClosing
	}
	if s.orders[name] {
		return nil
	}
	s.orders[name] = true
	s.works.Go(func() { s.follow(name, o) })
	return nil
}
