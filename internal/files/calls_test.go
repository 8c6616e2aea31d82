package files

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// slow is a guest that lists when it is let.
type slow struct {
	*liar
	let chan struct{}
}

func (s slow) FileList(context.Context, string, string, int) (wire.Listing, error) {
	<-s.let
	return wire.Listing{Path: "/"}, nil
}

func TestService_OneSandboxHasNotAnyNumberOfListsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := slow{&liar{}, make(chan struct{})}
		s := newOn(t, g)
		lists := []func(ctx context.Context, h access.Handle, path, after string, limit int) (wire.Listing, error){s.List, s.Glance().List}
		var under sync.WaitGroup
		for i := range maxCalls {
			under.Go(func() {
				if _, err := lists[i%2](t.Context(), s.box, "/", "", 10); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for i, list := range lists {
			if _, err := list(t.Context(), s.box, "/", "", 10); !fault.Is(err, fault.Limited) {
				t.Errorf("%d: one more, for which there is no room in time: %v", i, err)
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.List(gone, s.box, "/", "", 10); !errors.Is(err, context.Canceled) {
			t.Errorf("one who has left: %v", err)
		}
		if _, err := s.Stat(t.Context(), accesstest.New("other", g).Handle(t), "/"); err != nil {
			t.Errorf("another sandbox: %v", err)
		}
		close(g.let)
		under.Wait()
		if _, err := s.List(t.Context(), s.box, "/", "", 10); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestService_WhoFindsNoRoomForAListWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := slow{&liar{}, make(chan struct{})}
		s := newOn(t, g)
		var under sync.WaitGroup
		for range maxCalls + maxWaiting {
			under.Go(func() {
				if _, err := s.List(t.Context(), s.box, "/", "", 10); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if _, err := s.List(t.Context(), s.box, "/", "", 10); !fault.Is(err, fault.Limited) || time.Since(began) != 0 {
			t.Errorf("too many wait: %v after %v", err, time.Since(began))
		}
		for range maxCalls + maxWaiting {
			g.let <- struct{}{}
			synctest.Wait()
		}
		under.Wait()
		if s.calls.Len() != 0 {
			t.Errorf("%d are counted afterwards", s.calls.Len())
		}
	})
}
