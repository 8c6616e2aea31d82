package files

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Mkdir makes a folder, with parents also those on the way; then it is no error that it is there.
func (s *Service) Mkdir(ctx context.Context, h access.Handle, path string, parents bool) error {
	return s.onPath(ctx, h, "mkdir", path, func(ctx context.Context, g access.Guest, path string) error {
		return g.FileMkdir(ctx, path, parents)
	})
}

// Chmod sets permissions. A link has none: Invalid.
func (s *Service) Chmod(ctx context.Context, h access.Handle, path string, mode uint32) error {
	if err := checkMode(mode); err != nil {
		return err
	}
	return s.onPath(ctx, h, "chmod", path, func(ctx context.Context, g access.Guest, path string) error {
		return g.FileChmod(ctx, path, mode)
	})
}

// onPath does something short to one path.
func (s *Service) onPath(ctx context.Context, h access.Handle, doing, path string, do func(ctx context.Context, g access.Guest, path string) error) error {
	clean, err := CheckPath(path)
	if err != nil {
		return err
	}
	return s.call(ctx, h, doing, callLimit, func(ctx context.Context, g access.Guest) error { return do(ctx, g, clean) })
}

// Move moves things as mv does: into the folder to, where that is one, else to that very path. A file that exists already is a
// Conflict, or replaced with overwrite, but never a folder that is not empty.
func (s *Service) Move(ctx context.Context, h access.Handle, from []string, to string, overwrite bool) error {
	return s.onPaths(ctx, h, "move", from, to, func(ctx context.Context, g access.Guest, from []string, to string) error {
		return g.FileMove(ctx, from, to, overwrite)
	})
}

// Copy copies as Move moves: folders with all that is in them, links as links.
func (s *Service) Copy(ctx context.Context, h access.Handle, from []string, to string, overwrite bool) error {
	return s.onPaths(ctx, h, "copy", from, to, func(ctx context.Context, g access.Guest, from []string, to string) error {
		return g.FileCopy(ctx, from, to, overwrite)
	})
}

func (s *Service) onPaths(
	ctx context.Context, h access.Handle, doing string, from []string, to string, do func(ctx context.Context, g access.Guest, from []string, to string) error,
) error {
	sources, err := checkPaths(from)
	if err != nil {
		return renamed(err, "from")
	}
	target, err := CheckPath(to)
	if err != nil {
		return renamed(err, "to")
	}
	return s.call(ctx, h, doing, workLimit, func(ctx context.Context, g access.Guest) error { return do(ctx, g, sources, target) })
}

// renamed tells of an error about a path by the name of the field that it stands in.
func renamed(err error, field string) error { return fault.Field(field, "%s", fault.Message(err)) }

// Delete moves things to the trash of the sandbox's user and tells how to get them back, or deletes them for good. Conflict
// where the trash is on another file system.
func (s *Service) Delete(ctx context.Context, h access.Handle, paths []string, permanent bool) (gone []wire.Trashed, err error) {
	clean, err := checkPaths(paths)
	if err != nil {
		return nil, err
	}
	err = s.call(ctx, h, "delete", workLimit, func(ctx context.Context, g access.Guest) (err error) {
		gone, err = g.FileDelete(ctx, clean, permanent)
		return err
	})
	return gone, err
}

// Trash lists the trash, the newest first, wire.MaxTrash at most.
func (s *Service) Trash(ctx context.Context, h access.Handle) (list []wire.Trashed, err error) {
	err = s.call(ctx, h, "trash", callLimit, func(ctx context.Context, g access.Guest) (err error) {
		list, err = g.FileTrash(ctx)
		return err
	})
	return list, err
}

// Restore puts things from the trash back to where they were, never over something else: Conflict.
func (s *Service) Restore(ctx context.Context, h access.Handle, ids []string) error {
	if len(ids) == 0 {
		return fault.Field("ids", "Give the ids in the trash that you want to restore.")
	}
	if err := checkNames("ids", ids); err != nil {
		return err
	}
	return s.call(ctx, h, "restore", callLimit, func(ctx context.Context, g access.Guest) error { return g.FileRestore(ctx, ids) })
}

// EmptyTrash deletes these things for good, or all that is in the trash when there are no ids.
func (s *Service) EmptyTrash(ctx context.Context, h access.Handle, ids []string) error {
	if err := checkNames("id", ids); err != nil {
		return err
	}
	return s.call(ctx, h, "empty the trash", workLimit, func(ctx context.Context, g access.Guest) error { return g.FileEmptyTrash(ctx, ids) })
}
