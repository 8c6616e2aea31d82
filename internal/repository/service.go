package repository

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
)

// Bounds.
const (
	refreshEvery  = time.Hour
	askLimit      = 5 * time.Minute // for a list, a deletion, a quick check
	maintainLimit = 6 * time.Hour
	eventBuffer   = 64
	maxKept       = 32 // repositories
)

// Engine stores streams in a place. Each call ends with ctx, or by itself with Timeout when nothing moves for a while. Kinds:
// Unavailable (the place cannot be reached or is full), NotFound (there is no repository any more), Conflict (another sandboxd uses it),
// Invalid with a field (what was entered is wrong). No error holds a secret. Implemented by kopia.Engine.
type Engine interface {
	// Connect makes a repository in an empty place, or takes the one that is there.
	Connect(ctx context.Context, a Access, o ConnectOptions) (Connected, error)
	List(ctx context.Context, a Access) (Contents, error)
	// Save stores what d writes, and reads back what is new of it. Nothing is listed before that. It is called once at a time for a
	// repository. Of a full disk, and of what is not read back as it was written, there is an ItemError.
	Save(ctx context.Context, a Access, d Draft) (Item, error)
	// Read gives the stream of an item, to be closed. An error of it may come at its end.
	Read(ctx context.Context, a Access, id string) (Stream, error)
	Delete(ctx context.Context, a Access, ids []string) error
	Check(ctx context.Context, a Access, contents bool, progress func(Progress)) (Checked, error)
	// Maintain gives back the room of what was deleted. Nothing else may use the repository meanwhile. It can be cut off at any moment.
	Maintain(ctx context.Context, a Access) error
	// Forget removes what is kept on this machine of a repository of that name.
	Forget(name string) error
}

// ConnectOptions say how a repository is connected.
type ConnectOptions struct {
	TakeOver bool // also from another sandboxd that uses it
	Known    bool // it must be there: none is made
}

// Connected is a repository that was connected.
type Connected struct {
	Created  bool
	Identity string // of its content: the same wherever it is reached, and of no other one
}

// Stream is what was saved.
type Stream interface {
	Read(p []byte) (int, error)
	Close() error
}

// Record is a repository as it is stored.
type Record struct {
	Name     string
	Identity string // as in Connected
	Place    Place
	Secrets  []byte // sealed
	Kept     []byte // sealed: the contents as they were last seen; nil if never
	Created  time.Time
}

// Store keeps records. Implemented by sqlite.Repositories; repositorytest has its contract.
type Store interface {
	List(ctx context.Context) ([]Record, error) // by name
	Put(ctx context.Context, r Record) error    // replaces one of that name
	Keep(ctx context.Context, name string, kept []byte) error
	Delete(ctx context.Context, name string) error // NotFound
}

