// Package git gets the files of one revision of a git repository, by running git.
//
// It knows nothing of templates, keeps no repository, and never checks one out: it reads the files from git's archive of the revision, so
// hooks, filters, submodules and configuration of the repository do nothing.
//
// Invariant: whatever a server sends, and however it behaves, Fetch ends in time with all processes that it began, and writes only below
// the folder that it was given, at most so many bytes.
package git

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"path"
	"regexp"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Bounds of what is entered, in bytes.
const (
	maxURL    = 1000
	maxRef    = 200
	maxPath   = 500
	maxSecret = 64 << 10
)

// Source is a folder in a revision of a repository, and how the repository is reached. It is a value.
type Source struct {
	URL      string // https://, ssh://, git:// or user@host:path
	Ref      string // a branch or a tag; "" for the repository's default branch
	Path     string // of the folder, with slashes; "" for the repository itself
	Token    string // for https; "" for none
	Key      string // private key for ssh in OpenSSH's format, without a passphrase; "" for none
	HostKeys string // of the ssh host, as lines of a known_hosts file; "" takes the one that the host shows first
}

var (
	scpForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_~./][^:\s]*$`)
	refForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+@=-]*$`)
	host    = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`)
	keyHost = regexp.MustCompile(`^\S+ (ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/=]+`)
)

// Address gives an address as it is kept: its scheme in lower case, as git wants it.
func Address(entered string) string {
	scheme, rest, ok := strings.Cut(text.Trim(entered), "://")
	if !ok {
		return scheme
	}
	return strings.ToLower(scheme) + "://" + rest
}

// SSH reports whether the repository is reached by ssh.
func (s Source) SSH() bool { return strings.HasPrefix(s.URL, "ssh://") || scpForm.MatchString(s.URL) }

// HTTPS reports whether the repository is reached by https.
func (s Source) HTTPS() bool { return strings.HasPrefix(s.URL, "https://") }

// Check refuses what cannot be a source. Invalid with a field: "url", "ref", "path", "token", "key", "host_key".
func (s Source) Check() error {
	if err := s.checkURL(); err != nil {
		return err
	}
	switch {
	case s.Ref != "" && !validRef(s.Ref):
		return fault.Field("ref", "%.60q is not the name of a branch or tag.", s.Ref)
	case s.Path != "" && !validPath(s.Path):
		return fault.Field("path", "%.60q is not a folder in the repository. Write it such as templates/rust.", s.Path)
	case s.Token != "" && !s.HTTPS():
		return fault.Field("token", "A token is for an address with https. With ssh use a key.")
	case s.Token != "" && (len(s.Token) > 4096 || text.Unprintable(s.Token) || strings.ContainsAny(s.Token, " ")):
		return fault.Field("token", "This is not a token: it has spaces or line ends.")
	case s.Key != "" && !s.SSH():
		return fault.Field("key", "A key is for an address with ssh. With https use a token.")
	case s.HostKeys != "" && !s.SSH():
		return fault.Field("host_key", "A host key is for an address with ssh.")
	case s.HostKeys != "" && !validHostKeys(s.HostKeys):
		return fault.Field("host_key", "This is not a line of ssh's known_hosts, such as \"git.example.com ssh-ed25519 AAAA…\".")
	case s.Key != "":
		return checkKey(s.Key)
	}
	return nil
}

func (s Source) checkURL() error {
	if s.URL == "" {
		return fault.Field("url", "Enter the address of the repository.")
	}
	if scpForm.MatchString(s.URL) && len(s.URL) <= maxURL {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || len(s.URL) > maxURL || text.Unprintable(s.URL) || strings.Contains(s.URL, " ") {
		return fault.Field("url", "This is not the address of a repository. Write it such as https://git.example.com/team/templates.git.")
	}
	switch u.Scheme {
	case "https", "ssh", "git":
	default:
		return fault.Field("url", "The address begins with https://, ssh:// or git://, or is such as git@git.example.com:team/templates.git. Others are not taken.")
	}
	_, password := u.User.Password()
	switch {
	case password:
		return fault.Field("url", "Leave the password out of the address, and enter it as token.")
	case u.Hostname() == "" || !host.MatchString(u.Host) || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.User.Username(), "-"):
		return fault.Field("url", "The address has no host that can be asked.")
	case u.RawQuery != "" || u.Fragment != "" || len(u.Path) < 2:
		return fault.Field("url", "The address names no repository, or has more behind its path.")
	}
	return nil
}

// validRef is what git takes as a name, without the rare characters.
func validRef(name string) bool {
	return len(name) <= maxRef && refForm.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "//") && !strings.HasSuffix(name, "/") &&
		!strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".")
}

func validPath(p string) bool {
	return len(p) <= maxPath && path.Clean(p) == p && p != "." && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !text.Unprintable(p)
}

func validHostKeys(lines string) bool {
	if len(lines) > maxSecret {
		return false
	}
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" && !keyHost.MatchString(line) {
			return false
		}
	}
	return true
}

// The frame of a private key in OpenSSH's format.
const (
	keyBegin = "-----BEGIN OPENSSH PRIVATE KEY-----"
	keyEnd   = "-----END OPENSSH PRIVATE KEY-----"
	keyMagic = "openssh-key-v1\x00"
)

// checkKey refuses what ssh could not use without asking a person.
func checkKey(key string) error {
	body, found := strings.CutPrefix(strings.TrimSpace(key), keyBegin)
	body, ended := strings.CutSuffix(body, keyEnd)
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
	raw, magic := bytes.CutPrefix(raw, []byte(keyMagic))
	if !found || !ended || err != nil || !magic || len(key) > maxSecret || len(raw) < 8 {
		return fault.Field("key", "This is not a private key in OpenSSH's format, which begins with %q. ssh-keygen -t ed25519 makes one.", keyBegin)
	}
	if n := binary.BigEndian.Uint32(raw); n != 4 || string(raw[4:8]) != "none" {
		return fault.Field("key", "The key has a passphrase, which nobody can enter here. Make one without: ssh-keygen -t ed25519 -N \"\".")
	}
	return nil
}
