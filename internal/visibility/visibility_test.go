package visibility

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// world has the visibilities of one sandbox's ports.
type world struct {
	t     *testing.T
	store *sandboxtest.MemStore
	ports *Ports
	ml    sandbox.Sandbox
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: sandboxtest.NewMemStore(), ml: sandboxtest.Sandbox("ml", 0)}
	w.must(w.store.Insert(t.Context(), w.ml))
	w.restart()
	return w
}

// restart is a restart of sandboxd.
func (w *world) restart() {
	w.t.Helper()
	w.ports = New(w.store.Ports(), slog.New(slog.DiscardHandler))
	w.must(w.ports.Load(w.t.Context()))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(port int, v sandbox.Visibility) {
	w.t.Helper()
	w.must(w.ports.Set(w.t.Context(), w.ml, port, v))
}

func (w *world) share(port int, ttl time.Duration) (sandbox.Share, string) {
	w.t.Helper()
	s, secret, err := w.ports.Share(w.t.Context(), w.ml, NewShare{Port: port, By: "u-ann", Label: "for Grace", TTL: ttl})
	w.must(err)
	return s, secret
}

// opens reports whether a link opens a port, and the pass that it gives does too.
func (w *world) opens(id string, port int, secret string) bool {
	w.t.Helper()
	share, pass, ok := w.ports.Redeem(id, port, secret)
	again, still := w.ports.Admits(id, port, pass)
	if ok != still || share.ID != again.ID {
		w.t.Fatalf("the link is %v, its pass %v", ok, still)
	}
	return ok
}

func (w *world) wantKind(what string, err error, kind fault.Kind, field string) {
	w.t.Helper()
	if !fault.Is(err, kind) || fault.FieldOf(err) != field {
		w.t.Errorf("%s: %v (field %q), want %s of %q", what, err, fault.FieldOf(err), kind, field)
	}
}

func TestPorts_ArePrivateUntilSetOtherwise(t *testing.T) {
	w := newWorld(t)
	if w.ports.Public(w.ml.ID, 3000) || w.ports.List(w.ml.ID) != nil {
		t.Error("a port is open to begin with")
	}
	w.set(3000, sandbox.Public)
	if !w.ports.Public(w.ml.ID, 3000) || w.ports.Public(w.ml.ID, 3001) || w.ports.Public("another", 3000) || w.ports.Public("", 0) {
		t.Error("public is not that very port")
	}
	w.set(3000, sandbox.Shared)
	if w.ports.Public(w.ml.ID, 3000) {
		t.Error("a shared port is public")
	}
	w.set(3000, sandbox.Private)
	w.set(3000, sandbox.Private)
	if got := w.ports.List(w.ml.ID); got != nil {
		t.Errorf("%+v is left", got)
	}
}

func TestShare_OpensItsPortAlone(t *testing.T) {
	w := newWorld(t)
	share, secret := w.share(3000, time.Hour)
	_, other := w.share(3001, time.Hour)
	if !w.opens(w.ml.ID, 3000, secret) {
		t.Error("the link does not open its port")
	}
	for _, c := range []struct {
		id     string
		port   int
		secret string
	}{
		{w.ml.ID, 3001, secret}, {w.ml.ID, 3000, other}, {"another", 3000, secret}, {w.ml.ID, 3000, ""}, {w.ml.ID, 3000, secret[:42]},
		{w.ml.ID, 3000, secret + "A"}, {w.ml.ID, 3000, secret[1:] + "A"}, {w.ml.ID, 3000, strings.Repeat("=", 43)},
		{w.ml.ID, 3000, strings.Repeat("\x00", 43)}, {w.ml.ID, 3000, share.ID}, {w.ml.ID, 3000, strings.Repeat("A", 1<<20)},
	} {
		if w.opens(c.id, c.port, c.secret) {
			t.Errorf("%.60q opens port %d of %s", c.secret, c.port, c.id)
		}
	}
	want := []Port{{3000, sandbox.Shared, []sandbox.Share{share}}}
	if diff := cmp.Diff(want, w.ports.List(w.ml.ID)[:1]); diff != "" {
		t.Error(diff)
	}
}

func TestShare_NeitherStoreNorPassTellTheLink(t *testing.T) {
	w := newWorld(t)
	share, secret := w.share(3000, time.Hour)
	raw, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil || len(raw) != 32 {
		t.Fatalf("the secret %q is not 256 bits (%v)", secret, err)
	}
	_, pass, _ := w.ports.Redeem(w.ml.ID, 3000, secret)
	hash := base64.RawURLEncoding.EncodeToString(share.Hash[:])
	for name, v := range map[string]string{"pass": pass, "hash": hash} {
		if _, _, ok := w.ports.Redeem(w.ml.ID, 3000, v); ok || v == secret {
			t.Errorf("the %s serves as a link", name)
		}
	}
	for name, v := range map[string]string{"secret": secret, "hash": hash} {
		if _, ok := w.ports.Admits(w.ml.ID, 3000, v); ok {
			t.Errorf("the %s serves as a pass", name)
		}
	}
	for i := range reflect.TypeFor[sandbox.Share]().NumField() {
		if v, ok := reflect.ValueOf(share).Field(i).Interface().(string); ok && (v == secret || v == pass) {
			t.Errorf("the share keeps %s", reflect.TypeFor[sandbox.Share]().Field(i).Name)
		}
	}
}

func TestShare_EndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, brief := w.share(3000, time.Minute)
		_, long := w.share(3000, time.Hour)
		time.Sleep(time.Minute - time.Nanosecond)
		if !w.opens(w.ml.ID, 3000, brief) {
			t.Error("it has ended too soon")
		}
		time.Sleep(time.Nanosecond)
		if w.opens(w.ml.ID, 3000, brief) || !w.opens(w.ml.ID, 3000, long) {
			t.Error("it has not ended, or taken another along")
		}
		if got := w.ports.List(w.ml.ID); len(got) != 1 || len(got[0].Shares) != 1 {
			t.Errorf("listed are %+v", got)
		}
		w.must(w.ports.Sweep(t.Context()))
		if _, kept, _ := w.store.Ports().Rules(t.Context()); len(kept) != 1 {
			t.Errorf("kept are %d shares", len(kept))
		}
		if !w.opens(w.ml.ID, 3000, long) {
			t.Error("the sweep has ended a live one")
		}
	})
}

