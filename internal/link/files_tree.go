package link

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// FileMkdir makes a folder, with parents also those on the way; then it is no error that it is there.
func (s fileClient) FileMkdir(ctx context.Context, path string, parents bool) error {
	return s.doFiles(ctx, wire.FilesMkdir, url.Values{"path": {path}, "parents": {strconv.FormatBool(parents)}})
}

// FileMove moves as mv does: into the folder to, where that is one (it must be with several sources), else to that very
// path. Something that is there already is a Conflict, and with overwrite is replaced, but never a folder that is not empty.
// From one file system to another it copies, and then deletes.
func (s fileClient) FileMove(ctx context.Context, from []string, to string, overwrite bool) error {
	return s.doForm(ctx, wire.FilesMove, url.Values{"from": from, "to": {to}, "overwrite": {strconv.FormatBool(overwrite)}})
}

// FileCopy copies as FileMove moves: folders with everything in them, links as links, and files of other types not at all.
func (s fileClient) FileCopy(ctx context.Context, from []string, to string, overwrite bool) error {
	return s.doForm(ctx, wire.FilesCopy, url.Values{"from": from, "to": {to}, "overwrite": {strconv.FormatBool(overwrite)}})
}

// FileDelete moves things to the trash of the sandbox's user and tells how they can be restored, or deletes them for good.
// Conflict where the trash is on another file system: only for good, then.
func (s fileClient) FileDelete(ctx context.Context, paths []string, permanent bool) ([]wire.Trashed, error) {
	return s.trashed(ctx, wire.FilesDelete, url.Values{"path": paths, "permanent": {strconv.FormatBool(permanent)}})
}

// FileTrash lists the trash, the newest first, wire.MaxTrash at most.
func (s fileClient) FileTrash(ctx context.Context) ([]wire.Trashed, error) {
	return s.trashed(ctx, wire.FilesTrash, nil)
}

// FileRestore puts things from the trash back to where they were, never over something else: Conflict.
func (s fileClient) FileRestore(ctx context.Context, ids []string) error {
	return s.doForm(ctx, wire.FilesRestore, url.Values{"id": ids})
}

// FileEmptyTrash deletes these things for good, or all that is in the trash when there are no ids.
func (s fileClient) FileEmptyTrash(ctx context.Context, ids []string) error {
	return s.doForm(ctx, wire.FilesEmpty, url.Values{"id": ids})
}

// FilePack gives a plain tar of a folder, or of those names in it, as the guest makes it: it is hostile input, unbounded and
// unchecked. Entries that are neither file, folder nor link are left out, and so are those that the user may not read. The caller closes
// it; it otherwise lives until ctx ends.
func (s fileClient) FilePack(ctx context.Context, base string, names []string) (io.ReadCloser, error) {
	form, err := formOf(url.Values{"path": {base}, "name": names})
	if err != nil {
		return nil, err
	}
	r, err := s.askFiles(ctx, wire.FilesPack, nil, form)
	if err != nil {
		return nil, err
	}
	if _, err := r.end(); err != nil {
		r.Close()
		return nil, err
	}
	return &content{reply: r, left: -1}, nil
}

// FileUnpack makes what a plain tar holds in the folder path, which is made if need be. It reads body, in this goroutine,
// to the archive's end. An entry that would lie outside, or a link that would lead there, is refused by name: Invalid; what
// came before it stays. With keepLinks symbolic links are made as they are, wherever they lead.
func (s fileClient) FileUnpack(ctx context.Context, path string, keepLinks bool, body io.Reader) (wire.Unpacked, error) {
	end, err := s.send(ctx, wire.FilesUnpack, url.Values{"path": {path}, "links": {strconv.FormatBool(keepLinks)}}, body)
	if err != nil {
		return wire.Unpacked{}, err
	}
	var u wire.Unpacked
	err = wire.DecodeNumbers(end, &u.Entries, &u.Bytes)
	return u, s.bad(ctx, err)
}

// FileSearch tells emit what it finds, in no order, until there is no more or search.Limit is reached. It tells whether there
// may be more: because of the limit, because it took too long, or because emit gave an error, which it then returns.
func (s fileClient) FileSearch(ctx context.Context, search wire.Search, emit func(wire.Found) error) (more bool, err error) {
	if err := search.Check(); err != nil {
		return false, fault.Wrap(err, fault.Invalid, "That cannot be searched for: %v.", err)
	}
	form, err := formOf(search.Values())
	if err != nil {
		return false, err
	}
	r, err := s.askFiles(ctx, wire.FilesSearch, nil, form)
	if err != nil {
		return false, err
	}
	defer r.Close()
	end, err := r.each(wire.RecordFound, search.Limit, func(payload []byte) error {
		found, err := wire.DecodeFound(payload)
		if err != nil {
			return err
		}
		return told(emit(found))
	})
	if err != nil {
		return true, err
	}
	var cut int64
	err = wire.DecodeNumbers(end, &cut)
	return cut > 0, s.bad(ctx, err)
}

// FileWatch tells emit of folders among paths, as they are given, in which something has changed, until ctx ends, the
// connection is lost or emit gives an error, which it then returns. It tells of every folder once at the beginning, when the
// watch is on. A folder that cannot be watched is told of once; one that is gone once more.
func (s fileClient) FileWatch(ctx context.Context, paths []string, emit func(folder string) error) error {
	form, err := formOf(url.Values{"path": paths})
	if err != nil {
		return err
	}
	r, err := s.askFiles(ctx, wire.FilesWatch, nil, form)
	if err != nil {
		return err
	}
	defer r.Close()
	r.patience = 0
	known := map[string]bool{}
	for _, p := range paths {
		known[p] = true
	}
	_, err = r.each(wire.RecordFolder, -1, func(payload []byte) error {
		if !known[string(payload)] {
			return wire.ErrRecord
		}
		return told(emit(string(payload)))
	})
	return err
}
