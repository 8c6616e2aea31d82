package snapshot

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Bounds of what is compared.
const (
	MaxDifferences = 10_000
	maxVersion     = 256 << 10 // bytes of a file whose lines are compared
	MaxPath        = 4096      // bytes of its path
)

// Difference is something that has changed in a home: see archive.Difference.
type Difference = archive.Difference

// What has become of something, and what it is.
const (
	Added, Changed, Deleted        = archive.Added, archive.Changed, archive.Deleted
	KindFile, KindFolder, KindLink = archive.KindFile, archive.KindFolder, archive.KindLink
)

// Comparison is what has changed in a home since a snapshot.
type Comparison struct {
	Found []Difference // by path, at most MaxDifferences
	More  bool         // there are others
}

// FileComparison is what has changed in a file.
type FileComparison struct {
	Change string // as in archive.Difference, "" when it is the same
	Binary bool   // it is no text
	Cut    bool   // only the first 256 KiB were compared
	Diff   string // lines in the unified format, "" when it is no text or the same
}

// Compare tells what has changed in the home of a sandbox since a snapshot of it, which may run meanwhile. Files count as changed whose
// size, time, mode or owner has; what is outside of the home is not compared. It blocks until that is done or ctx ends. Kinds as for Restore.
func (s *Service) Compare(ctx context.Context, box sandbox.Sandbox, id string) (c Comparison, err error) {
	err = s.inspect(ctx, box, id, func(ctx context.Context, h sandbox.Home) (err error) {
		c.Found, c.More, err = h.Compare(ctx, MaxDifferences)
		return err
	})
	return c, err
}

// CompareFile tells what has changed in a file, by its path in the home. NotFound when neither has a regular file there; other kinds as
// for Compare.
func (s *Service) CompareFile(ctx context.Context, box sandbox.Sandbox, id, path string) (FileComparison, error) {
	if path == "" || len(path) > MaxPath {
		return FileComparison{}, fault.Field("path", "A path is needed, of at most %d bytes.", MaxPath)
	}
	var before, after []byte
	err := s.inspect(ctx, box, id, func(ctx context.Context, h sandbox.Home) (err error) {
		before, after, err = h.Versions(ctx, path, maxVersion+1)
		return err
	})
	if err != nil {
		return FileComparison{}, err
	}
	if before == nil && after == nil {
		return FileComparison{}, fault.New(fault.NotFound, "Neither the snapshot nor the home has a file %.200q.", path)
	}
	return compareVersions(path, before, after), nil
}

func compareVersions(path string, before, after []byte) (c FileComparison) {
	switch {
	case before == nil:
		c.Change = Added
	case after == nil:
		c.Change = Deleted
	case !bytes.Equal(before, after):
		c.Change = Changed
	}
	c.Cut = max(len(before), len(after)) > maxVersion
	old, fresh := beginning(before), beginning(after)
	if c.Binary = !isText(old) || !isText(fresh); c.Binary {
		return c
	}
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` { // a line of its own must not look like one of the file
		path = quoted
	}
	c.Diff = udiff.Unified("a/"+path, "b/"+path, string(old), string(fresh))
	return c
}

// beginning gives what is compared of a file, without a character that is cut off at its end.
func beginning(b []byte) []byte {
	if len(b) <= maxVersion {
		return b
	}
	b = b[:maxVersion]
	for range utf8.UTFMax {
		if r, size := utf8.DecodeLastRune(b); r != utf8.RuneError || size != 1 {
			break
		}
		b = b[:len(b)-1]
	}
	return b
}

func isText(b []byte) bool { return utf8.Valid(b) && !bytes.ContainsRune(b, 0) }

// inspect looks at a home beside the copy of a snapshot, which stays meanwhile.
func (s *Service) inspect(ctx context.Context, box sandbox.Sandbox, id string, look func(context.Context, sandbox.Home) error) error {
	s.mu.Lock()
	_, err := s.use(id, box.ID)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer s.release(id)
	err = s.Sandboxes.Inspect(ctx, box.Ref(), id, look)
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}
