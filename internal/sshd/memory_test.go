package sshd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func memoryOf() *memory {
	m := newMemory()
	return &m
}

func newShare(m *memory, box string) *share { return &share{of: m, box: box, owner: "of " + box} }

func TestMemory_IsBoundedForAConnectionASandboxAndAll(t *testing.T) {
	m := memoryOf()
	for _, c := range []struct {
		what  string
		share func(i int) *share
		most  int
	}{
		{"a connection", func() func(int) *share { s := newShare(m, "one"); return func(int) *share { return s } }(), connectionMemory},
		{"a sandbox", func(int) *share { return newShare(m, "two") }, boxMemory},
		{"all", func(i int) *share { return newShare(m, "box "+string(rune('a'+i/8))) }, allMemory - connectionMemory - boxMemory},
	} {
		const piece = 1 << 20
		n := 0
		for c.share(n).take(early, piece) {
			n++
		}
		if n != c.most/piece {
			t.Errorf("%s: %d MiB", c.what, n)
		}
	}
	if !newShare(m, "late").take(flowing, 1<<20) || !newShare(m, "late").take(kept, 1<<20) {
		t.Error("what waits keeps out what flows")
	}
}

func TestMemory_WhoWaitsGoesOnWhenSomethingIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memoryOf()
		s := newShare(m, "box")
		if !s.take(flowing, connectionMemory) {
			t.Fatal("there is none")
		}
		done := make(chan error, 1)
		go func() { done <- s.await(t.Context(), 10) }()
		synctest.Wait()
		s.give(flowing, 5)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("too early: %v", err)
		default:
		}
		s.give(flowing, 5)
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.await(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that is gone: %v", err)
		}
		if err := s.await(t.Context(), 10); !errors.Is(err, errMemory) {
			t.Errorf("for ever: %v", err)
		}
		s.give(flowing, connectionMemory)
		if len(m.boxes) != 0 || m.all != [purposes]int{} {
			t.Errorf("left: %v, %v", m.all, m.boxes)
		}
	})
}

func TestMemory_NobodysSandboxesTakeItAll(t *testing.T) {
	m := memoryOf()
	const piece = 1 << 20
	n := 0
	for box := range 20 {
		for s := (&share{of: m, box: string(rune('a' + box)), owner: "mallory"}); s.take(flowing, piece); n++ {
		}
	}
	if n != ownerMemory/piece {
		t.Errorf("one owner's sandboxes hold %d MiB", n)
	}
	if !newShare(m, "another's").take(flowing, connectionMemory) {
		t.Error("there is none for others")
	}
}
