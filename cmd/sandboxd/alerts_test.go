package main

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

func TestCertificateEnd_IsThatOfTheServedOne(t *testing.T) {
	server := httptest.NewTLSServer(nil) // which nobody trusts
	defer server.Close()
	hosts, err := hostname.New(server.URL)
	if err != nil {
		hosts = hostname.Hosts{Scheme: "https", Domain: "127.0.0.1", Port: server.URL[len("https://127.0.0.1:"):]}
	}
	end, err := certificateEnd(t.Context(), hosts)
	if err != nil || !end.Equal(server.Certificate().NotAfter) {
		t.Errorf("it ends %s, %v; want %s", end, err, server.Certificate().NotAfter)
	}
	server.Close()
	if _, err := certificateEnd(t.Context(), hosts); !fault.Is(err, fault.Unavailable) {
		t.Errorf("of a server that is gone: %v", err)
	}
}

// alertWorld is a sandbox.Manager that says what it is told to.
type alertWorld struct {
	bus  *event.Bus[sandbox.Event]
	list func() ([]sandbox.Sandbox, error)
}

func (w alertWorld) List(context.Context, sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	all, err := w.list()
	return all, len(all), err
}
func (alertWorld) Services(sandbox.Sandbox) []catalog.Service      { return nil }
func (w alertWorld) Subscribe() *event.Subscription[sandbox.Event] { return w.bus.Subscribe() }

func TestAlertSources_NoteFailedWakesAndAskNobodyWhoRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alertWorld{event.NewBus[sandbox.Event](8), func() ([]sandbox.Sandbox, error) { return nil, nil }}
		images := catalog.NewImages(nil, nil, catalog.ImageOptions{Log: slog.New(slog.DiscardHandler)})
		a := &alertSources{boxes: w, images: images, builds: map[string]alert.Build{}, listed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		synctest.Wait()
		w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "1"}, Failed: fault.New(fault.Unavailable, "The host is full.")})
		w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "2"}, Failed: fault.New(fault.Gone, "It was deleted.")})
		w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "3"}})
		synctest.Wait()
		if got := a.takeFailures(); len(got) != 1 || got[0] != (alert.Failure{SandboxID: "1", Problem: "The host is full."}) {
			t.Errorf("failures %+v", got)
		}
		if got := a.takeFailures(); len(got) != 0 {
			t.Errorf("again %+v", got)
		}
		// Without a link: one that was asked would be missing or worse.
		told, err := a.services(ctx, []sandbox.Sandbox{{ID: "1", State: sandbox.Running}, {ID: "2", State: sandbox.Frozen}, {ID: "3", State: sandbox.Asleep}})
		if _, there := told["1"]; err != nil || len(told) != 1 || !there {
			t.Errorf("services %v, %v", told, err)
		}
		a.built("go", catalog.ImageStatus{State: catalog.ImageFailed, Problem: "Step 3 failed."})
		if b := a.builds["go"]; !b.Known || b.Problem != "Step 3 failed." {
			t.Errorf("build %+v", b)
		}
		a.built("go", catalog.ImageStatus{State: catalog.ImageBuilt})
		if b := a.builds["go"]; !b.Known || b.Problem != "" {
			t.Errorf("build %+v", b)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAlertSources_FollowTheSandboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listed atomic.Bool
		w := alertWorld{event.NewBus[sandbox.Event](2), func() ([]sandbox.Sandbox, error) {
			if !listed.Load() {
				return nil, errNotListed
			}
			return []sandbox.Sandbox{{ID: "1"}, {ID: "2"}}, nil
		}}
		a := &alertSources{boxes: w, listed: make(chan struct{}), images: catalog.NewImages(nil, nil, catalog.ImageOptions{Log: slog.New(slog.DiscardHandler)})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		synctest.Wait()
		if _, err := a.sandboxes(ctx); !fault.Is(err, fault.Unavailable) {
			t.Errorf("while they cannot be listed: %v", err)
		}
		listed.Store(true)
		time.Sleep(relistEvery)
		want := func(when string, ids ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			all, err := a.sandboxes(ctx)
			for _, b := range all {
				got = append(got, b.ID+string(b.State))
			}
			if slices.Sort(got); err != nil || !slices.Equal(got, ids) {
				t.Errorf("%s: %q, %v", when, got, err)
			}
		}
		want("listed", "1", "2")
		w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "1", State: sandbox.Running}})
		synctest.Wait()
		w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "2"}, Deleted: true})
		synctest.Wait()
		w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "3", Pooled: true}})
		want("changed", "1running")
		a.mu.Lock() // it is held up, and falls behind
		for range 9 {
			w.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "4"}})
		}
		a.mu.Unlock()
		want("listed again", "1", "2")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
