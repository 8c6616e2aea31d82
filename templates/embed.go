// Package templates carries the sandbox templates, and what VS Code is built from, inside the binary, so that it works without
// its source tree.
//
// It does not read or check them: that is internal/catalog, which reads folders. Unpack makes the folder.
//
// Invariant: Unpack leaves exactly the embedded files on the disk, so that the images' content hashes are the
// same from an unpacked folder and from the source tree.
package templates

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed all:sandbox
var sandbox embed.FS

//go:embed all:ide
var ide embed.FS

// Unpack makes folder hold the built-in templates and nothing else. Files that are right already are left
// as it is, with its time stamps; changes to it are undone, so it is no place for templates of your own.
func Unpack(folder string) error { return unpack(folder, sandbox, "sandbox") }

// UnpackIDE is Unpack for what the image of VS Code is built from: a template's folder of its own.
func UnpackIDE(folder string) error { return unpack(folder, ide, "ide") }

func unpack(folder string, from embed.FS, sub string) error {
	content, err := fs.Sub(from, sub)
	if err != nil {
		return fmt.Errorf("unpack templates: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("unpack templates: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("unpack templates: %w", err)
	}
	defer root.Close()
	if err := prune(root, content); err != nil {
		return fmt.Errorf("unpack templates: %w", err)
	}
	if err := write(root, content); err != nil {
		return fmt.Errorf("unpack templates: %w", err)
	}
	return nil
}

// prune removes names that content does not have, and those that are a file here and a folder there.
func prune(root *os.Root, content fs.FS) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := fs.Stat(content, name)
		if err == nil && info.IsDir() == d.IsDir() && (d.IsDir() || d.Type().IsRegular()) {
			return nil
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

func write(root *os.Root, content fs.FS) error {
	return fs.WalkDir(content, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			return nil
		}
		text, err := fs.ReadFile(content, name)
		if err != nil {
			return err
		}
		return put(root, name, text)
	})
}

// put writes a file in one step, unless it is there already.
func put(root *os.Root, name string, text []byte) error {
	mode := modeOf(text)
	if info, err := root.Lstat(name); err == nil && info.Mode() == mode {
		if old, err := root.ReadFile(name); err == nil && bytes.Equal(old, text) {
			return nil
		}
	}
	temporary := filepath.Join(filepath.Dir(name), ".unpack-new")
	if err := root.WriteFile(temporary, text, mode); err != nil {
		return err
	}
	if err := root.Chmod(temporary, mode); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

// modeOf gives a script its right to run, which embedding loses.
func modeOf(text []byte) fs.FileMode {
	if bytes.HasPrefix(text, []byte("#!")) {
		return 0o755
	}
	return 0o644
}
