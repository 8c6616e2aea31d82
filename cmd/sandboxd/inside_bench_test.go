//go:build bench

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
)

// within runs work with the parts of a server that live in this process, and deletes the sandbox that it made.
func (b *benches) within(work func(a *app) sandbox.Ref) {
	t := b.t
	a, stop := b.inside()
	defer stop()
	var g errgroup.Group
	ctx, end := context.WithCancel(t.Context())
	g.Go(func() error { return a.links.Run(ctx) })
	g.Go(func() error { return a.images.Run(ctx) })
	g.Go(func() error { return a.manager.Run(ctx) })
	ref := work(a)
	if _, err := a.manager.Delete(ctx, ref); err != nil {
		t.Error(err)
	}
	if _, err := a.manager.Wait(ctx, ref); err == nil {
		t.Error("the benchmark's sandbox is left over")
	}
	end()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// inside puts the parts of a server together in this process, on a data folder of their own. Nothing lives yet.
func (b *benches) inside() (a *app, stop func()) {
	b.t.Helper()
	dir, err := os.MkdirTemp("", "sbx-bench-")
	if err != nil {
		b.t.Fatal(err)
	}
	placeGuest(b.t)
	var c Config
	c.serveFlags(pflag.NewFlagSet("bench", pflag.ContinueOnError)) // the defaults
	c.Data, c.Listen, c.FreezeAfter, c.StopAfter, c.MemoryReserve = dir, "127.0.0.1:1", "never", "never", "0"
	a, err = openApp(b.t.Context(), &c, logger{slog.New(slog.DiscardHandler), logs.NewRecent()})
	if err != nil {
		b.t.Fatal(err)
	}
	return a, func() {
		if err := errors.Join(a.close(), os.RemoveAll(dir)); err != nil {
			b.t.Error(err)
		}
	}
}

// placeGuest puts the guest beside this test's binary, as the build puts it beside sandboxd.
func placeGuest(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(binary), "guest"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(self), "guest"), text, 0o755); err != nil {
		t.Fatal(err)
	}
}

// made makes the sandbox bench.
func (b *benches) made(a *app) sandbox.Sandbox {
	b.t.Helper()
	made, _, err := a.manager.Create(b.t.Context(), sandbox.Request{Name: "bench", Template: benchImage})
	if err != nil {
		b.t.Fatal(err)
	}
	if made, err = a.manager.Wait(b.t.Context(), made.Ref()); err != nil || made.State != sandbox.Running {
		b.t.Fatalf("%s: %s, %v", made.State, made.Problem, err)
	}
	return made
}
