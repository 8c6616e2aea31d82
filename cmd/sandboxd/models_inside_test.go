package main

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// modelGuest is a guest in which a server listens at port 11434 after some refusals.
type modelGuest struct {
	access.Guest
	refusals atomic.Int64
	services []wire.ServiceStatus
}

func (g *modelGuest) DialPort(_ context.Context, port int) (net.Conn, error) {
	if port != 11434 || g.refusals.Add(-1) >= 0 {
		return nil, fault.Wrap(link.ErrNothingListens, fault.NotFound, "Nothing is listening on port %d.", port)
	}
	conn, other := net.Pipe()
	other.Close()
	return conn, nil
}

func (g *modelGuest) Services(context.Context) ([]wire.ServiceStatus, error) { return g.services, nil }

// ownersOf finds the owner of the sandbox as it is.
type ownersOf struct{ *accesstest.Sandbox }

func (o ownersOf) OwnerOf(_ context.Context, id string) (name, owner string, err error) {
	row := o.Row()
	if row.ID != id {
		return "", "", fault.New(fault.NotFound, "This sandbox has been deleted.")
	}
	return row.Name, row.Owner, nil
}

func newInside(g *modelGuest) (*insideModels, *accesstest.Sandbox) {
	lab := accesstest.New("lab", g)
	return &insideModels{sandboxes: ownersOf{lab}, control: lab.Control()}, lab
}

func inLab(owner string) gateway.Provider {
	return gateway.Provider{Owner: owner, Name: "local", Kind: gateway.Ollama, Inside: gateway.Inside{Sandbox: "id-lab", Name: "lab", Port: 11434}}
}

func TestInsideModels_WakeTheSandboxAndUseItUntilTheEndOfACall(t *testing.T) {
	m, lab := newInside(&modelGuest{})
	for _, owner := range []string{"ann", ""} {
		lab.Becomes(sandbox.Frozen)
		conn, err := m.Dial(t.Context(), inLab(owner))
		if err != nil {
			t.Fatal(err)
		}
		if because := lab.Status().Because; len(because) != 1 || because[0].Detail != "a model on port 11434" {
			t.Errorf("in use by %+v", because)
		}
		conn.Close()
		conn.Close()
		if because := lab.Status().Because; len(because) != 0 || m.calls.Len() != 0 {
			t.Errorf("after the call in use by %+v, %d calls", because, m.calls.Len())
		}
	}
	if _, woken := lab.Awakes(); woken != 2 {
		t.Errorf("it was woken %d times", woken)
	}
}

func TestInsideModels_SayWhyASandboxIsNotReached(t *testing.T) {
	for name, v := range map[string]struct {
		change func(*accesstest.Sandbox, *gateway.Provider)
		want   fault.Kind
	}{
		"another user's": {func(_ *accesstest.Sandbox, p *gateway.Provider) { p.Owner = "bob" }, fault.Gone},
		"deleted":        {func(s *accesstest.Sandbox, _ *gateway.Provider) { s.Change(func(r *sandbox.Sandbox) { r.ID = "" }) }, fault.Gone},
		"another of its name": {func(s *accesstest.Sandbox, _ *gateway.Provider) {
			s.Change(func(r *sandbox.Sandbox) { r.ID = "id-new" })
		}, fault.Gone},
		"stopped":              {func(s *accesstest.Sandbox, _ *gateway.Provider) { s.Becomes(sandbox.Stopped) }, fault.Conflict},
		"nothing listens":      {func(_ *accesstest.Sandbox, p *gateway.Provider) { p.Inside.Port = 8080 }, fault.NotFound},
		"a guest that is gone": {func(s *accesstest.Sandbox, _ *gateway.Provider) { s.SetGuest(nil) }, fault.Unavailable},
	} {
		m, lab := newInside(&modelGuest{})
		p := inLab("ann")
		v.change(lab, &p)
		conn, err := m.Dial(t.Context(), p)
		if conn != nil || !fault.Is(err, v.want) {
			t.Errorf("%s: %v, %v of kind %s", name, conn, err, fault.KindOf(err))
		}
		if because := lab.Status().Because; len(because) != 0 || m.calls.Len() != 0 {
			t.Errorf("%s: in use by %+v, %d calls", name, because, m.calls.Len())
		}
	}
}

func TestInsideModels_WaitForAServiceThatComesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := wire.ServiceStatus{Name: "ollama", State: wire.ServiceRunning}
		service.Port = 11434
		g := &modelGuest{services: []wire.ServiceStatus{service}}
		m, _ := newInside(g)
		g.refusals.Store(5)
		begun := time.Now()
		conn, err := m.Dial(t.Context(), inLab("ann"))
		if err != nil || time.Since(begun) != 5*listenPause {
			t.Fatalf("%v after %s", err, time.Since(begun))
		}
		conn.Close()
		g.refusals.Store(1 << 20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Dial(ctx, inLab("ann")); !fault.Is(err, fault.Timeout) {
			t.Errorf("one that never listens: %v", err)
		}
	})
}

func TestInsideModels_ManyCallsAtOnceAreRefused(t *testing.T) {
	m, _ := newInside(&modelGuest{})
	for range maxInside {
		conn, err := m.Dial(t.Context(), inLab("ann"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := m.Dial(t.Context(), inLab("ann")); !fault.Is(err, fault.Limited) {
		t.Errorf("one more: %v", err)
	}
}
