//go:build engine

package git

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func TestCheck_KnowsAKeyWithAPassphrase(t *testing.T) {
	for phrase, good := range map[string]bool{"": true, "a secret": false} {
		key := newKey(t, phrase)
		err := Source{URL: "ssh://git@h/t", Key: key}.Check()
		if (err == nil) != good {
			t.Errorf("with the passphrase %q: %v", phrase, err)
		}
		if err != nil && strings.Contains(err.Error(), key[40:60]) {
			t.Errorf("the error has a part of the key: %v", err)
		}
	}
}

// newKey makes a key with ssh-keygen.
func newKey(t *testing.T, phrase string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The server is Debian's sshd, on loopback: the first host key is pinned, another one is refused, and so is a key that it does not know.
func TestFetch_BySSHPinsTheHostsKey(t *testing.T) {
	key := newKey(t, "")
	repository := newRepository(t)
	commit := repository.commit(map[string]string{"rust/Dockerfile": "FROM scratch\n"})
	host := sshServer(t, key)
	s := Source{URL: fmt.Sprintf("ssh://root@%s%s", host, repository.dir), Path: "rust", Key: key}
	at, work := fetched(t, &Client{}, s)
	if at.Commit != commit || !strings.Contains(at.HostKeys, "ssh-ed25519 ") {
		t.Fatalf("fetched %+v, want %s", at, commit)
	}
	mustRead(t, filepath.Join(work, FilesFolder, "Dockerfile"), "FROM scratch\n")

	s.HostKeys = at.HostKeys
	if again, _ := fetched(t, &Client{}, s); again.HostKeys != at.HostKeys {
		t.Errorf("host keys are now %q", again.HostKeys)
	}
	s.URL = fmt.Sprintf("ssh://root@%s%s", sshServer(t, key), repository.dir)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(strings.SplitN(s.URL, "/", 4)[2], "root@"))
	_, was, _ := net.SplitHostPort(host)
	s.HostKeys = strings.ReplaceAll(at.HostKeys, ":"+was, ":"+port)
	if _, err := (&Client{}).Fetch(t.Context(), s, t.TempDir()); fault.FieldOf(err) != "host_key" {
		t.Errorf("another host key gives %v", err)
	}
	s.HostKeys, s.Key = "", newKey(t, "")
	if _, err := (&Client{}).Fetch(t.Context(), s, t.TempDir()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("another key gives %v", err)
	}
}

// sshServer starts an sshd that takes the key for root, and gives its address.
func sshServer(t *testing.T, key string) string {
	t.Helper()
	dir := t.TempDir()
	hostKey := newKey(t, "")
	for name, text := range map[string]string{"host": hostKey, "client": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", filepath.Join(dir, "client")).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "known"), public, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	l.Close()
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", filepath.Join(dir, "host"), "-p", port, "-o", "ListenAddress=127.0.0.1",
		"-o", "AuthorizedKeysFile="+filepath.Join(dir, "known"), "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "PidFile=none", "-o", "UsePAM=no")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it is of no use any more, however it ends
	for range 100 {
		if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", at); err == nil {
			c.Close()
			return at
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatal("sshd does not answer")
	return ""
}
