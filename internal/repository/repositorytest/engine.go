package repositorytest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"sync"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
)

// Engine is a repository.Engine in memory, and all the places that it reaches. It stores each byte anew. Places whose last names are the
// same are one repository. The zero value is ready.
type Engine struct {
	mu     sync.Mutex
	places map[string]*place
	fail   error
	hold   chan struct{}
	writes int
	calls  []string
	whole  map[string]bool // ids of what was read back as a whole
	broken map[string]bool // ids of what is damaged
}

// place is a repository.
type place struct {
	password string
	items    map[string]repository.Item
	streams  map[string][]byte
}

var _ repository.Engine = (*Engine)(nil)

// Fail makes every call fail with err from now on; nil ends that.
func (e *Engine) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// Hold makes Maintain wait until the returned function is called or its context ends.
func (e *Engine) Hold() (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hold = make(chan struct{})
	return sync.OnceFunc(func() { close(e.hold) })
}

// Alter changes the stream of a backup, as a damage would that shows nowhere else.
func (e *Engine) Alter(id string, change func([]byte) []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.places {
		if stream, ok := p.streams[id]; ok {
			p.streams[id] = change(stream)
		}
	}
}

// Damage has checks with contents find a backup damaged.
func (e *Engine) Damage(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = map[string]bool{id: true}
}

// Whole reports whether all of a backup was read back when it was saved.
func (e *Engine) Whole(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.whole[id]
}

// Calls gives what was called so far, in order.
func (e *Engine) Calls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// at gives the place of a repository.
func (e *Engine) at(call string, a repository.Access) (*place, error) {
	e.calls = append(e.calls, call)
	if e.fail != nil {
		return nil, e.fail
	}
	p := e.places[path.Base(a.Place.String())]
	switch {
	case p == nil && call != "connect":
		return nil, fault.New(fault.Unavailable, "There is no repository at that place any more.")
	case p != nil && p.password != a.Secrets.Password:
		return nil, fault.Field("password", "The password is not that of this repository.")
	}
	return p, nil
}

// Connect implements repository.Engine.
func (e *Engine) Connect(_ context.Context, a repository.Access, o repository.ConnectOptions) (repository.Connected, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.at("connect", a)
	identity := path.Base(a.Place.String())
	if err != nil || p != nil {
		return repository.Connected{Identity: identity}, err
	}
	if o.Known {
		return repository.Connected{}, fault.Field(a.Place.Kind.Field(), "The repository %s is not there.", a.Name)
	}
	if e.places == nil {
		e.places = map[string]*place{}
	}
	e.places[path.Base(a.Place.String())] = &place{password: a.Secrets.Password, items: map[string]repository.Item{}, streams: map[string][]byte{}}
	return repository.Connected{Created: true, Identity: identity}, nil
}

// List implements repository.Engine.
func (e *Engine) List(_ context.Context, a repository.Access) (c repository.Contents, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.at("list", a)
	if err != nil {
		return c, err
	}
	for _, id := range slices.Sorted(maps.Keys(p.items)) {
		c.Items = append(c.Items, p.items[id])
		c.Size += p.items[id].Added
	}
	return c, nil
}

// Save implements repository.Engine. Two at a time are an error.
func (e *Engine) Save(ctx context.Context, a repository.Access, d repository.Draft) (item repository.Item, err error) {
	e.mu.Lock()
	_, err = e.at("save", a)
	e.writes++
	if err == nil && e.writes > 1 {
		err = errors.New("two write to one repository")
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.writes--
	}()
	if err != nil {
		return item, err
	}
	var stream bytes.Buffer
	about, err := d.Write(ctx, &stream)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = d.Progress(repository.Progress{Added: int64(stream.Len()), Done: int64(stream.Len())})
	}
	if err != nil {
		return item, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.at("saved", a)
	if err != nil {
		return item, err
	}
	item = repository.Item{ID: d.ID, About: about, Added: int64(stream.Len()), Size: int64(stream.Len())}
	p.items[d.ID], p.streams[d.ID] = item, stream.Bytes()
	if e.whole == nil {
		e.whole = map[string]bool{}
	}
	e.whole[d.ID] = d.Whole
	return item, nil
}

// Read implements repository.Engine.
func (e *Engine) Read(_ context.Context, a repository.Access, id string) (repository.Stream, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.at("read", a)
	if err != nil {
		return nil, err
	}
	stream, ok := p.streams[id]
	if !ok {
		return nil, fault.New(fault.NotFound, "The backup is not in the repository any more.")
	}
	return io.NopCloser(bytes.NewReader(stream)), nil
}

// Delete implements repository.Engine.
func (e *Engine) Delete(_ context.Context, a repository.Access, ids []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.at("delete", a)
	if err == nil {
		for _, id := range ids {
			delete(p.items, id)
			delete(p.streams, id)
		}
	}
	return err
}

// Check implements repository.Engine.
func (e *Engine) Check(_ context.Context, a repository.Access, contents bool, _ func(repository.Progress)) (c repository.Checked, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.at("check", a)
	if err == nil {
		c = repository.Checked{Backups: len(p.items), Read: contents, Damaged: []string{}}
		for id := range p.items {
			if contents && e.broken[id] {
				c.Damaged = append(c.Damaged, id)
			}
		}
	}
	return c, err
}

// Maintain implements repository.Engine.
func (e *Engine) Maintain(ctx context.Context, a repository.Access) error {
	e.mu.Lock()
	_, err := e.at("maintain", a)
	hold := e.hold
	e.mu.Unlock()
	if err != nil || hold == nil {
		return err
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.calls = append(e.calls, "maintained")
	}()
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Forget implements repository.Engine.
func (e *Engine) Forget(string) error { return nil }