func TestRevoke_EndsOneLinkAtOnce(t *testing.T) {
	w := newWorld(t)
	gone, goneSecret := w.share(3000, time.Hour)
	_, secret := w.share(3000, time.Hour)
	w.must(w.ports.Revoke(t.Context(), w.ml, 3000, gone.ID))
	if w.opens(w.ml.ID, 3000, goneSecret) || !w.opens(w.ml.ID, 3000, secret) {
		t.Error("the wrong one has ended")
	}
	w.wantKind("again", w.ports.Revoke(t.Context(), w.ml, 3000, gone.ID), fault.NotFound, "")
	other, _ := w.share(3001, time.Hour)
	w.wantKind("by another port", w.ports.Revoke(t.Context(), w.ml, 3000, other.ID), fault.NotFound, "")
	w.wantKind("of another sandbox", w.ports.Revoke(t.Context(), sandboxtest.Sandbox("other", 1), 3001, other.ID), fault.NotFound, "")
	w.restart()
	if w.opens(w.ml.ID, 3000, goneSecret) || !w.opens(w.ml.ID, 3000, secret) {
		t.Error("a restart has changed that")
	}
}

func TestSet_PrivateEndsSharesForGood(t *testing.T) {
	w := newWorld(t)
	_, secret := w.share(3000, time.Hour)
	w.set(3000, sandbox.Public)
	if !w.opens(w.ml.ID, 3000, secret) || !w.ports.Public(w.ml.ID, 3000) {
		t.Error("making it public has ended its link")
	}
	w.set(3000, sandbox.Shared)
	if !w.opens(w.ml.ID, 3000, secret) {
		t.Error("a port that was public has lost its link")
	}
	w.set(3000, sandbox.Private)
	w.set(3000, sandbox.Shared)
	if w.opens(w.ml.ID, 3000, secret) {
		t.Error("a link outlives private")
	}
	w.restart()
	if w.opens(w.ml.ID, 3000, secret) {
		t.Error("a restart brings a link back")
	}
}

