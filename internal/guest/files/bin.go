package files

import (
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// The trash is what freedesktop.org's specification says, so that programs in the sandbox share it: things in one folder,
// and for each a text in another that says where it was.
const (
	trashFolder = ".local/share/Trash"
	trashSuffix = ".trashinfo"
	trashHead   = "[Trash Info]"
	trashTime   = "2006-01-02T15:04:05"
	trashText   = 32 << 10 // bytes of such a text
	trashTries  = 10_000   // for a name that is free
)

// bin is the trash, opened.
type bin struct{ files, info *walk }

// openTrash opens the trash of the user, with make also where there is none yet.
func (a *actor) openTrash(make bool) (*bin, error) {
	files, err := a.openIn(path.Join(a.user.Home, trashFolder, "files"), make)
	if err != nil {
		return nil, err
	}
	info, err := a.openIn(path.Join(a.user.Home, trashFolder, "info"), make)
	if err != nil {
		files.close()
		return nil, err
	}
	return &bin{files, info}, nil
}

// openIn goes into a folder; a walk's last folder that it makes is the user's alone.
func (a *actor) openIn(p string, make bool) (*walk, error) {
	w, err := a.walk()
	if err != nil {
		return nil, err
	}
	name, err := w.to(p, true, make)
	if err == nil && name != "" {
		if err = w.enter(name); err == unix.ENOENT && make {
			if err = again(func() error { return unix.Mkdirat(w.fd(), name, 0o700) }); err == nil || err == unix.EEXIST {
				err = w.enter(name)
			}
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (b *bin) close() {
	b.files.close()
	b.info.close()
}

// home identifies the folder that the trash is in.
func (b *bin) home() (dev, ino uint64) {
	l := b.files.levels[len(b.files.levels)-1]
	if n := len(b.files.levels); n > 1 {
		l = b.files.levels[n-2]
	}
	return l.dev, l.ino
}

// take moves the file at s, known as p, into the trash. Its text is written first: without one it could not be restored.
func (b *bin) take(s dirEntry, p string, st *unix.Stat_t) (wire.Trashed, error) {
	t := wire.Trashed{Path: p, Deleted: time.Now().Truncate(time.Second), Type: typeOf(st.Mode)}
	if t.Type == wire.TypeFile {
		t.Size = st.Size
	}
	text := []byte(trashHead + "\nPath=" + (&url.URL{Path: p}).EscapedPath() + "\nDeletionDate=" +
		t.Deleted.Format(trashTime) + "\n")
	for try := range trashTries {
		t.ID = trashName(s.name, try)
		err := b.describe(t.ID, text)
		if err == unix.EEXIST {
			continue
		}
		if err != nil {
			return t, err
		}
		err = renameExclusively(s.walk.fd(), s.name, b.files.fd(), t.ID)
		if err == nil {
			return t, nil
		}
		unlink(b.info.fd(), t.ID+trashSuffix)
		if err != unix.EEXIST {
			return t, err
		}
	}
	return t, unix.EEXIST
}

// trashName is the name of something in the trash: its own, and a number where that is taken.
func trashName(name string, try int) string {
	suffix := ""
	if try > 0 {
		suffix = "." + strconv.Itoa(try+1)
	}
	return name[:min(len(name), wire.MaxFileName-len(trashSuffix)-len(suffix))] + suffix
}

func (b *bin) describe(id string, text []byte) error {
	fd, err := openAt(b.info.fd(), id+trashSuffix, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = writer(fd).Write(text)
	unix.Close(fd)
	if err != nil {
		unlink(b.info.fd(), id+trashSuffix)
	}
	return err
}

// look tells of one thing in the trash. Programs in the sandbox may have written anything there.
func (b *bin) look(id string) (wire.Trashed, error) {
	t := wire.Trashed{ID: id}
	var st unix.Stat_t
	fd, err := openFile(b.info.fd(), id+trashSuffix, &st)
	if err != nil {
		return t, err
	}
	text, err := io.ReadAll(io.LimitReader(reader(fd), trashText))
	unix.Close(fd)
	if err != nil {
		return t, err
	}
	if t.Path, t.Deleted, err = parseTrashText(string(text)); err != nil {
		return t, err
	}
	if err := lstatAt(b.files.fd(), id, &st); err != nil {
		return t, err
	}
	if t.Type = typeOf(st.Mode); t.Type == wire.TypeFile {
		t.Size = st.Size
	}
	return t, nil
}

// parseTrashText reads where something was, and since when it is not.
func parseTrashText(text string) (where string, deleted time.Time, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(head) != trashHead {
		return "", deleted, errNoFile
	}
	for line := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		switch key {
		case "Path":
			if where, err = url.PathUnescape(value); err != nil {
				return "", deleted, errNoFile
			}
		case "DeletionDate":
			deleted, _ = time.ParseInLocation(trashTime, value, time.Local)
		}
	}
	if !path.IsAbs(where) {
		return "", deleted, errNoFile
	}
	if where, err = wire.CleanPath("/", where); err != nil || where == "/" {
		return "", deleted, errNoFile
	}
	return where, deleted, nil
}
