package template

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// Of Config.Folder: the versions, to which links of the templates' names lead, and links on their way.
const (
	versionsFolder = ".versions"
	nextLink       = ".next-"
	keptVersions   = 3 // former ones that a build in line may want; a start of sandboxd removes them
)

// disk is the folder with links and versions.
type disk struct{ folder string }

func (d disk) link(name string) string { return filepath.Join(d.folder, name) }

// begin makes an empty folder for a version of a template, to be put or removed.
func (d disk) begin(name string) (folder string, err error) {
	all := filepath.Join(d.folder, versionsFolder)
	if err := os.MkdirAll(all, 0o755); err != nil {
		return "", unwritten(err)
	}
	folder, err = os.MkdirTemp(all, name+"-*")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	return folder, unwritten(err)
}

// put makes a version, which is complete, the one of its template, and removes old ones.
func (d disk) put(name, version string) error {
	if err := flush(version); err != nil {
		return unwritten(err)
	}
	next := filepath.Join(d.folder, nextLink+filepath.Base(version))
	if err := os.Symlink(filepath.Join(versionsFolder, filepath.Base(version)), next); err != nil {
		return unwritten(err)
	}
	if err := os.Rename(next, d.link(name)); err != nil {
		return unwritten(errors.Join(err, os.Remove(next)))
	}
	return d.tidy(name)
}

// flush brings all of a folder's file system to the disk.
func flush(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// remove takes a template away, and then its versions.
func (d disk) remove(name string) error {
	if err := os.Remove(d.link(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritten(err)
	}
	return d.tidy(name)
}

// current gives the version of a template. NotFound when it has none.
func (d disk) current(name string) (version string, err error) {
	to, err := os.Readlink(d.link(name))
	if err != nil {
		return "", fault.Wrap(err, fault.NotFound, "The template %.64s is not one that was made here.", name)
	}
	return filepath.Join(d.folder, versionsFolder, filepath.Base(to)), nil
}

// names gives the templates that there are.
func (d disk) names() (names []string, err error) {
	entries, err := os.ReadDir(d.folder)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// tidy removes versions of a template that nothing can want any more: all when it has none, else all but the last ones.
func (d disk) tidy(name string) error {
	now, err := d.current(name)
	keep := keptVersions
	if err != nil {
		keep = 0
	}
	type former struct {
		path string
		made int64
	}
	entries, err := os.ReadDir(filepath.Join(d.folder, versionsFolder))
	if err != nil {
		return unwritten(err)
	}
	var old []former
	for _, e := range entries {
		at := strings.LastIndexByte(e.Name(), '-')
		path := filepath.Join(d.folder, versionsFolder, e.Name())
		info, err := e.Info()
		if err == nil && at > 0 && e.Name()[:at] == name && path != now {
			old = append(old, former{path, info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(old, func(a, b former) int { return int(min(max(b.made-a.made, -1), 1)) })
	err = nil
	for _, one := range old[min(keep, len(old)):] {
		err = errors.Join(err, os.RemoveAll(one.path))
	}
	return unwritten(err)
}

// sweep removes what a crash has left, and all versions but the current ones. Nothing may build meanwhile.
func (d disk) sweep() error {
	if err := os.MkdirAll(filepath.Join(d.folder, versionsFolder), 0o755); err != nil {
		return unwritten(err)
	}
	names, err := d.names()
	if err != nil {
		return unwritten(err)
	}
	current := map[string]bool{}
	for _, name := range names {
		if version, err := d.current(name); err == nil {
			current[version] = true
		}
	}
	left, err := filepath.Glob(filepath.Join(d.folder, nextLink+"*"))
	versions, err2 := filepath.Glob(filepath.Join(d.folder, versionsFolder, "*"))
	err = errors.Join(err, err2)
	for _, path := range append(left, slices.DeleteFunc(versions, func(path string) bool { return current[path] })...) {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return unwritten(err)
}

func unwritten(err error) error {
	if err == nil {
		return nil
	}
	why := err.Error()
	if at := new(fs.PathError); errors.As(err, &at) {
		why = at.Err.Error()
	}
	return fault.Wrap(err, fault.Unavailable, "The template cannot be written to the data folder: %s.", why)
}

// Folder makes the folder for Config.Folder when it is not there yet.
func Folder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make folder of templates: %w", err)
	}
	return nil
}

// Versions gives the folder of the present version of each template in a Config.Folder, by name: none when that is not there. A version stays
// for some changes more.
func Versions(folder string) (versions map[string]string, err error) {
	d := disk{folder}
	names, err := d.names()
	versions = make(map[string]string, len(names))
	for _, name := range names {
		version, one := d.current(name)
		if errors.Is(one, fs.ErrNotExist) { // it was deleted meanwhile
			continue
		}
		versions[name], err = version, errors.Join(err, one)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return versions, err
}

// Take makes templates of the folders in what is to be a Config.Folder, each of one's files: as a copy of a server has them. No other process
// may use it, and after an error it is of no use. It does nothing when there is no such folder.
func Take(folder string) error {
	d := disk{folder}
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range found {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		err = errors.Join(err, d.take(e.Name()))
	}
	return unwritten(errors.Join(err, os.Chmod(folder, 0o755)))
}

func (d disk) take(name string) error {
	from := d.link(name)
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644) // as they are written here: a build copies them
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		return err
	}
	version, err := d.begin(name)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(version), os.Rename(from, version)); err != nil {
		return err
	}
	return d.put(name, version)
}
