// Package seal keeps secrets unreadable in what sandboxd writes: it encrypts them with a key that is in a file of the data folder.
//
// It does not say which secrets there are, and does not protect them from one who can read that file: it keeps them out of copies of the
// database, logs and caches.
//
// Invariant: what is opened is what was sealed for the same purpose, or there is an error.
package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/chacha20poly1305"

	"sandboxd/internal/fault"
)

// Key seals and opens. It is a value that may be shared; safe for concurrent use.
type Key struct {
	key [chacha20poly1305.KeySize]byte
}

// Open reads the key from a file, and makes that at first use, readable by its owner alone. Unavailable when it cannot be read or made,
// Invalid when the file is no key.
func Open(path string) (*Key, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = create(path)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The key file %s cannot be used: %v.", path, err)
	}
	if len(text) != chacha20poly1305.KeySize {
		return nil, fault.New(fault.Invalid, "The key file %s has %d bytes instead of %d. Put back the right one from a backup of the data folder.", path, len(text),
			chacha20poly1305.KeySize)
	}
	return &Key{[chacha20poly1305.KeySize]byte(text)}, nil
}

// create makes a key file whole or not at all, and gives what is in it. One that another process made first is that.
func create(path string) ([]byte, error) {
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.part") // of mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(next.Name())
	text := make([]byte, chacha20poly1305.KeySize)
	rand.Read(text) // never fails
	_, err = next.Write(text)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(next.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// Seal encrypts a text for a purpose, such as the name of what it belongs to.
func (k *Key) Seal(purpose string, text []byte) ([]byte, error) {
	c, err := chacha20poly1305.NewX(k.key[:])
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	nonce := make([]byte, c.NonceSize(), c.NonceSize()+len(text)+c.Overhead())
	rand.Read(nonce)
	return c.Seal(nonce, nonce, text, []byte(purpose)), nil
}

// Open gives what was sealed for that purpose. Invalid when it was sealed with another key, for something else, or was changed.
func (k *Key) Open(purpose string, sealed []byte) ([]byte, error) {
	c, err := chacha20poly1305.NewX(k.key[:])
	if err != nil {
		return nil, fmt.Errorf("open what is sealed: %w", err)
	}
	n := c.NonceSize()
	if len(sealed) < n {
		return nil, fault.New(fault.Invalid, "The secret is damaged.")
	}
	text, err := c.Open(nil, sealed[:n], sealed[n:], []byte(purpose))
	return text, fault.Wrap(err, fault.Invalid, "The secret was not sealed with this data folder's key (secret.key). Enter it again.")
}
