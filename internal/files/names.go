package files

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Bounds of Names.
const (
	MaxNames    = 100_000          // files that are told of
	namesTime   = 30 * time.Second // for all of them
	namesAtOnce = 4                // folders that are listed at the same time; each list may have some megabytes
	namesRoom   = 8 << 20          // bytes of the paths of all folders that are entered, which a hostile guest may have no end of
)

// unnamed are folders that hold what programs make, in such numbers that a person's own files would be lost among them.
var unnamed = map[string]bool{".git": true, ".cache": true, ".local": true, ".npm": true, ".venv": true, "node_modules": true, "__pycache__": true}

var errEnough = errors.New("enough names")

// Names tells emit of the files below a folder, a folder at a time, nearest first, until there is no more, MaxNames are told or it
// has taken too long; it says whether there may be more. Links to folders are not followed, what cannot be listed is left out, and
// so are .git, node_modules and the like. An error of emit ends it and comes back.
func (s *Service) Names(ctx context.Context, h access.Handle, top string, emit func(folder string, names []string) error) (more bool, err error) {
	if top, err = CheckPath(top); err != nil {
		return false, err
	}
	err = s.call(ctx, h, "list", callLimit, func(ctx context.Context, g access.Guest) error {
		within, cancel := context.WithTimeoutCause(ctx, namesTime, errEnough)
		defer cancel()
		n := &naming{guest: g, emit: emit}
		folders, err := n.folder(within, absolute(g, top))
		for err == nil && len(folders) > 0 {
			folders, err = n.level(within, folders)
		}
		if errors.Is(err, errEnough) || err != nil && context.Cause(within) == errEnough {
			more, err = true, nil
		}
		return err
	})
	return more, err
}

// naming is Names under way.
type naming struct {
	guest access.Guest
	emit  func(folder string, names []string) error

	mu      sync.Mutex
	told    int // files
	folders int // that are to be entered
	room    int // bytes of their paths
}

// level lists folders, and returns those in them.
func (n *naming) level(ctx context.Context, folders []string) (below []string, err error) {
	found := make([][]string, len(folders))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(namesAtOnce)
	for i, f := range folders {
		group.Go(func() (err error) {
			found[i], err = n.folder(ctx, f)
			if left := fault.KindOf(err); left == fault.NotFound || left == fault.Forbidden || left == fault.Invalid || left == fault.Conflict {
				return nil // it is gone, closed, or too deep
			}
			return err
		})
	}
	err = group.Wait()
	for _, f := range found {
		below = append(below, f...)
	}
	return below, err
}

// folder tells of the files in a folder, and returns the folders in it.
func (n *naming) folder(ctx context.Context, folder string) (below []string, err error) {
	for after := ""; ; {
		page, err := list(ctx, n.guest, folder, after, wire.MaxListing)
		if err != nil {
			return below, err
		}
		var names []string
		had := len(below)
		for _, e := range page.Entries {
			switch {
			case e.Type == wire.TypeFolder && !unnamed[e.Name]:
				below = append(below, path.Join(folder, e.Name))
			case e.Type == wire.TypeFile, e.Type == wire.TypeLink && e.TargetType != wire.TypeFolder:
				names = append(names, e.Name)
			}
		}
		if err := n.tell(folder, names); err != nil {
			return below, err
		}
		if err := n.enter(below[had:]); err != nil || page.Next == "" {
			return below, err
		}
		after = page.Next
	}
}

// enter counts folders that are to be entered; errEnough when they are too many.
func (n *naming) enter(folders []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.folders += len(folders)
	for _, f := range folders {
		n.room += len(f)
	}
	if n.folders > MaxNames || n.room > namesRoom {
		return errEnough
	}
	return nil
}

// tell hands names on; errEnough when these are the last.
func (n *naming) tell(folder string, names []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	over := n.told+len(names) > MaxNames
	names = names[:min(len(names), MaxNames-n.told)]
	n.told += len(names)
	if len(names) > 0 {
		if err := n.emit(folder, names); err != nil {
			return err
		}
	}
	if over {
		return errEnough
	}
	return nil
}
