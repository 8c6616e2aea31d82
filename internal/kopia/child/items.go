package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
)

// maxFile bounds what is read of a file other than a stream, in bytes.
const maxFile = 4 << 20

// snapshots gives those that are backups: all, or those with these ids.
func snapshots(ctx context.Context, r repo.Repository, ids ...string) ([]*snapshot.Manifest, error) {
	found, err := snapshot.ListSnapshotManifests(ctx, r, nil, nil)
	if err != nil {
		return nil, err
	}
	all, err := snapshot.LoadSnapshots(ctx, r, found)
	if err != nil {
		return nil, err
	}
	if len(all) != len(found) {
		return nil, fault.New(fault.Unavailable, "The list of the backups cannot be read as a whole.")
	}
	return slices.DeleteFunc(all, func(m *snapshot.Manifest) bool {
		id := m.Tags[idTag]
		return id == "" || m.RootEntry == nil || len(ids) > 0 && !slices.Contains(ids, id)
	}), nil
}

// list tells what is in the repository.
func (c *child) list(ctx context.Context) (kopia.Answer, error) {
	r, err := c.open(ctx, true)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	found, err := snapshots(ctx, r)
	if err != nil {
		return kopia.Answer{}, err
	}
	out := &repository.Contents{Items: make([]repository.Item, 0, len(found))}
	for _, m := range found {
		item, err := itemOf(ctx, r, m)
		if err != nil {
			return kopia.Answer{}, err
		}
		out.Items = append(out.Items, item)
	}
	err = r.BlobReader().ListBlobs(ctx, "", func(b blob.Metadata) error {
		out.Size += b.Length
		return nil
	})
	return kopia.Answer{Contents: out}, err
}

// itemOf reads what is said of a backup.
func itemOf(ctx context.Context, r repo.Repository, m *snapshot.Manifest) (repository.Item, error) {
	item := repository.Item{ID: m.Tags[idTag]}
	item.Added, _ = strconv.ParseInt(m.Tags[addedTag], 10, 64)
	files, err := filesOf(ctx, r, m)
	if err != nil {
		return item, err
	}
	item.Size = files[streamName].FileSize
	item.About, err = readAll(ctx, r, files[aboutName].ObjectID)
	return item, err
}

// filesOf gives the files of a backup by their names.
func filesOf(ctx context.Context, r repo.Repository, m *snapshot.Manifest) (map[string]*snapshot.DirEntry, error) {
	text, err := readAll(ctx, r, m.RootEntry.ObjectID)
	if err != nil {
		return nil, err
	}
	var dir snapshot.DirManifest
	if err := json.Unmarshal(text, &dir); err != nil {
		return nil, fmt.Errorf("read the folder of backup %s: %w", m.Tags[idTag], err)
	}
	files := map[string]*snapshot.DirEntry{}
	for _, e := range dir.Entries {
		files[e.Name] = e
	}
	if files[streamName] == nil || files[aboutName] == nil {
		return nil, fault.New(fault.Unavailable, "The backup %.16s is damaged: a file of it is missing.", m.Tags[idTag])
	}
	return files, nil
}

func readAll(ctx context.Context, r repo.Repository, id object.ID) ([]byte, error) {
	o, err := r.OpenObject(ctx, id)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	var text bytes.Buffer
	_, err = io.Copy(&text, io.LimitReader(o, maxFile))
	return text.Bytes(), err
}

// read writes the stream of a backup to the pipe.
func (c *child) read(ctx context.Context) (kopia.Answer, error) {
	r, err := c.open(ctx, false)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	found, err := snapshots(ctx, r, c.ID)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "The backup is not in the repository any more.")
	}
	if err != nil {
		return kopia.Answer{}, err
	}
	files, err := filesOf(ctx, r, found[0])
	if err != nil {
		return kopia.Answer{}, err
	}
	o, err := r.OpenObject(ctx, files[streamName].ObjectID)
	if err != nil {
		return kopia.Answer{}, damaged(err)
	}
	defer o.Close()
	if err := c.answer(kopia.Answer{Opened: true}); err != nil {
		return kopia.Answer{}, err
	}
	from := &counted{from: o, c: c}
	_, err = io.CopyBuffer(struct{ io.Writer }{c.stream}, from, make([]byte, bufferSize))
	return kopia.Answer{}, errors.Join(damaged(from.err), err, c.stream.Close())
}

// delete takes backups off the list.
func (c *child) delete(ctx context.Context) (kopia.Answer, error) {
	r, err := c.open(ctx, true)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	found, err := snapshots(ctx, r, c.IDs...)
	if err != nil || len(c.IDs) == 0 {
		return kopia.Answer{}, err
	}
	return kopia.Answer{}, repo.WriteSession(ctx, r, repo.WriteSessionOptions{Purpose: "delete"}, func(ctx context.Context, w repo.RepositoryWriter) error {
		for _, m := range found {
			if err := w.DeleteManifest(ctx, m.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// contents gives the pieces that a backup is made of.
func contents(ctx context.Context, r repo.Repository, root *snapshot.DirEntry) ([]content.ID, error) {
	files, err := filesOf(ctx, r, &snapshot.Manifest{RootEntry: root})
	if err != nil {
		return nil, err
	}
	all, err := r.VerifyObject(ctx, root.ObjectID)
	for _, f := range files {
		if err == nil {
			var more []content.ID
			more, err = r.VerifyObject(ctx, f.ObjectID)
			all = append(all, more...)
		}
	}
	return all, err
}
