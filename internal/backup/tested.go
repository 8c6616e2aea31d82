package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// testDelete bounds the removal of a sandbox that was made for a test, up to where it is sure to be removed.
const testDelete = time.Minute

// testEnv is the environment variable of a sandbox that was made for a test. Its value is the sandbox's name, so that a copy of it is none.
const testEnv = "SANDBOXD_RESTORE_TEST"

// OfTest reports whether a sandbox was made by TestRestore.
func OfTest(box sandbox.Sandbox) bool { return box.Name != "" && box.Spec.Env[testEnv] == box.Name }

// Tester tests that backups can be restored. Safe for concurrent use.
type Tester struct{ s *Service }

// NewTester gives one for the backups of a Service.
func NewTester(s *Service) Tester { return Tester{s} }

// TestRestore restores a backup into a new sandbox of that name, which its owner has until it is deleted again at the end, whatever
// happens. The sandbox runs none of its services, no VS Code and has none of the old one's environment. OfTest knows it. The home is read again and
// compared with the archive: each name, kind, mode, link and content. It blocks until that is done or ctx ends. The error says what is wrong;
// kinds as for Archive and sandbox.Manager's CreateFrom and Capture, and Internal when the home differs. After a crash the sandbox
// may be left.
func (t Tester) TestRestore(ctx context.Context, id, name string) (err error) {
	s := t.s
	a, err := s.Archive(id)
	if err != nil {
		return err
	}
	defer a.Close()
	release, err := s.places.Acquire(ctx, "check", atOnce, -1)
	if err != nil {
		return err
	}
	want, err := a.sum(ctx)
	release()
	if err != nil {
		return err
	}
	ask, from, err := request(sandbox.Request{Name: name, Label: "Restore test of " + a.Manifest.Sandbox.Name, Owner: a.Manifest.Sandbox.Owner, Env: map[string]string{testEnv: name}}, a)
	if err != nil {
		return err
	}
	off := false
	from.Fill, from.Overrides = s.fill(a), sandbox.Overrides{HasServices: true, IDE: &off}
	box, err := roots{s}.createFrom(ctx, ask, from, a)
	if box.ID != "" { // also when it failed: what is left of it is removed, if anything is
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), testDelete)
			defer cancel()
			if _, failed := s.Sandboxes.Delete(ctx, box.Ref()); failed != nil && !fault.Is(failed, fault.Gone) && !fault.Is(failed, fault.NotFound) {
				err = errors.Join(err, fault.Wrap(failed, fault.KindOf(failed), "The sandbox %s of the test is not deleted: %s", name, fault.Message(failed)))
			}
		}()
	}
	if err != nil {
		return err
	}
	return t.compare(ctx, box, want)
}

// sum checks an archive as a whole, and gives the sum of what is in its home.
func (a *Archive) sum(ctx context.Context) (sum treeSum, err error) {
	if a.file != nil {
		got, err := check(ctx, a.file, 0)
		if err == nil && !got.sealed {
			err = fault.New(fault.Invalid, "The backup is cut off: its end is missing.")
		}
		if err != nil {
			return sum, err
		}
	}
	content, closeContent, err := a.content(ctx)
	if err != nil {
		return sum, err
	}
	defer closeContent()
	judge := newJudge(ctx, a.Manifest)
	sum, err = sumTree(ctx, io.TeeReader(content, judge.in), a.prefix)
	found, judged := judge.end(err)
	if err == nil {
		err = judged
	}
	if err == nil && !same(found, a.Stats) {
		err = fault.New(fault.Invalid, "The backup is not complete: it has %d files, and %d were saved.", found.Files, a.Stats.Files)
	}
	return sum, forPeople(err)
}

// compare reads the home of a sandbox again.
func (t Tester) compare(ctx context.Context, box sandbox.Sandbox, want treeSum) error {
	var got treeSum
	err := t.s.Sandboxes.Capture(ctx, box.Ref(), false, func(ctx context.Context, c sandbox.Capture) error {
		r, w := io.Pipe()
		read := make(chan error, 1)
		go func() {
			var err error
			got, err = sumTree(ctx, r, homePrefix)
			r.CloseWithError(err)
			read <- err
		}()
		_, err := c.Home.Read(ctx, w, homePrefix, func(archive.Stats) {})
		if err == nil {
			_, err = w.Write(make([]byte, endSize)) // the end of an archive, which a home's entries are without
		}
		w.CloseWithError(err)
		return errors.Join(err, <-read)
	})
	switch {
	case err != nil:
		return err
	case got != want:
		return fault.New(fault.Internal, "What was restored is not what the backup has: its names, modes or content differ (%d entries, and %d in the backup).", got.entries, want.entries)
	}
	return nil
}

// treeSum is a checksum of a tree that does not depend on the order of its entries.
type treeSum struct {
	entries int64
	sums    [4]uint64
}

// sumTree reads an archive to its end and sums up what has a prefix: names, kinds, modes, links and content.
func sumTree(ctx context.Context, from io.Reader, prefix string) (sum treeSum, err error) {
	r := tar.NewReader(from)
	for ctx.Err() == nil {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, from) // the rest of what a writer still has
			return sum, err
		}
		if err != nil {
			return sum, err
		}
		name, mine := strings.CutPrefix(h.Name, prefix)
		if !mine || strings.Trim(name, "./") == "" { // the home itself: its times and mode are the engine's
			continue
		}
		hash := sha256.New()
		fmt.Fprintf(hash, "%q %c %o %q\n", name, h.Typeflag, h.Mode&0o7777, h.Linkname)
		if _, err := io.Copy(hash, r); err != nil {
			return sum, err
		}
		sum.entries++
		for i, part := range chunk(hash.Sum(nil)) {
			sum.sums[i] += part
		}
	}
	return sum, context.Cause(ctx)
}

func chunk(sum []byte) (parts [4]uint64) {
	for i := range parts {
		parts[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	return parts
}
