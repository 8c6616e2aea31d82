package volume

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Times.
const (
	eventBuffer = 64
	engineLimit = 3 * time.Minute  // one call to the engine
	sweepEvery  = 2 * time.Minute  // between two tries to remove what was deleted
	reapEvery   = 30 * time.Second // between two looks for programs that serve files and are not used
	reapAfter   = 5 * time.Minute  // how long such a one stays
)

// Store keeps volumes. Safe for concurrent use. Kinds: Unavailable. Implemented by sqlite.Volumes; volumetest has its contract.
type Store interface {
	// Volumes gives all, by name, also those that are being deleted.
	Volumes(ctx context.Context) ([]Volume, error)
	// Put adds a volume, or replaces the one with its id. Conflict with the field "name" when another one has its name that is not being
	// deleted.
	Put(ctx context.Context, v Volume) error
	// Remove removes a row. A missing one is no error.
	Remove(ctx context.Context, id string) error
}

// Engine keeps the content of volumes, and runs the programs that serve their files. All methods are safe for concurrent use and may be
// repeated. They touch only what this sandboxd has made. Kinds: Unavailable, Timeout. Implemented by docker.Engine.
type Engine interface {
	// MakeVolume makes an empty volume that belongs to the user of sandboxes, or leaves the one that is there, and gives its folder on the
	// engine's host.
	MakeVolume(ctx context.Context, id string) (folder string, err error)
	// RemoveVolume removes a volume with its content. Conflict when a container has it; a missing one is no error.
	RemoveVolume(ctx context.Context, id string) error
	// ServeVolume starts a guest that has the volume at target and nothing else of the host but its link's folder. link must be fresh.
	ServeVolume(ctx context.Context, id, target, link string) error
	// EndVolume ends that guest. A missing one is no error.
	EndVolume(ctx context.Context, id string) error
	// SweepVolumes ends all such guests, which an earlier process has left.
	SweepVolumes(ctx context.Context) error
}

// Config holds what a Service needs. All fields are needed.
type Config struct {
	Store    Store
	Engine   Engine
	Guests   Guests
	Template func(name string) bool  // whether there is a template of that name
	Sizes    func() map[string]int64 // bytes by id, as last measured; from memory
	Measure  func()                  // has them measured soon; it does not wait
	Log      *slog.Logger
}

// Change says that a volume has changed, or is gone.
type Change struct{ Name string }

// Service knows the volumes. Safe for concurrent use.
type Service struct {
	c     Config
	bus   *event.Bus[Change]
	turn  chan struct{} // held by the one that changes a row
	nudge chan struct{} // has something when there is content to be removed
	files *Files

	mu      sync.Mutex
	all     []Volume          // as they are stored
	folders map[string]string // on the engine's host, by id, as far as it is known
}

