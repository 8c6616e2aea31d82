package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandboxd/internal/fault"
)

// partSuffix is what the name of a file ends with until all of it is there.
const partSuffix = ".part"

// saveFile is a file that gets its name when all of it is there, or standard output.
type saveFile struct {
	path  string // "" until it is known
	force bool   // what has that name is replaced
	out   io.Writer
	part  *os.File // nil for standard output
}

// newSaveFile gives the file that path names: "-" is standard output; in a folder, and for "", it gets its name by begin.
func newSaveFile(cmd *cobra.Command, path string, force bool) (*saveFile, error) {
	s := &saveFile{path: path, force: force}
	if path != stdio {
		return s, s.mayWrite()
	}
	s.out = cmd.OutOrStdout()
	if f, ok := s.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return nil, fault.New(fault.Invalid, "A backup is not for a terminal. Lead it to a file, or to another program.")
	}
	return s, nil
}

// mayWrite is a Conflict when there is a file that is not to be replaced.
func (s *saveFile) mayWrite() error {
	st, err := os.Stat(s.path)
	if s.path == "" || err != nil || st.IsDir() || s.force {
		return nil // what is wrong with it shows when it is made
	}
	return fault.New(fault.Conflict, "There is a file %q already. Choose another name, or say --force to replace it.", s.path)
}

// begin makes the file; name is for one that has none yet.
func (s *saveFile) begin(name string) (err error) {
	if s.out != nil {
		return nil
	}
	if st, err := os.Stat(s.path); s.path == "" || err == nil && st.IsDir() {
		s.path = filepath.Join(s.path, name)
	}
	if err := s.mayWrite(); err != nil {
		return err
	}
	if s.force {
		if err := os.Remove(s.path + partSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unwritable(s.path, err)
		}
	}
	s.part, err = os.OpenFile(s.path+partSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // it holds secrets
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(err, fault.Conflict, "There is a file %q: a run that was cut off has left it, or another one is writing it. Remove that file if no other run is under way, or say --force.", s.path+partSuffix)
	}
	if err != nil {
		return unwritable(s.path, err)
	}
	s.out = s.part
	return nil
}

// Write implements io.Writer.
func (s *saveFile) Write(b []byte) (int, error) {
	n, err := s.out.Write(b)
	return n, unwritable(s.path, err)
}

// keep gives the file its name.
func (s *saveFile) keep() error {
	if s.part == nil {
		return nil
	}
	err := errors.Join(s.part.Sync(), s.part.Close())
	if err == nil {
		err = s.mayWrite()
	}
	if err == nil {
		err = os.Rename(s.part.Name(), s.path)
	}
	if err != nil {
		return unwritable(s.path, errors.Join(err, os.Remove(s.part.Name())))
	}
	s.part = nil
	return nil
}

// drop removes what there is of a file that was not kept.
func (s *saveFile) drop() {
	if s.part != nil {
		s.part.Close()
		_ = os.Remove(s.part.Name()) // keep may have done so
	}
}

// unwritable says why a file of this machine cannot be written.
func unwritable(path string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if path == stdio {
		return fault.Wrap(err, fault.Unavailable, "Standard output takes no more: %v.", err)
	}
	return fault.Wrap(err, fault.Unavailable, "%q cannot be written: %v.", path, err)
}
