package chattest

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// Links is a chat.LinkStore in memory. Safe for concurrent use.
type Links struct {
	mu  sync.Mutex
	all []storedLink
}

type storedLink struct {
	chat.Link
	hash [sha256.Size]byte
}

var _ chat.LinkStore = (*Links)(nil)

var errNoLink = fault.New(fault.NotFound, "There is no such link.")

// PutLink implements chat.LinkStore. The conversation "gone" is none.
func (s *Links) PutLink(_ context.Context, l chat.Link, hash [sha256.Size]byte, most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Conversation == "gone" {
		return errNoLink
	}
	have := 0
	for _, o := range s.all {
		if o.Conversation == l.Conversation {
			have++
		}
	}
	if have >= most {
		return chat.ErrManyLinks(most)
	}
	s.all = append(s.all, storedLink{l, hash})
	return nil
}

// Links implements chat.LinkStore.
func (s *Links) Links(_ context.Context, conversation string) (list []chat.Link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if l.Conversation == conversation {
			list = append(list, l.Link)
		}
	}
	return list, nil
}

// LinkBy implements chat.LinkStore.
func (s *Links) LinkBy(_ context.Context, hash [sha256.Size]byte) (chat.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if l.hash == hash {
			return l.Link, nil
		}
	}
	return chat.Link{}, errNoLink
}

// DeleteLink implements chat.LinkStore.
func (s *Links) DeleteLink(_ context.Context, conversation, id string) error {
	if !s.drop(func(l storedLink) bool { return l.Conversation == conversation && l.ID == id }) {
		return errNoLink
	}
	return nil
}

// DropLinks implements chat.LinkStore.
func (s *Links) DropLinks(_ context.Context, before time.Time) error {
	s.drop(func(l storedLink) bool { return !l.Expires.IsZero() && l.Expires.Before(before) })
	return nil
}

func (s *Links) drop(is func(storedLink) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.all)
	s.all = slices.DeleteFunc(s.all, is)
	return len(s.all) < n
}

// LinkContract checks that s, which has no links, keeps chat.LinkStore's contract. conversation and user exist; the conversation "gone"
// does not.
func LinkContract(t *testing.T, s chat.LinkStore, conversation, user string) {
	t.Helper()
	ctx := t.Context()
	at := time.Date(2026, 11, 29, 9, 0, 0, 5000, time.UTC)
	hash := func(name string) [sha256.Size]byte { return sha256.Sum256([]byte(name)) }
	one := chat.Link{ID: "l1", Conversation: conversation, By: user, Created: at}
	two := chat.Link{ID: "l2", Conversation: conversation, By: user, Created: at.Add(time.Second), Expires: at.Add(time.Hour)}
	ok(t, s.PutLink(ctx, one, hash("one"), 2))
	ok(t, s.PutLink(ctx, two, hash("two"), 2))
	if err := s.PutLink(ctx, chat.Link{ID: "l3", Conversation: "gone", By: user, Created: at}, hash("three"), 2); !fault.Is(err, fault.NotFound) {
		t.Errorf("a link to a conversation that is gone: %v", err)
	}
	if err := s.PutLink(ctx, chat.Link{ID: "l4", Conversation: conversation, By: user, Created: at}, hash("four"), 2); !fault.Is(err, fault.Conflict) {
		t.Errorf("one more than the most: %v", err)
	}
	list, err := s.Links(ctx, conversation)
	ok(t, err)
	same(t, list, []chat.Link{one, two})
	got, err := s.LinkBy(ctx, hash("two"))
	ok(t, err)
	same(t, got, two)
	ok(t, s.DropLinks(ctx, at.Add(time.Minute)))
	if _, err := s.LinkBy(ctx, hash("two")); err != nil {
		t.Errorf("one that has not expired is dropped: %v", err)
	}
	ok(t, s.DropLinks(ctx, at.Add(2*time.Hour)))
	if _, err := s.LinkBy(ctx, hash("two")); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that has expired: %v", err)
	}
	if err := s.DeleteLink(ctx, "other", "l1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleted from another conversation: %v", err)
	}
	ok(t, s.DeleteLink(ctx, conversation, "l1"))
	if _, err := s.LinkBy(ctx, hash("one")); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that was deleted: %v", err)
	}
}
