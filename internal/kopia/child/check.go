package child

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/maintenance"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/snapshotgc"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
)

// pieces knows which pieces of backups can be read.
type pieces struct {
	from  repo.DirectRepository
	packs map[blob.ID]int64 // lengths of what they are in
	good  map[content.ID]bool
	read  func(in blob.ID) bool // whether those in it are to be read; else they must be there
	done  func(bytes int64)
}

// piecesOf begins with what is in the place now.
func piecesOf(ctx context.Context, r repo.DirectRepository, read func(blob.ID) bool) (*pieces, error) {
	p := &pieces{from: r, packs: map[blob.ID]int64{}, good: map[content.ID]bool{}, read: read, done: func(int64) {}}
	for _, prefix := range content.PackBlobIDPrefixes {
		if err := r.BlobReader().ListBlobs(ctx, prefix, func(b blob.Metadata) error {
			p.packs[b.BlobID] = b.Length
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// check looks at the pieces of a backup. Reading one decrypts it, and so finds what was changed.
func (p *pieces) check(ctx context.Context, root *snapshot.DirEntry) error {
	ids, err := contents(ctx, p.from, root)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if p.good[id] {
			continue
		}
		in, err := p.from.ContentInfo(ctx, id)
		if err != nil {
			return err
		}
		if length, there := p.packs[in.PackBlobID]; !there || length < int64(in.PackOffset)+int64(in.PackedLength) {
			return fmt.Errorf("piece %s: %s is missing or cut", id, in.PackBlobID)
		}
		if p.read(in.PackBlobID) {
			if _, err := p.from.ContentReader().GetContent(ctx, id); err != nil {
				return fmt.Errorf("piece %s: %w", id, err)
			}
		}
		p.good[id] = true
		p.done(int64(in.PackedLength))
	}
	return nil
}

// readBack reads what is new of a backup, and looks that the rest is there, which was read when it was new. When older backups are known
// to be damaged it reads all.
func (c *child) readBack(ctx context.Context, r repo.DirectRepository, root *snapshot.DirEntry) error {
	if err := r.Refresh(ctx); err != nil {
		return err
	}
	p, err := piecesOf(ctx, r, func(in blob.ID) bool { return c.Contents || c.store.wrote(in) })
	if err == nil {
		err = p.check(ctx, root)
	}
	if err == nil {
		return nil
	}
	err = repository.ItemError{Err: err}
	if c.Contents {
		return fault.Wrap(err, fault.Unavailable, "It would share a damaged part with older backups, so it is not kept. Delete the damaged ones, which a check of the repository with contents names: then that part is written anew.")
	}
	return fault.Wrap(err, fault.Unavailable, "What was written to the repository is not what is read back, so the backup is not kept. Check the repository.")
}

// tryOut writes a small piece to the place, reads it and deletes it.
func (c *child) tryOut(ctx context.Context) (size int64, err error) {
	id := blob.ID("check-" + rand.Text())
	want := []byte(rand.Text())
	if err := c.store.PutBlob(ctx, id, piece(want), blob.PutOptions{}); err != nil {
		return 0, err
	}
	var got bytes.Buffer
	err = c.store.GetBlob(ctx, id, 0, -1, &buffer{&got})
	if err == nil && !bytes.Equal(got.Bytes(), want) {
		err = fault.New(fault.Unavailable, "What was written to the repository is not what is read back. Its disk may be broken.")
	}
	if err := errors.Join(err, c.store.DeleteBlob(ctx, id)); err != nil {
		return 0, err
	}
	err = c.store.ListBlobs(ctx, "", func(b blob.Metadata) error {
		size += b.Length
		return nil
	})
	return size, err
}

// check tries the place out, and looks at all backups.
func (c *child) check(ctx context.Context) (kopia.Answer, error) {
	r, err := c.open(ctx, true)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	out := &repository.Checked{Read: c.Contents, Damaged: []string{}}
	if out.Size, err = c.tryOut(ctx); err != nil {
		return kopia.Answer{}, err
	}
	found, err := snapshots(ctx, r)
	if err != nil {
		return kopia.Answer{}, err
	}
	p, err := piecesOf(ctx, r, func(blob.ID) bool { return c.Contents })
	if err != nil {
		return kopia.Answer{}, err
	}
	c.moved(func(now *repository.Progress) { now.Total = out.Size })
	p.done = func(n int64) { c.moved(func(now *repository.Progress) { now.Done += n }) }
	for _, m := range found {
		if err := p.check(ctx, m.RootEntry); err != nil {
			out.Damaged = append(out.Damaged, m.Tags[idTag])
		}
		out.Backups++
	}
	return kopia.Answer{Checked: out}, nil
}

// maintain gives back the room of what was deleted or cut off. As only this sandboxd uses the repository, and nothing else of it does now,
// nothing has to wait until others have seen it.
func (c *child) maintain(ctx context.Context) (kopia.Answer, error) {
	r, err := c.open(ctx, true)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	return kopia.Answer{}, repo.DirectWriteSession(ctx, r, repo.WriteSessionOptions{Purpose: "maintenance"}, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		return maintenance.RunExclusive(ctx, w, maintenance.ModeFull, false, func(ctx context.Context, p maintenance.RunParameters) error {
			if err := snapshotgc.Run(ctx, w, true, maintenance.SafetyNone, p.MaintenanceStartTime); err != nil {
				return err
			}
			return maintenance.Run(ctx, p, maintenance.SafetyNone)
		})
	})
}
