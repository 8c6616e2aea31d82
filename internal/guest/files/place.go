package files

import (
	"context"
	"path"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Place writes a file of the sandbox's user, and the folders on its way, where nothing is in its place yet: no link either. It writes
// nothing where one of unless is there. name is below home, a folder that must be there. The file comes as a whole or not at all.
func (t *Tree) Place(ctx context.Context, home, name, content string, unless []string) error {
	if path.Clean(home) == "/" {
		return errFolder // nobody's home
	}
	full := path.Join(home, name)
	return t.act(ctx, func(a *actor) error {
		if there, err := a.there(home); err != nil || !there {
			return err
		}
		for _, p := range append([]string{full}, unless...) {
			if there, err := a.there(p); err != nil || there {
				return err
			}
		}
		d, err := a.draft(&wire.FilePut{Path: full, IfNone: true, Parents: true, Mode: privateFile, Size: -1})
		if err != nil {
			return err
		}
		defer d.walk.close()
		defer d.close(a)
		if _, err := writer(d.fd).Write([]byte(content)); err != nil {
			return err
		}
		_, err = d.publish(condition{none: true})
		return err
	})
}

const privateFile = 0o600

// there reports whether a path has anything at its end, also a link that leads nowhere.
func (a *actor) there(p string) (bool, error) {
	s, err := a.find(p, false)
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.walk.close()
	if s.name == "" {
		return true, nil
	}
	var st unix.Stat_t
	err = lstatAt(s.walk.fd(), s.name, &st)
	if err == unix.ENOENT {
		return false, nil
	}
	return err == nil, err
}
