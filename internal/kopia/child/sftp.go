package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	kopiasftp "github.com/kopia/kopia/repo/blob/sftp"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
)

// sftpLimit bounds how long a host takes to let us in and to say what is in a folder.
const sftpLimit = 30 * time.Second

// openSFTP reaches a folder of another host. kopia takes the host's key of the kind that it likes best, which need not be the one that
// was entered: it is told all of them.
func openSFTP(ctx context.Context, a repository.Access, make bool) (blob.Storage, error) {
	p := a.Place
	keys, err := loginSFTP(ctx, a, make)
	if err != nil {
		return nil, err
	}
	var hosts strings.Builder
	for _, k := range keys {
		fmt.Fprintln(&hosts, knownhosts.Line([]string{net.JoinHostPort(p.Host, strconv.Itoa(p.Port))}, k))
	}
	return kopiasftp.New(ctx, &kopiasftp.Options{Path: p.Path, Host: p.Host, Port: p.Port, Username: p.User, KeyData: a.Secrets.PrivateKey, KnownHostsData: hosts.String()}, make)
}

// loginSFTP logs in to the host, and gives its keys: the one that was entered, and those that the host itself tells then. It is an
// error if there is no repository, unless make is set and the folder is empty.
func loginSFTP(ctx context.Context, a repository.Access, make bool) ([]ssh.PublicKey, error) {
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(a.Place.HostKey))
	if err != nil {
		return nil, fault.Field("host_key", "This is not the public key of a host, such as “ssh-ed25519 AAAA…”.")
	}
	mine, err := ssh.ParsePrivateKey([]byte(a.Secrets.PrivateKey))
	if err != nil { // which may have a part of the key
		return nil, fault.Field("private_key", "This is not a private key, or it has a passphrase. Use one without.")
	}
	conn, err := (&net.Dialer{Timeout: sftpLimit}).DialContext(ctx, "tcp", net.JoinHostPort(a.Place.Host, strconv.Itoa(a.Place.Port)))
	if err != nil {
		return nil, unusable(err, "The host of the repository cannot be reached", err.Error())
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(sftpLimit)); err != nil {
		return nil, err
	}
	l := &login{user: a.Place.User, host: host}
	secure, channels, requests, err := ssh.NewClientConn(conn, conn.RemoteAddr().String(), &ssh.ClientConfig{User: l.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(mine)},
		HostKeyCallback: l.checkHost, HostKeyAlgorithms: algorithms(host)})
	if err != nil {
		return nil, l.failed(err)
	}
	told := hostKeys(requests)
	client := ssh.NewClient(secure, channels, nil)
	defer client.Close()
	files, err := sftp.NewClient(client)
	if err != nil {
		return nil, unusable(err, "The host does not serve files to this user", err.Error())
	}
	defer files.Close()
	if err := checkFolder(files, a.Place.Path, make); err != nil {
		return nil, err
	}
	client.Close()
	return append([]ssh.PublicKey{host}, <-told...), nil
}

// checkFolder looks whether a folder of the host has a repository, or nothing if one may be made there.
func checkFolder(files *sftp.Client, path string, make bool) error {
	if _, err := files.Lstat(path + "/" + formatFile); err == nil {
		return nil
	}
	if !make {
		return repo.ErrRepositoryNotInitialized // kopia would write there
	}
	names, err := files.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unusable(err, "The folder on the host cannot be read", err.Error())
	case len(names) > 0:
		return notEmpty(repository.SFTP)
	}
	return nil
}

// login is how far a login has come.
type login struct {
	user  string
	host  ssh.PublicKey
	known bool // the host has the key that was entered
	other bool // the host has another one
}

func (l *login) checkHost(_ string, _ net.Addr, key ssh.PublicKey) error {
	l.known = bytes.Equal(key.Marshal(), l.host.Marshal())
	l.other = !l.known
	if l.other {
		return errors.New("the host has another key")
	}
	return nil
}

// failed says why there was no login.
func (l *login) failed(err error) error {
	var network net.Error
	switch {
	case l.other:
		return &fault.Error{Kind: fault.Invalid, Field: "host_key", Message: "The host has another key than this one. Compare it on the host.", Err: err}
	case errors.As(err, &network):
		return unusable(err, "The host of the repository does not answer as an SSH server does", network.Error())
	case l.known:
		return &fault.Error{Kind: fault.Invalid, Field: "private_key", Message: fmt.Sprintf("The host does not let %.40s in with this key.", l.user), Err: err}
	}
	return unusable(err, "The host of the repository does not answer as an SSH server does, or has no key of this kind", err.Error())
}

// algorithms are those by which a host proves that it has a key.
func algorithms(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// hostKeys gives the keys that a host tells of itself after a login, once the connection has ended.
func hostKeys(requests <-chan *ssh.Request) <-chan []ssh.PublicKey {
	told := make(chan []ssh.PublicKey, 1)
	go func() {
		var keys []ssh.PublicKey
		for r := range requests {
			if r.Type == "hostkeys-00@openssh.com" {
				keys = parseKeys(r.Payload)
			}
			if r.WantReply {
				_ = r.Reply(false, nil) // the host sees that
			}
		}
		told <- keys
	}()
	return told
}

// parseKeys reads keys that follow each other. Of kinds that we do not know there are none.
func parseKeys(b []byte) (keys []ssh.PublicKey) {
	var next struct {
		Key  []byte
		Rest []byte `ssh:"rest"`
	}
	for len(b) > 0 && ssh.Unmarshal(b, &next) == nil {
		if key, err := ssh.ParsePublicKey(next.Key); err == nil {
			keys = append(keys, key)
		}
		b = next.Rest
	}
	return keys
}
