package access

import (
	"strings"
	"testing"
	"testing/synctest"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// A page of a sandbox shows its terminal and looks into it at once: that is no use yet. All else is.
func TestNoting_IsToldOfUsesAndNotOfLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(sandbox.Running)
		var noted []string
		h.control.Noting(func(id string) { noted = append(noted, id) })
		want := func(what string, n int) {
			t.Helper()
			if len(noted) != n || strings.Trim(strings.Join(noted, ""), "first") != "" {
				t.Errorf("%s: noted %v, want %d", what, noted, n)
			}
			noted = nil
		}
		handle := h.handle(t)
		shown, err := handle.OpenStream(t.Context(), terminal)
		if err != nil {
			t.Fatal(err)
		}
		defer shown.Release()
		_, _ = handle.JoinStream(t.Context(), comeback)
		_, _ = handle.Look(t.Context())
		if e, err := handle.Open(t.Context(), idle.Use{Kind: idle.Files, Detail: "list", Looks: true}); err == nil {
			e.Release()
		}
		_ = shown.Touch(t.Context(), true) // output
		shown.Attend(t.Context())
		want("a terminal that shows", 0)
		_ = shown.Touch(t.Context(), false)
		want("a key", 1)
		shown.Note()
		want("a command on a terminal", 1)
		e, err := handle.Open(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		e.Release()
		want("a command", 1)
		if e, ok := handle.OpenNow(idle.Use{Kind: idle.Web}); ok {
			e.Release()
		}
		want("a request", 1)
		tunnel, err := handle.OpenStream(t.Context(), idle.Use{Kind: idle.Stream, Detail: "port 80"})
		if err != nil {
			t.Fatal(err)
		}
		tunnel.Release()
		want("a tunnel", 1)
		h.becomes(sandbox.Stopped)
		h.err = errStopped
		_, _ = handle.Open(t.Context(), command)
		want("a command that is refused", 0)
	})
}

var errStopped = ErrAsleep
