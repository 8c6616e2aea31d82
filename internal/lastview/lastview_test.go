package lastview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// guest is one that says what a test wants.
type guest struct {
	text    string
	entries []wire.Entry
	err     error
	hangs   bool
}

func (g guest) TerminalText(ctx context.Context, tab string) ([]byte, error) {
	if tab != "main" {
		return nil, errors.New("another tab")
	}
	return []byte(g.text), g.err
}

func (g guest) FileList(ctx context.Context, path, _ string, _ int) (wire.Listing, error) {
	if g.hangs {
		<-ctx.Done()
		return wire.Listing{}, ctx.Err()
	}
	if path != wire.HomePath {
		return wire.Listing{}, errors.New("another folder")
	}
	return wire.Listing{Entries: g.entries}, nil
}

// kept is a store of one view.
type kept struct{ view *View }

func (k *kept) KeepView(_ context.Context, _ string, v View) error {
	k.view = &v
	return nil
}

func (k *kept) LastView(context.Context, string) (View, error) { return *k.view, nil }

func take(t *testing.T, g guest) *View {
	k := &kept{}
	s := &Service{Store: k, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Guest: func(context.Context, string) (Guest, error) { return g, nil }}
	s.Take(t.Context(), sandbox.Sandbox{ID: "a", Name: "lab"})
	return k.view
}

func TestTake_KeepsTheEndOfTheScreenAndTheNames(t *testing.T) {
	v := take(t, guest{text: "first\n\x1b[31mred\x1b[0m\r\n$ \n\n", entries: []wire.Entry{
		{Name: "src", Type: wire.TypeFolder}, {Name: "a\xff", Type: wire.TypeFile}}})
	if fmt.Sprintf("%q", v.Screen) != `["first" "\x1b[31mred\x1b[0m" "$"]` || v.Taken.IsZero() {
		t.Errorf("screen %q at %s", v.Screen, v.Taken)
	}
	if len(v.Files) != 2 || v.Files[0] != (File{"src", true}) || v.Files[1] != (File{"a\ufffd", false}) {
		t.Errorf("files %+v", v.Files)
	}
}

func TestTake_IsBounded(t *testing.T) {
	long := guest{text: strings.Repeat(strings.Repeat("é", 5000)+"\n", 500)}
	for i := range 5000 {
		long.entries = append(long.entries, wire.Entry{Name: fmt.Sprint(i)})
	}
	v := take(t, long)
	if len(v.Screen) != screenRows || len(v.Screen[0]) > rowBytes+3 || len(v.Files) != fileNames {
		t.Errorf("%d lines of %d bytes, %d files", len(v.Screen), len(v.Screen[0]), len(v.Files))
	}
}

func TestTake_WithoutATerminalHasTheNames(t *testing.T) {
	if v := take(t, guest{err: errors.New("no such terminal"), entries: []wire.Entry{{Name: "x"}}}); v == nil || len(v.Files) != 1 || v.Screen != nil {
		t.Errorf("%+v", v)
	}
}

func TestTake_GivesUpOnAGuestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if v := take(t, guest{hangs: true}); v != nil || time.Since(began) != takeTime {
			t.Errorf("%+v after %s", v, time.Since(began))
		}
	})
}
