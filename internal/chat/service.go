package chat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Config says what a Service works on.
type Config struct {
	Store       Store
	Drivers     func(agent string) (Driver, error) // NotFound, with a sentence, for an agent that there is none of
	Checkpoints Checkpoints
	// Ready returns when sandboxes can be used, or ctx ends. Turns that the last end of sandboxd broke off continue then. nil is at once.
	Ready func(ctx context.Context)
	Hold  func(sandbox string) (release func()) // keeps a sandbox awake while a turn works; not while it waits for a person
	// May tells whether the agent of a conversation may still work in its sandbox. It is asked from time to time; a Forbidden, NotFound or
	// Gone ends the turn. nil permits all.
	May func(ctx context.Context, c Conversation) error
	// Left is told when a person has stopped the agent of a conversation, and when the conversation is deleted: what the agent has left
	// running ends. nil is told nothing.
	Left func(c Conversation)
	Log  *slog.Logger
	Now  func() time.Time // nil means time.Now
}

// Why a turn ends before its driver is done.
var (
	errClosing   = fault.New(fault.Unavailable, "sandboxd is shutting down. The turn continues when it is back.")
	errCancelled = errors.New("cancelled by a person")
	errDeleted   = errors.New("the conversation is deleted")
	errFull      = fault.New(fault.Limited, "The conversation is full: it has %d items, or %d MiB. Begin another one.", MaxItems, MaxBytes>>20)
	errAnswered  = fault.New(fault.Conflict, "The question is not open any more: it was answered, or its turn has ended.")
)

const (
	titleLength = 80  // bytes of a title made from a message
	maxTitle    = 200 // bytes of one that a person gives
	sweepEvery  = 15 * time.Second
)

// Service is all conversations. Safe for concurrent use.
type Service struct {
	c     Config
	life  context.Context
	end   context.CancelCauseFunc
	works sync.WaitGroup

	mu      sync.Mutex
	live    map[string]*opening
	closing bool
}

// opening is a conversation that is in memory, or on its way there.
type opening struct {
	ready chan struct{}
	l     *live
	err   error
	users int // guarded by Service.mu
}

// New makes a Service. Run lets it live.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Hold == nil {
		c.Hold = func(string) func() { return func() {} }
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) {}
	}
	if c.May == nil {
		c.May = func(context.Context, Conversation) error { return nil }
	}
	if c.Left == nil {
		c.Left = func(Conversation) {}
	}
	s := &Service{c: c, live: map[string]*opening{}}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Run continues the turns that the last end of sandboxd broke off, and ends those under way when ctx ends, so that they can be continued.
func (s *Service) Run(ctx context.Context) error {
	busy, err := s.c.Store.Busy(ctx)
	if err != nil && ctx.Err() == nil {
		s.c.Log.Warn("conversations that were under way", "error", err)
	}
	s.c.Ready(ctx)
	for _, c := range busy {
		if err := s.revive(ctx, c.ID); err != nil && ctx.Err() == nil {
			s.c.Log.Warn("continue a conversation", "conversation", c.ID, "error", err)
		}
	}
	for tick := time.Tick(sweepEvery); ctx.Err() == nil; {
		select {
		case <-tick:
			s.sweep(ctx)
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.end(errClosing)
	s.works.Wait()
	return nil
}

// sweep ends the turns of conversations that were deleted with their sandbox or their owner, and of those who may not use it any more. A
// turn that waits for an answer would not notice.
func (s *Service) sweep(ctx context.Context) {
	for _, l := range s.inMemory() {
		c, err := s.c.Store.Conversation(ctx, l.id)
		switch {
		case fault.Is(err, fault.NotFound):
			l.change((*live).vanish)
			continue
		case err != nil:
			continue // the next sweep asks again
		}
		l.mu.Lock()
		t, runs := l.turn, len(l.runs)
		l.mu.Unlock()
		if t == nil && runs == 0 {
			continue
		}
		if err := s.c.May(ctx, c); fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
			if t != nil {
				t.cancel(err)
			}
			l.change(func(l *live) { l.endRuns(err) })
		}
	}
}

// inMemory gives the conversations that are read or worked on now.
func (s *Service) inMemory() (all []*live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.live {
		select {
		case <-o.ready:
			if o.err == nil {
				all = append(all, o.l)
			}
		default:
		}
	}
	return all
}

func (s *Service) revive(ctx context.Context, id string) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	return s.next(ctx, l)
}

// use gives a conversation that stays in memory until done is called.
func (s *Service) use(ctx context.Context, id string) (l *live, done func(), err error) {
	s.mu.Lock()
	o := s.live[id]
	if o == nil {
		o = &opening{ready: make(chan struct{})}
		s.live[id] = o
		go func() { // for all who wait, also when the first one leaves; it ends with its read
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyLimit)
			defer cancel()
			o.l, o.err = openLive(ctx, s.c.Store, id)
			close(o.ready)
		}()
	}
	o.users++
	s.mu.Unlock()
	done = sync.OnceFunc(func() { s.leave(id, o) })
	select {
	case <-o.ready:
	case <-ctx.Done():
		done()
		return nil, nil, ctx.Err()
	}
	if o.err != nil {
		done()
		return nil, nil, o.err
	}
	return o.l, done, nil
}

