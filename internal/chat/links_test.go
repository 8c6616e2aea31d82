package chat_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/fault"
)

func TestLinks_OpenUntilTheyExpireOrAreRevoked(t *testing.T) {
	now := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	s := chat.NewLinks(&chattest.Links{}, func() time.Time { return now })
	lasting, kept, err := s.Make(t.Context(), "c1", "ada", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, brief, err := s.Make(t.Context(), "c1", "ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{kept, brief} {
		if l, err := s.Open(t.Context(), secret); err != nil || l.Conversation != "c1" || l.By != "ada" {
			t.Errorf("opens %+v, %v", l, err)
		}
	}
	for _, secret := range []string{"", "x", kept + "\n", kept[:42], strings.Repeat("A", 43)} {
		if _, err := s.Open(t.Context(), secret); err != chat.ErrNoLink {
			t.Errorf("%q: %v", secret, err)
		}
	}
	now = now.Add(time.Hour)
	if _, err := s.Open(t.Context(), brief); err != chat.ErrNoLink {
		t.Errorf("an expired one: %v", err)
	}
	if list, err := s.Of(t.Context(), "c1"); err != nil || len(list) != 1 {
		t.Errorf("there are %+v, %v", list, err)
	}
	if err := s.Revoke(t.Context(), "other", lasting.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("revoked from another conversation: %v", err)
	}
	if err := s.Revoke(t.Context(), "c1", lasting.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Open(t.Context(), kept); err != chat.ErrNoLink {
		t.Errorf("a revoked one: %v", err)
	}
}

func TestLinks_AreBounded(t *testing.T) {
	s := chat.NewLinks(&chattest.Links{}, nil)
	for _, ttl := range []time.Duration{time.Second, -time.Hour, 400 * 24 * time.Hour} {
		if _, _, err := s.Make(t.Context(), "c1", "ada", ttl); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", ttl, err)
		}
	}
	var made, refused atomic.Int32
	var making sync.WaitGroup
	for range chat.MaxLinks + 5 {
		making.Go(func() {
			switch _, _, err := s.Make(t.Context(), "c1", "ada", 0); {
			case err == nil:
				made.Add(1)
			case fault.Is(err, fault.Conflict):
				refused.Add(1)
			}
		})
	}
	making.Wait()
	if made.Load() != chat.MaxLinks || refused.Load() != 5 {
		t.Errorf("of %d at once %d are made and %d refused", chat.MaxLinks+5, made.Load(), refused.Load())
	}
	if _, _, err := s.Make(t.Context(), "c2", "ada", 0); err != nil {
		t.Errorf("of another conversation: %v", err)
	}
}
