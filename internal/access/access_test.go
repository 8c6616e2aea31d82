package access

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

var (
	command  = idle.Use{Kind: idle.Exec, Detail: "make"}
	terminal = idle.Use{Kind: idle.Terminal, Detail: "main"}
	comeback = idle.Use{Kind: idle.Terminal, Detail: "main", Unattended: true}
)

// house is a sandbox in some state, with a guest that answers or does not.
type house struct {
	control *Control
	uses    *idle.Tracker
	silent  bool // the guest does not answer

	mu      sync.Mutex
	state   sandbox.State
	id      string
	owner   string
	deleted *sandbox.Tombstone
	err     error       // of Awake
	looked  int         // lookups of the row by name
	asked   int         // to be awake, or for the row
	woken   int         // how often Awake found it at rest
	seen    idle.Status // while it was last asked to be awake
}

func newHouse(state sandbox.State) *house {
	h := &house{uses: idle.New(), state: state, id: "first", owner: "ann"}
	h.control = New(h, h.link, Tracked(h.uses))
	return h
}

func (h *house) row() sandbox.Sandbox {
	return sandbox.Sandbox{ID: h.id, Name: "lab", Owner: h.owner, State: h.state}
}

func (h *house) Awake(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	h.seen = h.uses.Status(ref.ID())
	if h.err != nil {
		return sandbox.Sandbox{}, h.err
	}
	if ref.ID() != h.id {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "lab has been deleted.")
	}
	if h.state.Resting() {
		h.woken++
	}
	h.state = sandbox.Running
	return h.row(), nil
}

func (h *house) Current(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if ref.ID() != h.id {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "lab has been deleted.")
	}
	return h.row(), nil
}

func (h *house) Sandbox(_ context.Context, name string) (sandbox.Sandbox, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked++
	if name != "lab" || h.id == "" {
		return sandbox.Sandbox{}, fault.New(fault.NotFound, "There is none.")
	}
	return h.row(), nil
}

func (h *house) Tombstone(_ context.Context, name string) (sandbox.Tombstone, error) {
	if h.deleted == nil || name != h.deleted.Name {
		return sandbox.Tombstone{}, fault.New(fault.NotFound, "There was none.")
	}
	return *h.deleted, nil
}

// inside is a guest whose link does not end.
type inside struct{ Guest }

func (inside) Done() <-chan struct{} { return nil }

func (h *house) link(ctx context.Context, _ string) (Guest, error) {
	if h.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return inside{}, nil
}

// handle is what the owner gets.
func (h *house) handle(t *testing.T) Handle {
	t.Helper()
	got, err := h.control.Resolve(t.Context(), "lab", By(user("ann")))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func user(id string) auth.Principal {
	return auth.Principal{User: auth.User{ID: id, Role: auth.Member}}
}

func (h *house) becomes(state sandbox.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = state
}

// kinds are the kinds of use that the sandbox is in now.
func (h *house) kinds() string {
	text := ""
	for _, r := range h.uses.Status("first").Because {
		text += string(r.Kind) + " "
	}
	return text
}

func TestOpen_TheUseIsRegisteredBeforeTheWakeAndUntilRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Asleep)
		e, err := h.handle(t).Open(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.seen.Because) != 1 || h.woken != 1 {
			t.Errorf("while waking: %+v; woken %d times", h.seen, h.woken)
		}
		time.Sleep(10 * time.Hour)
		if h.kinds() != "exec " {
			t.Errorf("after hours: in use by %q", h.kinds())
		}
		e.Release()
		e.Release()
		if s := h.uses.Status("first"); len(s.Because) != 0 || !s.Idle.Equal(time.Now()) {
			t.Errorf("after the release: %+v", s)
		}
	})
}

func TestOpen_WhatDoesNotRunIsRefusedAndNotInUse(t *testing.T) {
	h := newHouse(sandbox.Stopped)
	h.err = fault.New(fault.Conflict, "lab is stopped. Start it first.")
	if _, err := h.handle(t).Open(t.Context(), command); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
	if _, err := h.handle(t).OpenStream(t.Context(), terminal); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
	if h.kinds() != "" {
		t.Errorf("in use by %q", h.kinds())
	}
}

func TestOpen_AGuestThatDoesNotAnswerIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Running)
		h.silent = true
		if _, err := h.handle(t).Open(t.Context(), command); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
		if h.kinds() != "" {
			t.Errorf("in use by %q", h.kinds())
		}
	})
}