func (s *Service) leave(id string, o *opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.users--
	if o.users == 0 && s.live[id] == o {
		delete(s.live, id)
	}
}

// Create begins a conversation in a sandbox. Sandbox, Owner, Agent, Model and Mode say how. Kinds: Invalid, NotFound.
func (s *Service) Create(ctx context.Context, c Conversation) (Conversation, error) {
	if c.Mode == "" {
		c.Mode = AskRisky
	}
	if err := errors.Join(s.Check(c), checkTitle(c.Title)); err != nil {
		return c, err
	}
	if err := s.room(ctx, c.Sandbox); err != nil {
		return c, err
	}
	now := s.c.Now()
	c.ID, c.State, c.Since, c.Created, c.Changed = sandbox.NewID(), Idle, now, now, now
	return c, s.c.Store.Create(ctx, c)
}

// Check says whether a conversation could begin with an agent, a model and a mode. Kinds: Invalid, NotFound.
func (s *Service) Check(c Conversation) error {
	if err := c.check(); err != nil {
		return err
	}
	_, err := s.c.Drivers(c.Agent)
	return err
}

// room says whether one more conversation can begin in a sandbox.
func (s *Service) room(ctx context.Context, sandbox string) error {
	all, err := s.c.Store.List(ctx, sandbox)
	if err == nil && len(all) >= MaxConversations {
		err = fault.New(fault.Invalid, "There can be at most %d conversations in a sandbox. Delete one first.", MaxConversations)
	}
	return err
}

func (c *Conversation) check() error {
	switch {
	case c.Mode != AskChanges && c.Mode != AskRisky && c.Mode != Auto:
		return fault.Field("mode", "The mode is %s, %s or %s.", AskChanges, AskRisky, Auto)
	case len(c.Model) > 200:
		return fault.Field("model", "The name of a model has at most 200 bytes.")
	}
	return nil
}

// checkTitle checks one that a person gives.
func checkTitle(title string) error {
	switch {
	case len(title) > maxTitle:
		return fault.Field("title", "A title has at most %d bytes.", maxTitle)
	case text.Unprintable(title):
		return fault.Field("title", "The title has a character that cannot be shown (a line break, a control or a direction mark). Remove it.")
	}
	return nil
}

// List gives the conversations of a sandbox, the last changed first.
func (s *Service) List(ctx context.Context, sandbox string) ([]Conversation, error) {
	return s.c.Store.List(ctx, sandbox)
}

// Conversation gives one of a sandbox. Kind: NotFound, also when it is of another one.
func (s *Service) Conversation(ctx context.Context, sandbox, id string) (Conversation, error) {
	c, err := s.c.Store.Conversation(ctx, id)
	if err == nil && c.Sandbox != sandbox {
		return Conversation{}, NotFound(id)
	}
	return c, err
}

// NotFound says that there is no such conversation.
func NotFound(id string) error {
	return fault.New(fault.NotFound, "There is no conversation %s in this sandbox.", id)
}

// View is a conversation as a reader first sees it: Follow continues from Rev of its Conversation.
type View struct {
	Conversation Conversation
	Items        []Item
	Queue        []Queued
}

// View gives a conversation with its last items, or those that q asks for.
func (s *Service) View(ctx context.Context, id string, q ItemQuery) (v View, err error) {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return v, err
	}
	defer done()
	l.order.Lock()
	defer l.order.Unlock()
	if v.Conversation, err = s.c.Store.Conversation(ctx, id); err != nil {
		return v, err
	}
	if v.Queue, err = s.c.Store.Queue(ctx, id); err != nil {
		return v, err
	}
	v.Items, err = s.c.Store.Items(ctx, id, q)
	l.orphans(v.Items)
	return v, err
}

// Change changes what a person may: title, model, mode, and what is chosen of the settings. A turn under way sees the mode at its next step, and
// the next turn the model. What cannot be stored is not in force. Kinds: Invalid, NotFound.
func (s *Service) Change(ctx context.Context, id string, f func(*Conversation)) (Conversation, error) {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return Conversation{}, err
	}
	defer done()
	var now, before Conversation
	l.change(func(l *live) {
		now, before = l.c, l.c
		f(&now)
		if err = now.check(); err == nil && now.Title != l.c.Title {
			err = checkTitle(now.Title)
		}
		if err == nil {
			c := l.header(s.c.Now())
			c.Title, c.Model, c.Mode, c.Settings = now.Title, now.Model, now.Mode, now.Settings
			now = *c
		}
	})
	if err != nil {
		return now, err
	}
	if err := l.commit(ctx); err != nil {
		l.change(func(l *live) {
			c := l.header(s.c.Now())
			c.Title, c.Model, c.Mode, c.Settings = before.Title, before.Model, before.Mode, before.Settings
		})
		return before, err
	}
	return now, nil
}

// Delete deletes a conversation; a turn under way ends. None is no error.
func (s *Service) Delete(ctx context.Context, id string) error {
	l, done, err := s.use(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer done()
	l.order.Lock()
	err = s.c.Store.Delete(ctx, id)
	if err == nil {
		l.change((*live).vanish)
	}
	l.order.Unlock()
	if err != nil {
		return err
	}
	l.mu.Lock()
	c, working := l.c, l.turn != nil
	l.mu.Unlock()
	if !working { // else when it is over
		s.c.Left(c)
	}
	return nil
}
