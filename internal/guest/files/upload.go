package files

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// upload tells how much of a resumable upload has arrived.
func (q *ask) upload() error {
	size := int64(0)
	return q.partial(func(s dirEntry, own string) error {
		var st unix.Stat_t
		err := lstatAt(s.walk.fd(), own, &st)
		if err == nil && isFile(&st) {
			size = st.Size
		}
		return absent(err)
	}, &size)
}

// abandon removes the draft of a resumable upload.
func (q *ask) abandon() error {
	return q.partial(func(s dirEntry, own string) error {
		key := s.walk.key(own)
		if !q.tree.busy.take(key) {
			return problem(wire.CodeConflict, "A part of that upload is under way.")
		}
		defer q.tree.busy.free(key)
		return absent(unlink(s.walk.fd(), own))
	}, nil)
}

// partial calls f with the target of an upload and the name of its draft.
func (q *ask) partial(f func(s dirEntry, own string) error, number *int64) error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	id := q.v.Get("upload")
	if wire.CheckUpload(id) != nil {
		return problem(wire.CodeInvalid, "An upload cannot be called that.")
	}
	err = q.tree.act(q.Context(), func(a *actor) error {
		s, err := a.find(p, true)
		if err == unix.ENOENT || err == nil && s.name == "" {
			return nil
		}
		if err != nil {
			return err
		}
		defer s.walk.close()
		return f(s, uploadName(s.name, id))
	})
	if err != nil {
		return about(p, err)
	}
	var end []byte
	if number != nil {
		end = wire.AppendNumbers(nil, *number)
	}
	q.reply.end(end)
	return nil
}

// absent makes it no error that something is not there.
func absent(err error) error {
	if err == unix.ENOENT {
		return nil
	}
	return err
}
