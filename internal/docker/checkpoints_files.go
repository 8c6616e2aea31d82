package docker

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sandboxd/internal/fault"
)

// partFile comes after the name of a folder that is not whole.
const partFile = ".part"

// The modes of checkpoints: they have all the secrets of a memory.
const (
	checkpointFolder = 0o700
	checkpointFile   = 0o600
)

// sumFile is in a checkpoint, and has a sum of all else in it.
const sumFile = "sandboxd.sum"

// sumUp writes the sum of a checkpoint into it, and gives how many bytes it has.
func sumUp(folder string) (bytes int64, err error) {
	bytes, sum, err := sumOf(folder)
	if err != nil {
		return 0, err
	}
	return bytes, os.WriteFile(filepath.Join(folder, sumFile), []byte(sum), checkpointFile)
}

// isWhole says when a checkpoint is not what it was, and gives how many bytes it has. Programs that are restored from it may do anything, and
// CRIU may wait for what is missing without end.
func isWhole(folder string) (bytes int64, err error) {
	want, err := os.ReadFile(filepath.Join(folder, sumFile))
	if err != nil {
		return 0, err
	}
	bytes, has, err := sumOf(folder)
	if err == nil && has != string(want) {
		err = fault.New(fault.Unavailable, "What was kept of its memory is damaged.")
	}
	return bytes, err
}

// moveFiles moves a folder, which is there as a whole or not at all.
func moveFiles(from, to string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), checkpointFolder); err != nil {
		return fmt.Errorf("make the folder of checkpoints: %w", err)
	}
	part := to + partFile
	if err := errors.Join(os.RemoveAll(part), os.RemoveAll(to)); err != nil {
		return fmt.Errorf("remove an old checkpoint: %w", err)
	}
	if err := os.Chmod(from, checkpointFolder); err != nil {
		return fmt.Errorf("move a checkpoint: %w", err)
	}
	err = os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		if err = copyFiles(from, part, copyFile); err == nil {
			err = os.Rename(part, to)
		}
	}
	if err != nil {
		return errors.Join(full(err), os.RemoveAll(part))
	}
	return nil
}

// putFiles puts the files of a folder into another one, linked where that can be: what reads them there does not change them.
func putFiles(from, to string) error {
	return full(copyFiles(from, to, func(from, to string) error {
		if err := os.Link(from, to); err == nil {
			return nil
		}
		return copyFile(from, to)
	}))
}

// full says that a disk is.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(err, fault.Unavailable, "There is no room on the disk for the memory of the sandbox.")
	}
	return err
}

// copyFiles makes a folder with what another one has, file by file.
func copyFiles(from, to string, one func(from, to string) error) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch at := filepath.Join(to, rel); {
		case d.IsDir():
			return os.MkdirAll(at, checkpointFolder)
		case d.Type().IsRegular():
			return one(path, at)
		}
		return nil // CRIU writes nothing else that it reads
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, checkpointFile)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// sumOf gives how many bytes the files of a folder have, and a sum of their names and contents.
func sumOf(folder string) (bytes int64, sum string, err error) {
	all := crc32.New(crc32.MakeTable(crc32.Castagnoli)) // against faults of disks, and quick
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == sumFile {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		n, err := io.Copy(all, file)
		bytes += n
		fmt.Fprintf(all, "\x00%d %s\x00", n, strings.TrimPrefix(path, folder))
		return err
	})
	return bytes, strconv.FormatInt(bytes, 10) + " " + hex.EncodeToString(all.Sum(nil)), err
}
