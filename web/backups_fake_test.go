package web

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/auth"
	"sandboxd/internal/backup"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/schedule"
	"sandboxd/internal/seal"
)

// keepBackups runs a Service until the test ends, with repositories in memory.
func keepBackups(t *testing.T, boxes backup.Sandboxes, log *slog.Logger) *backup.Service {
	t.Helper()
	key := filepath.Join(t.TempDir(), "secret.key")
	places, err := repository.Open(t.Context(), repository.Config{Store: &repositorytest.Store{}, Engine: &repositorytest.Engine{}, Log: log,
		Seal: func() (repository.Sealer, error) { return seal.Open(key) }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := backup.Open(backup.Config{Folder: t.TempDir(), Repositories: places, Sandboxes: boxes, Version: "1.2.3", Keep: 7 * 24 * time.Hour,
		Disk: func() int64 { return 1 << 40 }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	running.Go(func() { _ = places.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// keepSchedules runs a Service until the test ends.
func keepSchedules(t *testing.T, store schedule.Store, backups *backup.Service, boxes schedule.Sandboxes, accounts *auth.Service) *schedule.Service {
	t.Helper()
	s := schedule.New(schedule.Config{
		Store: store, Backups: backups, Tester: backup.NewTester(backups), Sandboxes: boxes, Keep: backups.Keep, Log: slog.New(slog.DiscardHandler),
		Admin: func(ctx context.Context, id string) (bool, error) {
			u, err := accounts.User(ctx, id)
			return u.Role == auth.Admin, err
		},
		Template:   func(name string) bool { return name == "base" },
		Repository: func(name string) bool { return slices.Contains(placesOf(backups).Names(), name) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// placesOf gives the repositories of a Service of keepBackups'.
func placesOf(s *backup.Service) *repository.Service {
	return s.Repositories.(*repository.Service)
}

// gate holds up what passes it, while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
}

// hold shuts the gate until the returned function is called.
func (g *gate) hold() (release func()) {
	shut := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	return func() { close(shut) }
}

func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// packTexts writes texts by path as the part of an archive.
func packTexts(w io.Writer, prefix string, files map[string]string) (s archive.Stats, err error) {
	out := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := tar.Header{Name: prefix + name, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}
		if err := out.WriteHeader(&head); err != nil {
			return s, err
		}
		if _, err := io.WriteString(out, files[name]); err != nil {
			return s, err
		}
		s.Files, s.Bytes = s.Files+1, s.Bytes+head.Size
	}
	return s, out.Flush()
}

// unpackTexts reads to its end what packTexts has written.
func unpackTexts(r io.Reader, prefix string) (map[string]string, error) {
	files := map[string]string{}
	for in := tar.NewReader(r); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		if name, mine := strings.CutPrefix(head.Name, prefix); mine && head.Typeflag == tar.TypeReg {
			files[name] = string(text)
		}
	}
}

// fakeHomes are the homes of all sandboxes: each has one file with the same text, which a restore replaces.
type fakeHomes struct {
	gate // of reading and replacing
	mu   sync.Mutex
	text string

	copies map[string]string // of snapshots, by id
}

func (h *fakeHomes) OpenHome(_ context.Context, _, snapshot string) (sandbox.Home, error) {
	return fakeHome{h, snapshot}, nil
}

type fakeHome struct {
	*fakeHomes
	snapshot string
}

func (h fakeHome) Read(ctx context.Context, w io.Writer, prefix string, _ func(archive.Stats)) (archive.Stats, error) {
	if err := h.pass(ctx); err != nil {
		return archive.Stats{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := packTexts(w, prefix, map[string]string{"a.txt": h.text})
	s.Lost = []archive.Loss{{Path: "s", Reason: "is a socket"}}
	return s, err
}

func (h fakeHome) Replace(ctx context.Context, r io.Reader, c sandbox.Content, _ func(archive.Stats)) (archive.Stats, error) {
	if err := h.pass(ctx); err != nil {
		return archive.Stats{}, err
	}
	files, err := unpackTexts(r, c.Prefix)
	text, there := files["a.txt"]
	if err == nil && !there {
		err = errors.New("the file is not in the archive")
	}
	if err != nil {
		return archive.Stats{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = text
	return archive.Stats{Files: 1, Bytes: int64(len(text))}, nil
}

func (h fakeHome) CopyOut(ctx context.Context, _ func(archive.Stats)) (archive.Stats, error) {
	if err := h.pass(ctx); err != nil {
		return archive.Stats{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.copies == nil {
		h.copies = map[string]string{}
	}
	h.copies[h.snapshot] = h.text
	return archive.Stats{Files: 1, Bytes: int64(len(h.text))}, nil
}

func (h fakeHome) CopyIn(ctx context.Context, _ func(archive.Stats)) (archive.Stats, error) {
	if err := h.pass(ctx); err != nil {
		return archive.Stats{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = h.copies[h.snapshot]
	return archive.Stats{Files: 1, Bytes: int64(len(h.text))}, nil
}

func (h fakeHome) versions() (before, after map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return map[string]string{"a.txt": h.copies[h.snapshot]}, map[string]string{"a.txt": h.text}
}

func (h fakeHome) Compare(_ context.Context, most int) (found []archive.Difference, more bool, err error) {
	before, after := h.versions()
	found, more = sandboxtest.CompareFiles(before, after, most)
	return found, more, nil
}

func (h fakeHome) Versions(_ context.Context, path string, most int) ([]byte, []byte, error) {
	before, after := h.versions()
	return sandboxtest.Beginning(before, path, most), sandboxtest.Beginning(after, path, most), nil
}

func (h fakeHome) Settle(context.Context) (bool, error) { return false, nil }

func (h fakeHome) Close() error { return nil }