// Open reads which volumes there are. At the first start it makes the row of Shared. It asks nothing of the engine.
func Open(ctx context.Context, c Config) (*Service, error) {
	s := &Service{c: c, bus: event.NewBus[Change](eventBuffer), turn: make(chan struct{}, 1), nudge: make(chan struct{}, 1), folders: map[string]string{}}
	s.files = &Files{service: s, guests: c.Guests, uses: map[string]*serving{}}
	var err error
	if s.all, err = c.Store.Volumes(ctx); err != nil {
		return nil, err
	}
	if _, err := s.Volume(Shared); err == nil {
		return s, nil
	}
	return s, s.put(ctx, Volume{ID: sandbox.NewID(), Name: Shared, Note: "In every sandbox", Mode: ReadOnly, Grants: Grants{All: true}, Created: now()})
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Files is the way into the volumes.
func (s *Service) Files() *Files { return s.files }

// Subscribe gives all changes from now on. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }

// List gives all volumes, Shared first and the others by name. It answers from memory.
func (s *Service) List() []Volume {
	list := slices.DeleteFunc(s.rows(), func(v Volume) bool { return v.Deleting })
	slices.SortFunc(list, func(a, b Volume) int {
		if a.IsShared() != b.IsShared() {
			return map[bool]int{true: -1, false: 1}[a.IsShared()]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

func (s *Service) rows() []Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Volume gives one. NotFound if there is none of that name.
func (s *Service) Volume(name string) (Volume, error) {
	return s.find(name, func(v Volume) bool { return v.Name == name })
}

func (s *Service) byID(id string) (Volume, error) {
	return s.find("", func(v Volume) bool { return v.ID == id })
}

func (s *Service) find(name string, is func(Volume) bool) (Volume, error) {
	for _, v := range s.rows() {
		if !v.Deleting && is(v) {
			return v, nil
		}
	}
	return Volume{}, NotFound(name)
}

// Of gives the volumes that a sandbox gets when it starts next, in the order of List.
func (s *Service) Of(box sandbox.Sandbox) []Volume {
	return slices.DeleteFunc(s.List(), func(v Volume) bool { return !v.Grants.Covers(box) })
}

// Mounts gives the same as what its container is to have, by target.
func (s *Service) Mounts(box sandbox.Sandbox) []sandbox.Mount {
	var list []sandbox.Mount
	for _, v := range s.Of(box) {
		list = append(list, sandbox.Mount{Volume: v.ID, Target: v.Target(), ReadOnly: v.Mode != ReadWrite})
	}
	sandbox.SortMounts(list)
	return list
}

// Size gives the bytes of a volume, as last measured; ok is false when it was not yet. It answers from memory.
func (s *Service) Size(v Volume) (bytes int64, ok bool) {
	bytes, ok = s.c.Sizes()[v.ID]
	return bytes, ok
}

// Folder gives where a volume is on the engine's host; "" when that is not known yet.
func (s *Service) Folder(v Volume) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.folders[v.ID]
}

// Create makes a volume, and gives it. ID and Created are set by it. Kinds: Invalid with a field ("name", "mode", "note", "templates",
// "sandboxes"); Conflict with the field "name" when it is taken; Conflict when there are too many; Unavailable when the engine cannot make
// it.
func (s *Service) Create(ctx context.Context, n Volume) (Volume, error) {
	release, err := s.take(ctx)
	if err != nil {
		return n, err
	}
	defer release()
	if len(s.List()) >= MaxVolumes {
		return n, fault.New(fault.Conflict, "There can be at most %d volumes. Delete one first.", MaxVolumes)
	}
	n.ID, n.Created, n.Deleting = sandbox.NewID(), now(), false
	if n, err = n.checked(Volume{}, s.c.Template); err != nil {
		return n, err
	}
	if err := s.put(ctx, n); err != nil {
		return n, err
	}
	if err := s.make(ctx, n); err != nil { // the row is there: a sandbox that starts, or the next start of sandboxd, makes it
		s.c.Log.Warn("volume is not made yet", "volume", n.Name, "error", err)
	}
	return n, nil
}

// Change changes a volume by change, which must leave ID and Created alone, and gives it. Sandboxes get what has changed when they start
// next. Kinds as for Create, and NotFound.
func (s *Service) Change(ctx context.Context, name string, change func(*Volume)) (Volume, error) {
	release, err := s.take(ctx)
	if err != nil {
		return Volume{}, err
	}
	defer release()
	old, err := s.Volume(name)
	if err != nil {
		return old, err
	}
	next := old
	change(&next)
	if next, err = next.checked(old, s.c.Template); err != nil {
		return next, err
	}
	if err := s.put(ctx, next); err != nil {
		return next, err
	}
	if next.Name != old.Name { // it is elsewhere in the program that serves its files
		s.files.end(ctx, old.ID)
	}
	return next, nil
}

// Delete deletes a volume. Sandboxes that have it now lose it when they start next, and with the last of them its content goes. Kinds:
// NotFound; Conflict for Shared.
func (s *Service) Delete(ctx context.Context, name string) (Volume, error) {
	release, err := s.take(ctx)
	if err != nil {
		return Volume{}, err
	}
	defer release()
	v, err := s.Volume(name)
	if err != nil {
		return v, err
	}
	if v.IsShared() {
		return v, fault.New(fault.Conflict, "The volume %s cannot be deleted. Delete the files in it instead.", Shared)
	}
	v.Deleting = true
	if err := s.put(ctx, v); err != nil {
		return v, err
	}
	s.files.end(ctx, v.ID)
	select {
	case s.nudge <- struct{}{}:
	default:
	}
	return v, nil
}

// take waits for the turn to change a row.
func (s *Service) take(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "The volumes are being changed. Try again in a moment.")
	}
}

// put stores a row, and tells of it. It needs the turn.
func (s *Service) put(ctx context.Context, v Volume) error {
	if err := s.c.Store.Put(ctx, v); err != nil {
		return err
	}
	s.mu.Lock()
	s.all = append(slices.DeleteFunc(slices.Clone(s.all), func(o Volume) bool { return o.ID == v.ID }), v)
	s.mu.Unlock()
	s.bus.Publish(Change{v.Name})
	return nil
}

// make has the engine make a volume, and notes where it is.
func (s *Service) make(ctx context.Context, v Volume) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	folder, err := s.c.Engine.MakeVolume(ctx, v.ID)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.folders[v.ID] = folder
	s.mu.Unlock()
	s.bus.Publish(Change{v.Name})
	return nil
}

// Run makes volumes that the engine does not have yet, removes the content of deleted ones, and ends programs that are not used, until ctx
// ends. Then it ends them all, and returns.
func (s *Service) Run(ctx context.Context) error {
	defer s.files.endAll(context.WithoutCancel(ctx))
	for _, v := range s.List() {
		if err := s.make(ctx, v); err != nil && ctx.Err() == nil {
			s.c.Log.Warn("volume is not made yet", "volume", v.Name, "error", err)
		}
	}
	sweep, reap := time.NewTicker(sweepEvery), time.NewTicker(reapEvery)
	defer sweep.Stop()
	defer reap.Stop()
	for {
		s.removeDeleted(ctx)
		select {
		case <-s.nudge:
		case <-sweep.C:
		case <-reap.C:
			s.files.reap(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// removeDeleted removes the content of deleted volumes that no container has, and then their rows.
func (s *Service) removeDeleted(ctx context.Context) {
	for _, v := range s.rows() {
		if !v.Deleting {
			continue
		}
		err := s.removeOne(ctx, v)
		if err != nil && !fault.Is(err, fault.Conflict) && ctx.Err() == nil { // else a sandbox has it still
			s.c.Log.Warn("a deleted volume is not removed yet", "volume", v.Name, "error", err)
		}
	}
}

func (s *Service) removeOne(ctx context.Context, v Volume) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := s.c.Engine.RemoveVolume(ctx, v.ID); err != nil {
		return err
	}
	if err := s.c.Store.Remove(ctx, v.ID); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(slices.Clone(s.all), func(o Volume) bool { return o.ID == v.ID })
	delete(s.folders, v.ID)
	return nil
}