func TestOpenStream_CountsAroundItsTouchesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Running)
		e, err := h.handle(t).OpenStream(t.Context(), terminal)
		if err != nil || h.kinds() != "terminal " {
			t.Fatalf("in use by %q, %v", h.kinds(), err)
		}
		defer e.Release()
		opened := time.Now()
		time.Sleep(time.Hour / 2)
		if s := h.uses.Status("first"); len(s.Because) != 0 || !s.Idle.Equal(opened) {
			t.Errorf("nothing passes: %+v", s)
		}
		for _, unattended := range []bool{true, false} {
			if err := e.Touch(t.Context(), unattended); err != nil || h.kinds() != "terminal " {
				t.Errorf("in use by %q, %v", h.kinds(), err)
			}
			time.Sleep(idle.Pulse)
		}
	})
}

func TestTouch_WhatGoesInIsRegisteredBeforeItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Running)
		e, err := h.handle(t).OpenStream(t.Context(), terminal)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Release()
		time.Sleep(10 * time.Hour)
		h.becomes(sandbox.Frozen)
		if err := e.Touch(t.Context(), false); err != nil || h.woken != 1 || len(h.seen.Because) != 1 {
			t.Errorf("woken %d times while in use by %+v: %v", h.woken, h.seen, err)
		}
	})
}

func TestTouch_WhatComesOutWakesNothing(t *testing.T) {
	h := newHouse(sandbox.Running)
	e, err := h.handle(t).OpenStream(t.Context(), terminal)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Sleeping, sandbox.Asleep, sandbox.Stopped} {
		h.becomes(state)
		if err := e.Touch(t.Context(), true); err != nil || h.woken != 0 {
			t.Errorf("%s: woken %d times, %v", state, h.woken, err)
		}
	}
}

func TestTouch_AStreamOfAnotherSandboxIsOver(t *testing.T) {
	h := newHouse(sandbox.Running)
	e, err := h.handle(t).OpenStream(t.Context(), terminal)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	h.id = "second" // deleted, and made anew under the same name
	if err := e.Touch(t.Context(), false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	h.id, h.err = "first", fault.New(fault.Unavailable, "The host is full.")
	if err := e.Touch(t.Context(), false); !errors.Is(err, h.err) {
		t.Errorf("got %v", err)
	}
}

func TestAttend_KeepsAwakeWhatRunsAndWakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Running)
		e, err := h.handle(t).OpenStream(t.Context(), terminal)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Release()
		for range 10 * 60 { // hours of watching without a key
			time.Sleep(time.Minute)
			e.Attend(t.Context())
		}
		if !h.uses.Counts("first") || h.kinds() != "terminal " {
			t.Errorf("in use by %q", h.kinds())
		}
		time.Sleep(10 * time.Hour)
		for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Sleeping, sandbox.Asleep, sandbox.Stopped} {
			h.becomes(state)
			if e.Attend(t.Context()); h.woken != 0 || h.kinds() != "" {
				t.Errorf("%s: woken %d times, in use by %q", state, h.woken, h.kinds())
			}
		}
	})
}

