//go:build engine

package kopia_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
)

// newKey makes a key pair, and gives the private one and the public one.
func newKey(t *testing.T, path string) (private, public string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return string(key), string(pub)
}

// sftpServer runs OpenSSH's server, and gives a repository in a folder behind it.
func sftpServer(t *testing.T) repository.Access {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "sandboxd-sftp-*") // sshd wants folders above that others cannot write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	_, hostKey := newKey(t, filepath.Join(folder, "host"))
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", filepath.Join(folder, "other")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out) // a key of the kind that clients like better
	}
	private, public := newKey(t, filepath.Join(folder, "user"))
	if err := os.WriteFile(filepath.Join(folder, "authorized"), []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	port := freePort(t)
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nHostKey %s/other\nAuthorizedKeysFile %s/authorized\nPasswordAuthentication no\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPidFile none\nSubsystem sftp internal-sftp\n", port, folder, folder, folder)
	if err := os.WriteFile(filepath.Join(folder, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, port, exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(folder, "config")))
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return repository.Access{Name: "away", Secrets: repository.Secrets{Password: "correct horse", PrivateKey: private}, Place: repository.Place{
		Kind: repository.SFTP, Host: "127.0.0.1", Port: port, User: me.Username, Path: filepath.Join(folder, "backups"), HostKey: strings.TrimSpace(hostKey),
	}}
}

func TestSFTP_KeepsItsContract(t *testing.T) {
	repositorytest.EngineContract(t, engine(t, "0123abcd"), sftpServer(t))
}

func TestSFTP_SaysWhatIsWrong(t *testing.T) {
	a := sftpServer(t)
	e := connected(t, a)
	other := a
	_, other.Place.HostKey = newKey(t, filepath.Join(t.TempDir(), "other"))
	other.Place.HostKey = strings.TrimSpace(other.Place.HostKey)
	_, err := e.List(t.Context(), other)
	wantKind(t, "another host key", err, fault.Invalid, "host_key")
	other = a
	other.Secrets.PrivateKey, _ = newKey(t, filepath.Join(t.TempDir(), "other"))
	_, err = e.List(t.Context(), other)
	wantKind(t, "another private key", err, fault.Invalid, "private_key")
	other.Secrets.PrivateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nnonsense\n-----END OPENSSH PRIVATE KEY-----\n"
	_, err = e.List(t.Context(), other)
	wantKind(t, "a key that is none", err, fault.Invalid, "private_key")
	if err == nil || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a key that is none: %v", err)
	}
	other = a
	other.Place.HostKey = "ssh-ed25519 AAAA"
	_, err = e.List(t.Context(), other)
	wantKind(t, "a host key that is none", err, fault.Invalid, "host_key")
	other = a
	other.Place.Path = "/etc/ssh"
	_, err = e.Connect(t.Context(), other, repository.ConnectOptions{})
	wantKind(t, "a folder with something else", err, fault.Invalid, "path")
	other.Place.Port = freePort(t)
	_, err = e.List(t.Context(), other)
	if wantKind(t, "nothing listens", err, fault.Unavailable, ""); !strings.Contains(fault.Message(err), "connection refused") {
		t.Errorf("nothing listens: %v", err)
	}
	closing, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closing.Close()
	go func() {
		for conn, err := closing.Accept(); err == nil; conn, err = closing.Accept() {
			conn.Close()
		}
	}()
	other.Place.Port = closing.Addr().(*net.TCPAddr).Port
	_, err = e.List(t.Context(), other)
	wantKind(t, "no SSH server", err, fault.Unavailable, "")
}
