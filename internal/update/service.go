package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

const (
	storeLimit  = 15 * time.Second // one change of the rows
	resumeLimit = 10 * time.Minute // until the engine says what has become of a sandbox
)

var errClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// errCancelled ends what a run waits for when a person has cancelled it.
var errCancelled = errors.New("the update was cancelled")

// Service updates sandboxes. Safe for concurrent use.
type Service struct {
	c     Config
	bus   *event.Bus[Change]
	life  context.Context
	end   context.CancelFunc
	works sync.WaitGroup
	begun chan struct{} // held by the one that begins a run

	newest sync.Map // newest by template

	mu     sync.Mutex
	runs   []Run // the newest first; their Items are not changed, but replaced
	active map[string]*active
}

// active is a run under way.
type active struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended
}

// New reads the runs. Those that the end of sandboxd has cut off are marked so; it is called before the Manager runs, whose rows say what
// has become of their sandboxes. Kinds as for Store.
func New(ctx context.Context, c Config) (*Service, error) {
	s := &Service{c: c, bus: newBus(), begun: make(chan struct{}, 1), active: map[string]*active{}}
	s.life, s.end = context.WithCancel(context.Background())
	var err error
	if s.runs, err = c.Store.List(ctx); err != nil {
		return nil, err
	}
	boxes, _, err := c.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return nil, err
	}
	for n, r := range s.runs {
		if r.State == Running {
			s.runs[n] = cutOff(r, boxes)
			if err := c.Store.Put(ctx, s.runs[n]); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// Why an item of a run that was cut off is as it is.
const (
	endedBefore = "sandboxd was ended before its turn."
	endedDuring = "sandboxd was ended during the update. The sandbox is put back as it was."
)

// cutOff gives a run as one that was cut off. An item that stays Updating is looked at by Run.
func cutOff(r Run, boxes []sandbox.Sandbox) Run {
	r.State, r.Ended, r.Items = CutOff, now(), slices.Clone(r.Items)
	for n := range r.Items {
		i := &r.Items[n]
		at := slices.IndexFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == i.SandboxID })
		switch {
		case i.State == Waiting:
			i.State, i.Problem = Skipped, endedBefore
		case i.State != Updating:
		case at < 0:
			i.State, i.Problem, i.Ended = Skipped, wasDeleted, r.Ended
		case boxes[at].Updating():
			i.State, i.Problem, i.TakenBack, i.Ended = Broken, endedDuring, true, r.Ended
		}
	}
	return r
}

const wasDeleted = "It was deleted meanwhile."

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Run finds out what has become of the sandboxes that runs were cut off at, and lives until ctx ends. Then it cuts off the runs under way,
// and returns when they have ended: the Manager takes back what they have left.
func (s *Service) Run(ctx context.Context) error {
	s.works.Go(func() { s.resume(ctx) })
	<-ctx.Done()
	s.mu.Lock() // nothing is started from here on
	s.end()
	s.mu.Unlock()
	s.works.Wait()
	return nil
}

// resume asks the engine about the sandboxes that a run was cut off at.
func (s *Service) resume(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, resumeLimit)
	defer cancel()
	for _, r := range s.Runs() {
		for n, i := range r.Items {
			if r.State == CutOff && i.State == Updating {
				s.settle(ctx, r, n)
			}
		}
	}
}

// settle says what has become of an item of a run that was cut off. While the engine does not answer it asks again.
func (s *Service) settle(ctx context.Context, r Run, n int) {
	const again = 2 * time.Second
	r.Items = slices.Clone(r.Items)
	i := &r.Items[n]
	for ctx.Err() == nil {
		standing, there, err := s.lookFor(ctx, i.SandboxID)
		switch {
		case err != nil:
			select {
			case <-time.After(again):
			case <-ctx.Done():
				return
			}
			continue
		case !there:
			i.State, i.Problem = Skipped, wasDeleted
		case standing.Older:
			i.State, i.Problem, i.TakenBack = Broken, endedDuring, true
		default:
			i.State = Updated
		}
		i.Ended = now()
		s.keep(ctx, r)
		return
	}
}

func (s *Service) lookFor(ctx context.Context, id string) (standing sandbox.Standing, there bool, err error) {
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{})
	at := slices.IndexFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == id })
	if err != nil || at < 0 {
		return standing, false, err
	}
	_, standing, err = s.c.Sandboxes.Look(ctx, boxes[at].Ref())
	if fault.Is(err, fault.Gone) {
		return standing, false, nil
	}
	return standing, true, err
}

// Subscribe gives all changes from now on. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }

// Runs gives the last runs, the newest first. Their Items are not to be changed.
func (s *Service) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

