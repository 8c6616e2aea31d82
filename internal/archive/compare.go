package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What has become of something.
const (
	Added   = "added"
	Changed = "changed"
	Deleted = "deleted"
)

// What something is.
const (
	KindFile   = "file"
	KindFolder = "folder"
	KindLink   = "link" // a symbolic one
	KindOther  = "other"
)

// Difference is something that two trees do not have alike.
type Difference struct {
	Path   string `json:"path"` // what is no UTF-8 in it is replaced
	Change string `json:"change"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size,omitempty"` // bytes of a file, of the later tree unless it is deleted there
}

// ErrEnough ends a Compare early.
var ErrEnough = errors.New("enough differences")

// Compare tells what differs between two folders, an earlier and a later one, in the order of their names. Files are alike that have
// the same size, time, mode and owner: their content is not read, nor are attributes. Below a folder that is only in one of them, all is
// told. It holds the names of one folder of each level. It blocks until all is told, tell gives an error, or ctx ends. What is removed
// meanwhile counts as missing.
func Compare(ctx context.Context, before, after *os.File, skip string, tell func(Difference) error) error {
	c := &comparer{ctx: ctx, skip: skip, tell: tell}
	a, err := c.open(int(before.Fd()), ".")
	if err != nil {
		return err
	}
	b, err := c.open(int(after.Fd()), ".")
	if err != nil {
		a.Close()
		return err
	}
	return c.folders(a, b, "")
}

type comparer struct {
	ctx  context.Context
	skip string
	tell func(Difference) error
}

// open opens a folder. It gives nil for one that is not there any more.
func (c *comparer) open(dir int, name string) (*os.File, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP { // it is no folder any more
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the folder %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// folders compares two folders, of which one may be nil, and closes them.
func (c *comparer) folders(a, b *os.File, path string) error {
	defer a.Close() // of nil it only gives an error
	defer b.Close()
	was, err := c.names(a, path)
	if err != nil {
		return err
	}
	is, err := c.names(b, path)
	if err != nil {
		return err
	}
	for len(was) > 0 || len(is) > 0 {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		var x, y *os.File
		var name string
		switch order := first(was, is); {
		case order < 0:
			x, name, was = a, was[0], was[1:]
		case order > 0:
			y, name, is = b, is[0], is[1:]
		default:
			x, y, name, was, is = a, b, is[0], was[1:], is[1:]
		}
		if err := c.entries(x, y, name, path+name); err != nil {
			return err
		}
	}
	return nil
}

// first says which of two sorted lists has the name that comes first: negative for the first list, zero for both.
func first(a, b []string) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0], b[0])
}

// names gives those in a folder, sorted, but for the one that is left out.
func (c *comparer) names(f *os.File, path string) ([]string, error) {
	if f == nil {
		return nil, nil
	}
	names, err := f.Readdirnames(-1)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ENOENT) { // a folder that was removed cannot be listed
		return nil, fmt.Errorf("list the folder %q: %w", path, err)
	}
	slices.Sort(names)
	if i, found := slices.BinarySearch(names, c.skip); found && path == "" && c.skip != "" {
		names = slices.Delete(names, i, i+1)
	}
	return names, nil
}

// entries compares what has that name in two folders. One that is nil has nothing of it.
func (c *comparer) entries(a, b *os.File, name, path string) error {
	x, err := lookAt(a, name, path)
	if err != nil {
		return err
	}
	y, err := lookAt(b, name, path)
	if err != nil {
		return err
	}
	switch {
	case x != nil && y != nil && x.Mode&unix.S_IFMT != y.Mode&unix.S_IFMT:
		if err := c.entries(a, nil, name, path); err != nil {
			return err
		}
		return c.entries(nil, b, name, path)
	case x == nil && y == nil:
		return nil
	case x == nil:
		err = c.say(Added, y, path)
	case y == nil:
		err = c.say(Deleted, x, path)
	case !c.alike(a, b, name, x, y):
		err = c.say(Changed, y, path)
	}
	if err != nil || !folder(x) && !folder(y) {
		return err
	}
	var below [2]*os.File
	for i, f := range []*os.File{a, b} {
		if f == nil || i == 0 && !folder(x) || i == 1 && !folder(y) {
			continue
		}
		if below[i], err = c.open(int(f.Fd()), name); err != nil {
			below[0].Close() // of nil it only gives an error
			return err
		}
	}
	return c.folders(below[0], below[1], path+"/")
}

func folder(st *unix.Stat_t) bool { return st != nil && st.Mode&unix.S_IFMT == unix.S_IFDIR }

// lookAt gives nil for what is not there.
func lookAt(dir *os.File, name, path string) (*unix.Stat_t, error) {
	if dir == nil {
		return nil, nil
	}
	var st unix.Stat_t
	err := lstatAt(int(dir.Fd()), name, &st)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %q: %w", path, err)
	}
	return &st, nil
}

// alike says of two of one kind whether they look the same.
func (c *comparer) alike(a, b *os.File, name string, x, y *unix.Stat_t) bool {
	if x.Mode != y.Mode || x.Uid != y.Uid || x.Gid != y.Gid {
		return false
	}
	switch x.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return x.Size == y.Size && x.Mtim == y.Mtim
	case unix.S_IFLNK:
		was, err := readLinkAt(int(a.Fd()), name)
		is, err2 := readLinkAt(int(b.Fd()), name)
		return err == nil && err2 == nil && was == is
	}
	return true
}

func (c *comparer) say(change string, st *unix.Stat_t, path string) error {
	d := Difference{Path: strings.ToValidUTF8(path, "\uFFFD"), Change: change, Kind: KindOther}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		d.Kind, d.Size = KindFile, st.Size
	case unix.S_IFDIR:
		d.Kind = KindFolder
	case unix.S_IFLNK:
		d.Kind = KindLink
	}
	return c.tell(d)
}
