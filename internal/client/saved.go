package client

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sandboxd/internal/fault"
)

// Saved holds the known servers. A token is found by its server's address alone, so that it goes nowhere else.
type Saved struct {
	Current string            `json:"current"` // the server that is meant when none is named
	Tokens  map[string]string `json:"tokens"`  // by address
}

// SavedPath is where it is kept.
func SavedPath() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "There is no folder for settings: %v.", err)
	}
	return filepath.Join(folder, "sandboxd", "client.json"), nil
}

// Load reads the file path; it gives nothing when there is no such file. A file that others may read is refused: the tokens
// in it are not secret any more.
func Load(path string) (Saved, error) {
	s := Saved{Tokens: map[string]string{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fault.Wrap(err, fault.Unavailable, "The saved sign-in cannot be read: %v.", err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm()&0o077 != 0 {
		return s, fault.New(fault.Forbidden, "Others may read %s, which holds tokens. Run 'chmod 600' on it; better, revoke them and sign in again.", path)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fault.Wrap(err, fault.Invalid, "The saved sign-in %s cannot be understood: %v. Remove it and sign in again.", path, err)
	}
	if s.Tokens == nil {
		s.Tokens = map[string]string{}
	}
	return s, nil
}

// Save writes it as a whole, for its owner's eyes only.
func (s Saved) Save(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(path, append(text, '\n'), 0o600); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The sign-in cannot be saved: %v.", err)
	}
	return nil
}

// replaceFile writes a file whole or not at all, in a folder that is made for its owner alone.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err = errors.Join(err, next.Chmod(mode), next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// ReplaceConfig is for a file of the user's own: it is written whole, keeps its mode and may be a link.
func ReplaceConfig(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	return replaceFile(path, text, mode)
}