func TestJoinStream_WaitsButWakesNothing(t *testing.T) {
	for state, opens := range map[sandbox.State]bool{
		sandbox.Running: true, sandbox.Starting: true, sandbox.Frozen: false, sandbox.Sleeping: false, sandbox.Asleep: false,
	} {
		h := newHouse(state)
		e, err := h.handle(t).JoinStream(t.Context(), comeback)
		if (err == nil) != opens || h.woken != 0 {
			t.Errorf("%s: %v, woken %d times", state, err, h.woken)
		}
		if err == nil {
			e.Release()
		} else if !errors.Is(err, ErrAsleep) || !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestJoinStream_OfAForgottenPageIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Running)
		h.uses.Reset("first")
		time.Sleep(2 * idle.Attention)
		before := h.uses.Status("first")
		e, err := h.handle(t).JoinStream(t.Context(), comeback)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Release()
		if after := h.uses.Status("first"); len(after.Because) != 0 || !after.Idle.Equal(before.Idle) {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

func TestLook_IsNoUseAndWakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for state, asleep := range map[sandbox.State]bool{
			sandbox.Frozen: true, sandbox.Sleeping: true, sandbox.Asleep: true,
			sandbox.Stopped: false, sandbox.Failed: false, sandbox.Starting: false, sandbox.Deleting: false,
		} {
			h := newHouse(state)
			_, err := h.handle(t).Look(t.Context())
			if !fault.Is(err, fault.Conflict) || errors.Is(err, ErrAsleep) != asleep || h.woken != 0 {
				t.Errorf("%s: %v, woken %d times", state, err, h.woken)
			}
		}
		h := newHouse(sandbox.Running)
		e, err := h.handle(t).Look(t.Context())
		if err != nil || e.Guest == nil || e.Touch(t.Context(), false) != nil {
			t.Fatalf("%+v, %v", e, err)
		}
		e.Attend(t.Context())
		e.Release()
		if s := h.uses.Status("first"); len(s.Because) != 0 || h.uses.Counts("first") && !s.Idle.Equal(time.Now()) {
			t.Errorf("it counts: %+v", s)
		}
		h.silent = true
		began := time.Now()
		if _, err := h.handle(t).Look(t.Context()); !fault.Is(err, fault.Unavailable) || time.Since(began) != lookLimit {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// ways are all the ways to open one.
func (h Handle) ways() map[string]func(ctx context.Context) (*Session, error) {
	return map[string]func(ctx context.Context) (*Session, error){
		"open":   func(ctx context.Context) (*Session, error) { return h.Open(ctx, command) },
		"stream": func(ctx context.Context) (*Session, error) { return h.OpenStream(ctx, terminal) },
		"join":   func(ctx context.Context) (*Session, error) { return h.JoinStream(ctx, comeback) },
		"look":   func(ctx context.Context) (*Session, error) { return h.Look(ctx) },
	}
}

func TestHandle_AnotherSandboxOfTheNameIsNeitherOpenedNorWoken(t *testing.T) {
	h := newHouse(sandbox.Running)
	lab := h.handle(t)
	for way, open := range lab.ways() {
		s, err := open(t.Context())
		if err != nil {
			t.Fatalf("%s, of the one that is meant: %v", way, err)
		}
		s.Release()
	}
	h.id = "second" // deleted, and made anew under the same name by another user
	h.becomes(sandbox.Asleep)
	for way, open := range lab.ways() {
		if _, err := open(t.Context()); !fault.Is(err, fault.Gone) {
			t.Errorf("%s: %v", way, err)
		}
	}
	if h.woken != 0 || h.kinds() != "" {
		t.Errorf("woken %d times, in use by %q", h.woken, h.kinds())
	}
}

func TestResolve_LooksOnceAndOpeningOnceMore(t *testing.T) {
	h := newHouse(sandbox.Asleep)
	s, err := h.handle(t).Open(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	if h.looked != 1 || h.asked != 1 {
		t.Errorf("looked up %d times, asked %d times", h.looked, h.asked)
	}
}

func TestResolve_WhatMayNotBeSeenLooksLikeWhatIsNotThere(t *testing.T) {
	h := newHouse(sandbox.Running)
	limited := user("ann")
	limited.Sandbox, limited.SandboxID = "lab", "the one before"
	for what, claim := range map[string]Claim{"another user": By(user("bob")), "a token for the sandbox that had the name": By(limited)} {
		_, err := h.control.Resolve(t.Context(), "lab", claim)
		_, none := h.control.Resolve(t.Context(), "lob", claim)
		if !fault.Is(err, fault.NotFound) || strings.ReplaceAll(fault.Message(none), "lob", "lab") != fault.Message(err) {
			t.Errorf("%s: %v; of one that is not there: %v", what, err, none)
		}
	}
}

func TestResolve_WhoMightHaveUsedItHearsThatItWasDeleted(t *testing.T) {
	h := newHouse(sandbox.Running)
	h.id, h.deleted = "", &sandbox.Tombstone{ID: "first", Name: "lab", Owner: "ann", Deleted: time.Unix(0, 0)}
	its, other := user("ann"), user("ann")
	its.SandboxID, other.SandboxID = "first", "second"
	for what, c := range map[string]struct {
		who  auth.Principal
		kind fault.Kind
	}{
		"its owner": {user("ann"), fault.Gone}, "its token": {its, fault.Gone},
		"another user": {user("bob"), fault.NotFound}, "another one's token": {other, fault.NotFound},
	} {
		if _, err := h.control.Resolve(t.Context(), "lab", By(c.who)); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAcquire_LimitedTokensLeaveTheOwnerRoom(t *testing.T) {
	h := newHouse(sandbox.Running)
	var places semaphore.Keyed
	take := func(token string) (release func(), ok bool) {
		who := user("ann")
		if token != "" {
			who.Token, who.SandboxID = token, "first"
		}
		got, err := h.control.Resolve(t.Context(), "lab", By(who))
		if err != nil {
			t.Fatal(err)
		}
		release, err = got.Acquire(t.Context(), &places, 4, 0)
		return release, err == nil
	}
	var releases []func()
	for i, step := range []struct {
		token string
		ok    bool
	}{{"one", true}, {"two", true}, {"two", false}, {"three", false}, {"", true}, {"", true}, {"", false}, {"one", false}} {
		release, ok := take(step.token)
		if ok != step.ok {
			t.Errorf("step %d by %q: %v", i, step.token, ok)
		}
		if ok {
			releases = append(releases, release)
		}
	}
	for _, release := range releases {
		release()
	}
	if n := places.Len(); n > 0 {
		t.Errorf("%d keys are kept", n)
	}
}
