package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
)

func TestStorage_WithoutAPoolIsNothing(t *testing.T) {
	s, err := openStorage(t.Context(), &Config{Data: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if s.homes() != nil || s.quota(new(docker.Engine)) != nil || s.figures() != nil || s.alerts() != nil {
		t.Error("there is a pool")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

func TestStorage_AServerWhosePoolIsGoneDoesNotStart(t *testing.T) {
	c := &Config{Data: t.TempDir()}
	pool := filepath.Join(c.Data, "pool")
	if err := os.Mkdir(pool, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := openStorage(t.Context(), c, slog.New(slog.DiscardHandler)); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), pool) {
		t.Errorf("got %v", err)
	}
	if f := lookPool(t.Context(), c); f.Level != bad || !strings.Contains(f.Saw, "missing") {
		t.Errorf("doctor says %+v", f)
	}
	if err := os.WriteFile(pool+".img", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := lookPool(t.Context(), c); f.Level != bad || !strings.Contains(f.Saw, "damaged") {
		t.Errorf("of a damaged one doctor says %+v", f)
	}
}

func TestPoolTurn_IsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Config{Data: t.TempDir()}
		done, err := poolTurn(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := poolTurn(t.Context(), c); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second one: %v", err)
		}
		time.AfterFunc(time.Second, func() {
			if err := done(); err != nil {
				t.Error(err)
			}
		})
		again, err := poolTurn(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := again(); err != nil {
			t.Error(err)
		}
	})
}

func TestPoolInTime_GivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, err := poolDisk(&Config{Data: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		hangs := make(chan struct{})
		err = onPoolInTime(t.Context(), disk, func(context.Context) error { <-hangs; return nil })
		if !fault.Is(err, fault.Timeout) {
			t.Errorf("%v", err)
		}
		close(hangs)
	})
}

func TestPoolSize_IsReadAsPeopleWriteIt(t *testing.T) {
	for given, want := range map[string]int64{"50GiB": 50 << 30, " 512 MiB": 512 << 20, "1g": 1 << 30} {
		if got, err := parsePoolSize(given); err != nil || got != want {
			t.Errorf("%q is %d (%v)", given, got, err)
		}
	}
	for _, given := range []string{"", "lots", "0", "-1GiB"} {
		if got, err := parsePoolSize(given); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q is %d (%v)", given, got, err)
		}
	}
}
