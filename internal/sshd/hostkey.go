package sshd

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/fault"
)

// maxKeyFile is far above what a key needs, in bytes.
const maxKeyFile = 16 << 10

// HostKey is the key by which clients know the server again.
type HostKey struct{ signer ssh.Signer }

// OpenHostKey reads the key in the file path, or makes one there that only its owner may read. A file that others may read
// or that is no key is refused: Unavailable.
func OpenHostKey(path string) (*HostKey, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "The SSH host key cannot be written to %s.", path)
		}
		text, err = os.ReadFile(path) // another process may have been first
	}
	if err == nil {
		err = private(path)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The SSH host key %s cannot be used: %v.", path, err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The SSH host key %s is not one. Move it away, and a new one is made.", path)
	}
	return &HostKey{signer}, nil
}

func private(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o077 != 0 || st.Size() > maxKeyFile {
		return fmt.Errorf("others may read it: run chmod 600 %s", path)
	}
	return nil
}

// makeKey writes a new key as a whole, and not over one that is there.
func makeKey(path string) error {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "sandboxd")
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".ssh-host-key-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(pem.EncodeToMemory(block))
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := os.Link(next.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Public is the public key as known_hosts has it: "ssh-ed25519 AAAA…".
func (k *HostKey) Public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}
