package files

import (
	"context"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// journal is a file in the user's home that names the folders in which resumable uploads were begun, one in a line,
// percent-encoded, so that a later guest finds unfinished ones.
const (
	journal    = ".cache/sandboxd/uploads"
	journalMax = 256 << 10
)

// sweep removes those of our names, in the folder where w is, that are too old and not in use, and reports whether
// uploads are left.
func (w *walk) sweep(names []string) (left bool) {
	for _, name := range names {
		var st unix.Stat_t
		if lstatAt(w.fd(), name, &st) != nil || st.Uid != w.actor.user.UID {
			continue
		}
		limit := writeAge
		if strings.Contains(name, uploadMark) {
			limit = uploadAge
		}
		if key := w.key(name); time.Since(time.Unix(st.Mtim.Unix())) >= limit && w.actor.tree.busy.take(key) {
			w.discard(name)
			w.actor.tree.busy.free(key)
			continue
		}
		left = left || limit == uploadAge
	}
	return left
}

// key reserves a name in the folder where w is.
func (w *walk) key(name string) busyKey {
	l := w.levels[len(w.levels)-1]
	return busyKey{l.dev, l.ino, name}
}

// discard removes something of ours, as far as it can be removed.
func (w *walk) discard(name string) {
	if unlink(w.fd(), name) == unix.EISDIR {
		w.tidy(name)
	}
}

// Sweep removes what an earlier guest left of uploads that were never finished.
func (t *Tree) Sweep(ctx context.Context) {
	home := t.cfg.User().Home
	t.actLong(ctx, func(a *actor) error {
		var left []string
		for _, folder := range a.readJournal(home) {
			if a.sweepIn(folder) {
				left = append(left, folder)
			}
		}
		a.writeJournal(home, left)
		return nil
	})
}

// sweepIn sweeps one folder and reports whether uploads are left there.
func (a *actor) sweepIn(folder string) bool {
	s, err := a.find(folder, true)
	if err != nil {
		return false
	}
	defer s.walk.close()
	if s.name != "" && s.walk.enter(s.name) != nil {
		return false
	}
	return s.walk.sweepHere()
}

// sweepHere sweeps the folder where w is and reports whether uploads are left there.
func (w *walk) sweepHere() bool {
	var ours []string
	w.names(func(name string, _ bool) {
		if isTemporary(name) {
			ours = append(ours, name)
		}
	})
	return w.sweep(ours)
}

// readJournal gives the folders, absolute. Programs in the sandbox may have written anything into it.
func (a *actor) readJournal(home string) []string {
	s, err := a.find(path.Join(home, journal), false)
	if err != nil {
		return nil
	}
	defer s.walk.close()
	var st unix.Stat_t
	fd, err := openFile(s.walk.fd(), s.name, &st)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	b, _ := io.ReadAll(io.LimitReader(reader(fd), journalMax))
	var folders []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		folder, err := url.PathUnescape(strings.TrimSuffix(line, "\n"))
		if err == nil && path.IsAbs(folder) && !seen[folder] {
			seen[folder] = true
			folders = append(folders, folder)
		}
	}
	return folders
}

// writeJournal replaces the journal, where there is one.
func (a *actor) writeJournal(home string, folders []string) {
	s, err := a.find(path.Join(home, journal), false)
	if err != nil {
		return
	}
	defer s.walk.close()
	if len(folders) == 0 {
		unlink(s.walk.fd(), s.name)
		return
	}
	fd, err := openAt(s.walk.fd(), s.name, unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	writer(fd).Write(lines(folders))
}

// note adds a folder to the journal. That it cannot is no reason to refuse an upload.
func (a *actor) note(folder string) {
	w, err := a.walk()
	if err != nil {
		return
	}
	defer w.close()
	name, err := w.to(path.Join(a.user.Home, journal), false, true)
	if err != nil {
		return
	}
	fd, err := openAt(w.fd(), name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && isFile(&st) && st.Size < journalMax/2 {
		writer(fd).Write(lines([]string{folder}))
	}
}

func lines(folders []string) []byte {
	var b []byte
	for _, f := range folders {
		b = append(append(b, url.PathEscape(f)...), '\n')
	}
	return b
}