func TestPorts_OutliveARestart(t *testing.T) {
	w := newWorld(t)
	_, secret := w.share(3000, time.Hour)
	w.set(8080, sandbox.Public)
	before := w.ports.List(w.ml.ID)
	w.restart()
	if diff := cmp.Diff(before, w.ports.List(w.ml.ID)); diff != "" || len(before) != 2 {
		t.Error(diff)
	}
	if !w.opens(w.ml.ID, 3000, secret) || !w.ports.Public(w.ml.ID, 8080) {
		t.Error("they are closed")
	}
}

func TestPorts_GoWithTheirSandboxAndNotWithItsName(t *testing.T) {
	w := newWorld(t)
	_, secret := w.share(3000, time.Hour)
	w.set(8080, sandbox.Public)
	w.must(w.store.Delete(t.Context(), w.ml.ID))
	again := sandboxtest.Sandbox("ml", 1)
	w.must(w.store.Insert(t.Context(), again))
	if w.opens(again.ID, 3000, secret) || w.ports.Public(again.ID, 8080) {
		t.Error("a new sandbox of the same name inherits")
	}
	w.must(w.ports.Sweep(t.Context()))
	if got := w.ports.List(w.ml.ID); got != nil {
		t.Errorf("%+v is left", got)
	}
	w.wantKind("rule", w.ports.Set(t.Context(), w.ml, 1, sandbox.Public), fault.NotFound, "")
	_, _, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: 1, TTL: time.Hour})
	w.wantKind("share", err, fault.NotFound, "")
	if got := w.ports.List(w.ml.ID); got != nil {
		t.Errorf("%+v is remembered of what was not kept", got)
	}
}

func TestPorts_RefuseWhatCannotBe(t *testing.T) {
	w := newWorld(t)
	for _, port := range []int{-1, 0, 65536} {
		w.wantKind("set", w.ports.Set(t.Context(), w.ml, port, sandbox.Public), fault.Invalid, "port")
		_, _, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: port, TTL: time.Hour})
		w.wantKind("share", err, fault.Invalid, "port")
	}
	for _, v := range []sandbox.Visibility{"", "open", "Public"} {
		w.wantKind("set", w.ports.Set(t.Context(), w.ml, 1, v), fault.Invalid, "visibility")
	}
	for _, ttl := range []time.Duration{-time.Hour, 0, minTTL - 1, maxTTL + 1} {
		_, _, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: 1, TTL: ttl})
		w.wantKind("ttl", err, fault.Invalid, "ttl")
	}
	for _, label := range []string{strings.Repeat("x", 61), "a\nb", "\xff", "\u202ex"} {
		_, _, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: 1, TTL: time.Hour, Label: label})
		w.wantKind("label", err, fault.Invalid, "label")
	}
	deleting := w.ml
	deleting.State = sandbox.Deleting
	w.wantKind("deleting", w.ports.Set(t.Context(), deleting, 1, sandbox.Public), fault.Conflict, "")
	if got := w.ports.List(w.ml.ID); got != nil {
		t.Errorf("%+v was kept", got)
	}
}