// Last gives the last run for all sandboxes of a template. NotFound.
func (s *Service) Last(template string) (Run, error) {
	for _, r := range s.Runs() {
		if r.SandboxID == "" && r.Template == template {
			return r, nil
		}
	}
	return Run{}, NotFound("The template " + template)
}

// LastOf gives the last run that had a sandbox in it, with what it did for that one. ok is false when there is none.
func (s *Service) LastOf(sandboxID string) (r Run, i Item, ok bool) {
	for _, r := range s.Runs() {
		for _, i := range r.Items {
			if i.SandboxID == sandboxID {
				return r, i, true
			}
		}
	}
	return Run{}, Item{}, false
}

// Wait blocks until a run has ended, and gives it. The error says that ctx has ended, or that there is no such run.
func (s *Service) Wait(ctx context.Context, id string) (Run, error) {
	s.mu.Lock()
	a := s.active[id]
	s.mu.Unlock()
	if a != nil {
		select {
		case <-a.done:
		case <-ctx.Done():
			return Run{}, fault.Wrap(ctx.Err(), fault.Timeout, "The update is under way. Ask for it later.")
		}
	}
	for _, r := range s.Runs() {
		if r.ID == id {
			return r, nil
		}
	}
	return Run{}, NotFound("It")
}

// Cancel ends a run after the sandbox that is being updated; no further one is begun. Conflict when it has ended already.
func (s *Service) Cancel(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.active[id]
	if a == nil {
		return fault.New(fault.Conflict, "The update has ended already.")
	}
	a.cancel(errCancelled)
	return nil
}

// freshFor is how long a template's newest image is believed without reading the template again.
const freshFor = time.Second

// newest is the newest image of a template, when that was read last.
type newest struct {
	image string
	read  time.Time
}

// Standing says how a sandbox stands to the newest image of its template, which it may know since a second. It is quick enough to be asked
// for every sandbox of a list.
func (s *Service) Standing(box sandbox.Sandbox) sandbox.Standing {
	known, ok := s.newest.Load(box.Spec.Template)
	if !ok || time.Since(known.(newest).read) > freshFor {
		known = newest{s.c.Sandboxes.Newest(box.Spec.Template), time.Now()}
		s.newest.Store(box.Spec.Template, known)
	}
	return s.c.Sandboxes.StandingTo(box, known.(newest).image)
}

// Newest gives the image that a template gives now; "" when it is gone or broken.
func (s *Service) Newest(template string) string { return s.c.Sandboxes.Newest(template) }

// standing is Standing of this very moment.
func (s *Service) standing(box sandbox.Sandbox) sandbox.Standing {
	return s.c.Sandboxes.StandingTo(box, s.c.Sandboxes.Newest(box.Spec.Template))
}

// Uses gives what uses a sandbox now. It may take some seconds.
func (s *Service) Uses(ctx context.Context, box sandbox.Sandbox) []idle.Reason {
	return s.c.InUse(ctx, box)
}

// Older gives the sandboxes of a template that are on an older image, the one that was used last at the end, and how many there are of it
// in all.
func (s *Service) Older(ctx context.Context, template string) (older []sandbox.Sandbox, all int, err error) {
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{Query: template})
	newest := s.c.Sandboxes.Newest(template)
	for _, b := range boxes {
		if b.Spec.Template != template || b.State == sandbox.Deleting {
			continue
		}
		if all++; s.c.Sandboxes.StandingTo(b, newest).Older {
			older = append(older, b)
		}
	}
	last := make(map[string]time.Time, len(older))
	for _, b := range older {
		last[b.ID] = s.c.LastUse(b)
	}
	slices.SortFunc(older, func(a, b sandbox.Sandbox) int {
		if c := last[a.ID].Compare(last[b.ID]); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return older, all, err
}

// Used says that a sandbox is in use, as a Conflict with sandbox.ErrInUse.
func Used(box sandbox.Sandbox, because []idle.Reason) error {
	return fault.Wrap(sandbox.ErrInUse, fault.Conflict, "%s is in use: %s. Wait for the end of that, or force the update.", box.Name, usedBy(because))
}

// usedBy names what uses a sandbox: "terminal main, command make test".
func usedBy(because []idle.Reason) string {
	const most = 3
	var names []string
	for n, r := range because {
		if n == most {
			names = append(names, fmt.Sprintf("and %d more", len(because)-most))
			break
		}
		names = append(names, strings.TrimSpace(kindNames[r.Kind]+" "+r.Detail))
	}
	return strings.Join(names, ", ")
}

var kindNames = map[idle.Kind]string{
	idle.Web: "a request", idle.Stream: "a connection", idle.Terminal: "terminal", idle.Exec: "command", idle.Files: "files", idle.Held: "kept awake by",
	idle.Model: "a call of a model", idle.Agent: "an agent works", idle.Work: "its programs work",
}
