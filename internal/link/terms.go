package link

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// terms is a setup as it goes over the wire.
type terms struct {
	wire.Setup
	text []byte
}

func newTerms(s wire.Setup) (terms, error) {
	text, err := wire.Encode(wire.MaxSetup, &s)
	if err != nil {
		return terms{}, fault.Wrap(err, fault.Invalid, "The sandbox's setup is not valid: %v.", err)
	}
	return terms{s, text}, nil
}

// replaceSetup makes s what guests are told from now on. The same again is no news.
func (b *box) replaceSetup(s wire.Setup) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Revision = b.setup.Revision
	same, err := newTerms(s)
	if err != nil || bytes.Equal(same.text, b.setup.text) {
		return err
	}
	s.Revision++
	next, err := newTerms(s)
	if err == nil {
		b.setup = next
	}
	return err
}

// push lets a connected guest know the setup that counts now, and reports whether it knows it then. A guest that refuses
// it has heard it: what ran before runs on, and the error says why.
func (b *box) push(ctx context.Context, s *Session) (told bool, err error) {
	b.mu.Lock()
	now := b.setup
	b.mu.Unlock()
	if s.greeting.knows(now.Revision) {
		return true, nil
	}
	var hello wire.Hello
	err = s.call(ctx, http.MethodPost, wire.PathSetup, now.text, &hello)
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Timeout, fault.Internal:
		if err != nil {
			return false, err
		}
	}
	s.greeting.learn(now.Revision)
	return true, err
}

// greeting is what the two ends have said of themselves.
type greeting struct {
	hello wire.Hello   // the guest's
	told  atomic.Int64 // revision of the setup that the guest has heard last
}

// knows reports whether the guest was told the setup of a revision, or a later one.
func (g *greeting) knows(revision int64) bool { return g.told.Load() >= revision }

// learn notes that the guest has heard the setup of a revision.
func (g *greeting) learn(revision int64) {
	for old := g.told.Load(); old < revision && !g.told.CompareAndSwap(old, revision); old = g.told.Load() {
	}
}
