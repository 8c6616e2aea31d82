package sandboxtest

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func fakeHomes(t *testing.T) HomesSubject {
	s := fakeSubject(t)
	r := s.Runtime.(*Runtime)
	return HomesSubject{RuntimeSubject: s, Homes: r, Snapshots: r, Left: func(*testing.T) (left []string) {
		for key := range r.engine.boxes {
			if r.HomeOpen(key.id) {
				left = append(left, key.id)
			}
		}
		return left
	}}
}

func TestHomes_FakeKeepsTheContract(t *testing.T) { RunHomes(t, fakeHomes) }

func TestSnapshots_FakeKeepsTheContract(t *testing.T) {
	RunSnapshots(t, func(t *testing.T) SnapshotsSubject {
		h := fakeHomes(t)
		return SnapshotsSubject{HomesSubject: h, Another: h.Other.(*Runtime)}
	})
}

// openedHome makes a sandbox with files in its home, which is open.
func openedHome(t *testing.T, files map[string]string) (*Runtime, sandbox.Home) {
	t.Helper()
	r := NewRuntime()
	if err := r.Create(t.Context(), sandbox.ContainerSpec{ID: "1", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	r.PutHome("1", files)
	h, err := r.OpenHome(t.Context(), "1", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return r, h
}

func TestHomes_AReplaceCanBeCutOffAndSettled(t *testing.T) {
	r, h := openedHome(t, oldFiles())
	r.CutAfter(AfterUnpack)
	if _, err := h.Replace(t.Context(), bytes.NewReader(tarOf(t, "in/", newFiles())), sandbox.Content{Prefix: "in/"}, ignore); !errors.Is(err, ErrCut) {
		t.Fatalf("got %v", err)
	}
	if files, settled := r.HomeFiles("1"); settled || filesDiffer(oldFiles(), files) != "" {
		t.Errorf("settled %t: %s", settled, filesDiffer(oldFiles(), files))
	}
	r.Destroy("1") // a home outlives its container
	if err := r.Create(t.Context(), sandbox.ContainerSpec{ID: "1", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	again, err := r.OpenHome(t.Context(), "1", "")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, settled := r.HomeFiles("1"); !settled || filesDiffer(newFiles(), files) != "" {
		t.Errorf("settled %t: %s", settled, filesDiffer(newFiles(), files))
	}
}

func TestHomes_TroubleIsAsOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := openedHome(t, oldFiles())
		r.Delay(OpReadHome, time.Hour)
		r.Fail(OpReplaceHome, fault.New(fault.Unavailable, "The disk is full."))
		began := time.Now()
		if _, err := h.Read(t.Context(), io.Discard, "", ignore); err != nil || time.Since(began) != time.Hour {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		if _, err := h.Replace(t.Context(), bytes.NewReader(tarOf(t, "", newFiles())), sandbox.Content{Prefix: ""}, ignore); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
		if files, _ := r.HomeFiles("1"); filesDiffer(oldFiles(), files) != "" || r.Calls(OpReplaceHome) != 1 || !r.HomeOpen("1") {
			t.Errorf("%d calls: %s", r.Calls(OpReplaceHome), filesDiffer(oldFiles(), files))
		}
		if err := r.Start(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Settle(t.Context()); !fault.Is(err, fault.Conflict) {
			t.Errorf("while the sandbox runs: got %v", err)
		}
	})
}
