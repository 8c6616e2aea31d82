package serverbackup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sandboxd/internal/fault"
)

// The names that a restore gives its folder in the data folder, as it gets on. A restore that is cut off before it is ready is forgotten;
// after that it is finished.
const (
	partFolder  = "server-restore.part"  // files are put into it
	readyFolder = "server-restore.ready" // all of them are there; what they replace is moved away
	inFolder    = "server-restore.in"    // they are moved out, to where they belong
)

// ReplacedPrefix begins the name of the folder that keeps what a restore has replaced; the time follows.
const ReplacedPrefix = "replaced-"

// Begin gives an empty folder inside the data folder for what is to be restored. The caller keeps servers off the data folder, from here
// until Finish has returned, and has called Finish before. Unavailable when it cannot be made.
func Begin(data string) (folder string, err error) {
	folder = filepath.Join(data, partFolder)
	err = Forget(data)
	if err == nil {
		err = unwritable(os.Mkdir(folder, 0o700))
	}
	return folder, err
}

// Forget removes what Begin has made, if it is there.
func Forget(data string) error {
	return unwritable(os.RemoveAll(filepath.Join(data, partFolder)))
}

// Commit makes sure that what is in the folder of Begin, which the disk has, will be in the data folder: Finish does it.
func Commit(data string) error {
	err := os.Rename(filepath.Join(data, partFolder), filepath.Join(data, readyFolder))
	if err == nil {
		err = flushFolder(data)
	}
	return unwritable(err)
}

// Finish puts what was committed in place, and forgets what was only begun. What belongs to the server that was there, by the names that own reports,
// is moved into a folder of its own, whose path it gives; "" when there was nothing. It does nothing where no restore was cut off. When it is killed
// or fails, the next one continues.
func Finish(data string, own func(name string) bool) (replaced string, err error) {
	if err := Forget(data); err != nil {
		return "", err
	}
	replaced, err = moveAway(data, own)
	if err == nil {
		err = moveIn(data)
	}
	return replaced, fault.Wrap(err, fault.Unavailable, "A restore of the server in %s cannot be finished: %v. Mend that, and start sandboxd.", data, err)
}

// moveAway moves what is replaced.
func moveAway(data string, own func(name string) bool) (replaced string, err error) {
	ready := filepath.Join(data, readyFolder)
	st, err := os.Stat(ready)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	all, err := os.ReadDir(data)
	if err != nil {
		return "", err
	}
	to := filepath.Join(data, ReplacedPrefix+st.ModTime().UTC().Format("20060102-150405")) // the same after a crash
	for _, f := range all {
		if !own(f.Name()) {
			continue
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return "", err
		}
		if err := os.Rename(filepath.Join(data, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(to); err == nil {
		replaced = to
		if err := flushFolder(to); err != nil {
			return "", err
		}
	}
	if err := flushFolder(data); err != nil {
		return "", err
	}
	if err := os.Rename(ready, filepath.Join(data, inFolder)); err != nil {
		return "", err
	}
	return replaced, flushFolder(data)
}

// moveIn moves what is restored to where it belongs.
func moveIn(data string) error {
	in := filepath.Join(data, inFolder)
	all, err := os.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range all {
		if err == nil {
			err = os.Rename(filepath.Join(in, f.Name()), filepath.Join(data, f.Name()))
		}
	}
	if err == nil {
		err = flushFolder(data)
	}
	if err == nil {
		err = os.Remove(in)
	}
	return err
}
