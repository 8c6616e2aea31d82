package child

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	kopiafs "github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/compression"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/snapshotfs"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
)

// A backup is a snapshot of kopia's, of a folder with two files, so that kopia's own program restores it too.
const (
	streamName   = "home.tar"
	aboutName    = "manifest.json"
	idTag        = "tag:sandboxd-backup"
	addedTag     = "tag:sandboxd-added" // bytes that it has added to the repository
	sourcePath   = "/sandboxes"
	folderStream = "kopia:directory"

	compressor = compression.Name("zstd-fastest")
	bufferSize = 256 << 10
)

// save stores the stream, reads back what is new of it, and only then has it listed.
func (c *child) save(ctx context.Context) (kopia.Answer, error) {
	r, err := c.open(ctx, true)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	if err := c.answer(kopia.Answer{Opened: true}); err != nil {
		return kopia.Answer{}, err
	}
	m := &snapshot.Manifest{Description: c.Title, StartTime: now(), Source: snapshot.SourceInfo{Host: c.Instance, UserName: userName, Path: sourcePath}}
	var end kopia.End
	err = repo.WriteSession(ctx, r, repo.WriteSessionOptions{Purpose: "backup"}, func(ctx context.Context, w repo.RepositoryWriter) error {
		end, err = c.write(ctx, w, m)
		return err
	})
	if err != nil {
		return kopia.Answer{}, err
	}
	if err := c.readBack(ctx, r, m.RootEntry); err != nil {
		return kopia.Answer{}, err
	}
	if err := c.checkOwner(ctx, r); err != nil {
		return kopia.Answer{}, err
	}
	c.mu.Lock()
	added := c.progress.Added
	c.mu.Unlock()
	c.store.remember()
	m.EndTime, m.Tags = now(), map[string]string{idTag: c.ID, addedTag: strconv.FormatInt(added, 10)}
	err = repo.WriteSession(ctx, r, repo.WriteSessionOptions{Purpose: "list"}, func(ctx context.Context, w repo.RepositoryWriter) error {
		_, err := snapshot.SaveSnapshot(ctx, w, m)
		return err
	})
	if err == nil {
		err = c.store.confirm(ctx)
	}
	return kopia.Answer{Item: &repository.Item{ID: c.ID, About: end.About, Added: added, Size: end.Size}}, err
}

func now() kopiafs.UTCTimestamp { return kopiafs.UTCTimestampFromTime(time.Now()) }

// write stores the stream and what is said of it as the root of a snapshot.
func (c *child) write(ctx context.Context, w repo.RepositoryWriter, m *snapshot.Manifest) (end kopia.End, err error) {
	id, size, err := writeStream(ctx, w, &counted{from: c.stream, c: c})
	if err != nil {
		return end, err
	}
	stream := &snapshot.DirEntry{Name: streamName, Type: snapshot.EntryTypeFile, Permissions: 0o600, FileSize: size, ModTime: now(), ObjectID: id}
	var told bool
	if end, told = <-c.end; !told || end.Size != stream.FileSize {
		return end, fault.New(fault.Unavailable, "The stream was cut off.")
	}
	text, err := writePiece(ctx, w, end.About)
	if err != nil {
		return end, err
	}
	about := &snapshot.DirEntry{Name: aboutName, Type: snapshot.EntryTypeFile, Permissions: 0o600, FileSize: int64(len(end.About)), ModTime: now(), ObjectID: text}
	sum := &kopiafs.DirectorySummary{TotalFileCount: 2, TotalFileSize: stream.FileSize + about.FileSize, TotalDirCount: 1, MaxModTime: m.StartTime}
	root, err := snapshotfs.WriteDirManifest(ctx, w, "", &snapshot.DirManifest{StreamType: folderStream, Entries: []*snapshot.DirEntry{stream, about}, Summary: sum}, compressor)
	m.RootEntry = &snapshot.DirEntry{Name: "backup", Type: snapshot.EntryTypeDirectory, Permissions: 0o700, ModTime: m.StartTime, ObjectID: root, DirSummary: sum}
	m.Stats = snapshot.Stats{TotalFileCount: 2, TotalFileSize: sum.TotalFileSize, TotalDirectoryCount: 1}
	return end, err
}

// counted is a stream whose bytes are counted.
type counted struct {
	from io.Reader
	c    *child
	err  error // why it has ended; nil at its end
}

// Read implements io.Reader.
func (r *counted) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.c.moved(func(p *repository.Progress) { p.Done += int64(n) })
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