func TestPorts_AreBounded(t *testing.T) {
	w := newWorld(t)
	for port := range maxPorts {
		w.set(port+1, sandbox.Public)
	}
	w.set(1, sandbox.Shared) // no new one
	w.wantKind("one more", w.ports.Set(t.Context(), w.ml, 5000, sandbox.Public), fault.Conflict, "")
	_, _, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: 5000, TTL: time.Hour})
	w.wantKind("share of one more", err, fault.Conflict, "")
	for range maxShares {
		w.share(2, time.Hour)
	}
	_, _, err = w.ports.Share(t.Context(), w.ml, NewShare{Port: 2, TTL: time.Hour})
	w.wantKind("one more link", err, fault.Conflict, "")
}

func TestPorts_StayAsTheyWereWhenTheStoreFails(t *testing.T) {
	w := newWorld(t)
	share, secret := w.share(3000, time.Hour)
	w.set(8080, sandbox.Public)
	before := w.ports.List(w.ml.ID)
	broken := fault.New(fault.Unavailable, "The disk is full.")
	for method, do := range map[string]func() error{
		"PutRule":     func() error { return w.ports.Set(t.Context(), w.ml, 9, sandbox.Public) },
		"DeleteRule":  func() error { return w.ports.Set(t.Context(), w.ml, 8080, sandbox.Private) },
		"DeleteShare": func() error { return w.ports.Revoke(t.Context(), w.ml, 3000, share.ID) },
		"Rules":       func() error { return w.ports.Sweep(t.Context()) },
		"PutShare": func() error {
			_, got, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: 3000, TTL: time.Hour})
			if got != "" {
				t.Error("a link that is not kept is given")
			}
			return err
		},
	} {
		w.store.FailNextOf(method, broken)
		if err := do(); !errors.Is(err, broken) {
			t.Errorf("%s: %v", method, err)
		}
		if diff := cmp.Diff(before, w.ports.List(w.ml.ID)); diff != "" {
			t.Errorf("%s: %s", method, diff)
		}
	}
	if !w.opens(w.ml.ID, 3000, secret) {
		t.Error("the link has ended")
	}
}

func TestPorts_ManyAtOnceEndAsTheStoreHasThem(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				_, _, err := w.ports.Share(t.Context(), w.ml, NewShare{Port: 3000, TTL: time.Hour})
				if err == nil && i%2 == 0 {
					err = w.ports.Set(t.Context(), w.ml, 3000, sandbox.Private)
				}
				if err != nil && !fault.Is(err, fault.Conflict) {
					t.Error(err)
				}
				w.ports.Public(w.ml.ID, 3000)
			}
		})
	}
	all.Wait()
	before := w.ports.List(w.ml.ID)
	w.restart()
	if diff := cmp.Diff(before, w.ports.List(w.ml.ID)); diff != "" {
		t.Errorf("memory and store differ: %s", diff)
	}
}

func TestRun_SweepsUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.share(3000, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.ports.Run(ctx) }()
		time.Sleep(sweepEvery + time.Second)
		if _, kept, _ := w.store.Ports().Rules(t.Context()); len(kept) != 0 {
			t.Error("what has expired is still kept")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func FuzzRedeem_NothingButTheLinkOpensAnything(f *testing.F) {
	store := sandboxtest.NewMemStore()
	ml := sandboxtest.Sandbox("ml", 0)
	if err := store.Insert(f.Context(), ml); err != nil {
		f.Fatal(err)
	}
	ports := New(store.Ports(), slog.New(slog.DiscardHandler))
	_, secret, err := ports.Share(f.Context(), ml, NewShare{Port: 3000, TTL: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	_, pass, _ := ports.Redeem(ml.ID, 3000, secret)
	for _, seed := range []string{"", secret, secret + "=", secret[:42], secret + "A", "\x00", "%41" + secret[1:], secret[:42] + "\n", "\r\n" + secret[:41], secret + "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, ok := ports.Redeem(ml.ID, 3000, text); ok != (text == secret) {
			t.Fatalf("the secret %q opens: %v", text, ok)
		}
		if _, ok := ports.Admits(ml.ID, 3000, text); ok != (text == pass) {
			t.Fatalf("the pass %q opens: %v", text, ok)
		}
	})
}
