package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// boxes are sandboxes whose homes are folders. It implements Sandboxes as a Manager would whose engine never fails.
type boxes struct {
	t    *testing.T
	mu   sync.Mutex
	home map[string]string // by id
	root map[string]string // the text of the file in it that has changed, by id
	hold chan struct{}     // a capture waits for its end, unless nil
	made []sandbox.Sandbox // by CreateFrom

	deleted []string     // names
	alter   func(string) // the folder of a home that was restored, before it is read
}

func (b *boxes) Capture(ctx context.Context, ref sandbox.Ref, live bool, read func(context.Context, sandbox.Capture) error) error {
	if b.hold != nil {
		select {
		case <-b.hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s := box(ref.Name())
	s.ID = ref.ID()
	return read(ctx, sandbox.Capture{Sandbox: s, Home: folder(b.folder(s.ID)), Still: !live, ReadLayer: func(_ context.Context, to io.Writer) (string, archive.Stats, error) { return b.readLayer(s.ID, to) }})
}

func (b *boxes) Restore(ctx context.Context, ref sandbox.Ref, fill func(context.Context, sandbox.Home) error) error {
	next := b.t.TempDir()
	if err := fill(ctx, folder(next)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.home[ref.ID()] = next
	return nil
}

func (b *boxes) RestoreWithRoot(ctx context.Context, ref sandbox.Ref, root sandbox.Rootfs, fill func(context.Context, sandbox.Home) error) error {
	if err := b.takeRoot(ref.ID(), root); err != nil {
		return err
	}
	return b.Restore(ctx, ref, fill)
}

// takeRoot makes a root file system the text of its only file, after the name of the image.
func (b *boxes) takeRoot(id string, root sandbox.Rootfs) error {
	_, err := root.Layer.Content.Seek(0, io.SeekStart)
	if err != nil {
		return err
	}
	layer, err := io.ReadAll(root.Layer.Content)
	if err != nil || int64(len(layer)) != root.Layer.Size {
		return fmt.Errorf("%d bytes of a layer of %d: %w", len(layer), root.Layer.Size, err)
	}
	in := tar.NewReader(bytes.NewReader(layer))
	if _, err := in.Next(); err != nil {
		return err
	}
	text, err := io.ReadAll(in)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.root[id] = root.Base + ": " + string(text)
	return err
}

// readLayer writes a layer with one file.
func (b *boxes) readLayer(id string, to io.Writer) (string, archive.Stats, error) {
	b.mu.Lock()
	text := b.root[id]
	b.mu.Unlock()
	out := tar.NewWriter(to)
	err := out.WriteHeader(&tar.Header{Name: "etc/changed", Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return "base:1", archive.Stats{Lost: []archive.Loss{{Path: "/opt/.wh.x", Reason: "is lost"}}}, errors.Join(err, out.Close())
}

func (b *boxes) CreateFrom(ctx context.Context, r sandbox.Request, from sandbox.Origin) (sandbox.Sandbox, error) {
	s := sandbox.Sandbox{
		ID: sandbox.NewID(), Name: r.Name, Label: r.Label, Owner: r.Owner, Rest: r.Rest, Overrides: from.Overrides,
		Spec: sandbox.Spec{Template: r.Template, Image: r.Image, Env: r.Env, Limits: r.Limits},
	}
	b.made = append(b.made, s)
	if from.Rootfs != nil {
		if err := b.takeRoot(s.ID, *from.Rootfs); err != nil {
			return s, err
		}
	}
	err := b.Restore(ctx, s.Ref(), from.Fill)
	if b.alter != nil {
		b.alter(b.folder(s.ID))
	}
	return s, err
}

func (b *boxes) Delete(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleted = append(b.deleted, ref.Name())
	return sandbox.Sandbox{ID: ref.ID(), Name: ref.Name()}, nil
}

func (b *boxes) folder(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.home[id] == "" {
		b.home[id] = b.t.TempDir()
	}
	return b.home[id]
}

// put writes a file into a home.
func (b *boxes) put(id, name, text string) {
	b.t.Helper()
	path := filepath.Join(b.folder(id), name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// get reads a file of a home; "" when it is not there.
func (b *boxes) get(id, name string) string {
	text, err := os.ReadFile(filepath.Join(b.folder(id), name))
	if err != nil && !os.IsNotExist(err) {
		b.t.Error(err)
	}
	return string(text)
}

// folder is a home that is one.
type folder string

func (f folder) Read(ctx context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error) {
	dir, err := os.Open(string(f))
	if err != nil {
		return archive.Stats{}, err
	}
	defer dir.Close()
	return archive.Write(ctx, dir, tar.NewWriter(w), archive.Options{Prefix: prefix, Progress: progress})
}

func (f folder) Replace(ctx context.Context, r io.Reader, c sandbox.Content, progress func(archive.Stats)) (archive.Stats, error) {
	dir, err := os.Open(string(f))
	if err != nil {
		return archive.Stats{}, err
	}
	defer dir.Close()
	stats, err := archive.Extract(ctx, tar.NewReader(r), dir, archive.Options{Prefix: c.Prefix, Progress: progress})
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return stats, err
}

func (f folder) Settle(context.Context) (bool, error) { return false, nil }
func (f folder) Close() error                         { return nil }

func (folder) CopyOut(context.Context, func(archive.Stats)) (archive.Stats, error) {
	return archive.Stats{}, errors.ErrUnsupported
}

func (folder) CopyIn(context.Context, func(archive.Stats)) (archive.Stats, error) {
	return archive.Stats{}, errors.ErrUnsupported
}

// box is a sandbox of that name.
func box(name string) sandbox.Sandbox {
	return sandbox.Sandbox{
		ID: "00000000000000aa", Name: name, Label: "Lab", Owner: "ann",
		Spec: sandbox.Spec{Template: "base", Env: map[string]string{"A": "b"}, Limits: sandbox.Limits{CPUs: 1, Memory: 1 << 30, Pids: 100, Disk: 5 << 30}},
	}
}

// open gives a Service over boxes, with a folder of its own unless change says otherwise.
func open(t *testing.T, change func(*Config)) (*Service, *boxes) {
	t.Helper()
	b := &boxes{t: t, home: map[string]string{}, root: map[string]string{}}
	c := Config{
		Folder: t.TempDir(), Sandboxes: b, Version: "test", Keep: time.Hour, Disk: func() int64 { return 1 << 30 },
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, b
}

// made is a backup of a sandbox.
func made(t *testing.T, s *Service, box sandbox.Sandbox) Backup {
	t.Helper()
	b, _, err := s.Begin(box, Options{})
	if err == nil {
		b, err = s.Wait(t.Context(), b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%s: %v, want %s", what, err, kind)
	}
}

func (folder) Compare(context.Context, int) ([]archive.Difference, bool, error) {
	return nil, false, errors.ErrUnsupported
}

func (folder) Versions(context.Context, string, int) (before, after []byte, err error) {
	return nil, nil, errors.ErrUnsupported
}