// Sealer encrypts for a purpose. Implemented by seal.Key.
type Sealer interface {
	Seal(purpose string, text []byte) ([]byte, error)
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Config holds what a Service needs. All fields are needed, but for Own.
type Config struct {
	Store  Store
	Seal   func() (Sealer, error) // asked for at first need
	Engine Engine
	Log    *slog.Logger
	Own    []string // sandboxd's own folders, absolute, which no repository can be in
}

// Repository is one as it may be shown. It is a value.
type Repository struct {
	Name    string
	Place   Place
	Created time.Time
	Backups int
	Size    int64     // bytes, when it was last seen
	Seen    time.Time // when it was last reached; zero: never
	Saved   time.Time // when a backup was last saved there, since sandboxd has started; else zero
	Problem string    // why it could not be reached the last time; for a person
	Doing   string    // "checking" or "maintenance", or ""
	Done    Progress  // how far a check is
	Result  *Checked  // of the last check since sandboxd has started; nil if that has failed
	Failed  string    // why that has failed
}

// Change says that a repository has changed, or its contents, or that it is gone.
type Change struct {
	Name string
	Gone bool
}

// Service knows the repositories. Safe for concurrent use.
type Service struct {
	Config
	bus     *event.Bus[Change]
	life    context.Context
	end     context.CancelFunc
	works   sync.WaitGroup
	writing semaphore.Keyed
	nudge   chan struct{} // has something when there is maintenance to do

	mu    sync.Mutex
	all   map[string]*known
	gates map[string]*gate // by name; one that was forgotten may still be in use
}

// known is a repository and the work on it.
type known struct {
	Repository
	identity string
	access   Access
	broken   error // why those cannot be opened
	contents Contents
	damaged  []string // ids of backups that a check has found damaged
	version  int      // of those, since sandboxd has started
	dirty    bool     // something was deleted, or cut off
	gate     *gate
}

// Open reads which repositories there are. It asks none of them.
func Open(ctx context.Context, c Config) (*Service, error) {
	s := &Service{Config: c, bus: event.NewBus[Change](eventBuffer), nudge: make(chan struct{}, 1), all: map[string]*known{}, gates: map[string]*gate{}}
	s.life, s.end = context.WithCancel(context.Background())
	list, err := c.Store.List(ctx)
	if err != nil || len(list) == 0 {
		return s, err
	}
	key, err := c.Seal()
	if err != nil {
		c.Log.Error("the key of the backup repositories cannot be used, so none of them can", "error", err)
	}
	for _, r := range list {
		s.all[r.Name] = opened(key, err, r, s.gateOf(r.Name))
	}
	return s, nil
}

// opened makes of a record what is known. One whose secrets cannot be opened, or whose key has a fault, says so when it is used.
func opened(key Sealer, failed error, r Record, g *gate) *known {
	k := &known{Repository: Repository{Name: r.Name, Place: r.Place, Created: r.Created}, identity: r.Identity, access: Access{Name: r.Name, Place: r.Place}, dirty: true, gate: g}
	var text []byte
	err := failed
	if err == nil {
		text, err = key.Open(r.Name, r.Secrets)
	}
	if err == nil {
		err = json.Unmarshal(text, &k.access.Secrets)
	}
	if k.broken = err; err != nil {
		k.Problem = fault.Message(err)
		return k
	}
	if text, err := key.Open(r.Name, r.Kept); err == nil && json.Unmarshal(text, &k.contents) == nil {
		k.note(k.contents)
	}
	return k
}

// note takes in what a repository has.
func (k *known) note(c Contents) {
	k.contents, k.damaged, k.Backups, k.Size, k.Seen = c, c.Damaged, len(c.Items), c.Size, c.Seen
	k.version++
}

// Run looks now and then what is in the repositories, and gives back the room of what was deleted, until ctx ends. Then it cuts off what
// BeginCheck has begun, and returns when that has ended.
func (s *Service) Run(ctx context.Context) error {
	defer func() {
		s.mu.Lock() // nothing is begun from here on
		s.end()
		s.mu.Unlock()
		s.works.Wait()
	}()
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	s.refreshAll(ctx)
	for {
		select {
		case <-ticker.C:
			s.refreshAll(ctx)
		case <-s.nudge:
		case <-ctx.Done():
			return nil
		}
		s.maintainAll(ctx)
	}
}

func (s *Service) refreshAll(ctx context.Context) {
	for _, name := range s.Names() {
		if err := s.Refresh(ctx, name); err != nil && ctx.Err() == nil {
			s.Log.Warn("repository of backups cannot be used", "repository", name, "error", err)
		}
	}
}

// maintainAll gives back the room of what was deleted. What is in use is left for the next time.
func (s *Service) maintainAll(ctx context.Context) {
	for _, name := range s.Names() {
		k, err := s.known(name)
		if err != nil || !s.takeDirty(k) {
			continue
		}
		switch err := s.maintain(ctx, k); {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.mu.Lock()
			k.dirty = true
			s.mu.Unlock()
			if !fault.Is(err, fault.Conflict) { // else it is in use
				s.Log.Warn("room in a repository was not given back yet", "repository", name, "error", err)
			}
		}
	}
}

func (s *Service) takeDirty(k *known) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := k.dirty
	k.dirty = false
	return was
}

// maintain does that for one, and sees how large it is then.
func (s *Service) maintain(ctx context.Context, k *known) error {
	ctx, leave, free := k.gate.alone(ctx, maintainLimit)
	if !free {
		return fault.New(fault.Conflict, "The repository is in use.")
	}
	defer leave()
	s.doing(k, "maintenance")
	defer s.doing(k, "")
	if err := s.Engine.Maintain(ctx, k.access); err != nil {
		return err
	}
	c, err := s.Engine.List(ctx, k.access)
	if err != nil {
		return err
	}
	s.mu.Lock() // pieces that only deleted backups had are gone, so that no other can share them
	k.damaged = slices.DeleteFunc(slices.Clone(k.damaged), func(id string) bool {
		return !slices.ContainsFunc(c.Items, func(i Item) bool { return i.ID == id })
	})
	s.mu.Unlock()
	return s.keep(ctx, k, c)
}

// soil notes that there is room to be given back, which is done when this use is over.
func (s *Service) soil(k *known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.dirty = true
}

func (s *Service) doing(k *known, what string) {
	s.mu.Lock()
	k.Doing = what
	s.mu.Unlock()
	s.bus.Publish(Change{Name: k.Name})
}

// Subscribe gives all changes from now on. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }
