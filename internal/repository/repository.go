// Package repository keeps the places outside of the backup folder where backups can be: a folder, S3 or SFTP, each encrypted and
// deduplicated. It knows which there are, with their secrets, and lets one at a time write to each.
//
// How a repository stores what it is given is its Engine's (internal/kopia), and what a backup is internal/backup's. It knows nothing of
// HTTP.
//
// Invariant: a secret leaves this package only to the Engine, and once, when it was generated, to the admin who needs it.
package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// Kind says what kind of place a repository is in.
type Kind string

// The kinds.
const (
	Folder Kind = "folder"
	S3     Kind = "s3"
	SFTP   Kind = "sftp"
)

// Kinds are all of them, in the order in which they are offered.
var Kinds = []Kind{Folder, S3, SFTP}

// Place is where a repository is, without secrets. It is a value; fields of other kinds are empty.
type Place struct {
	Kind Kind `json:"kind"`

	Path string `json:"path,omitempty"` // of Folder and SFTP, absolute

	Endpoint  string `json:"endpoint,omitempty"` // of S3: host or host:port
	Bucket    string `json:"bucket,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	Region    string `json:"region,omitempty"`
	AccessKey string `json:"access_key,omitempty"`
	PlainHTTP bool   `json:"plain_http,omitempty"` // no TLS
	CA        string `json:"ca,omitempty"`         // PEM; "" for what the system trusts

	Host    string `json:"host,omitempty"` // of SFTP
	Port    int    `json:"port,omitempty"` // 22 unless set
	User    string `json:"user,omitempty"`
	HostKey string `json:"host_key,omitempty"` // such as "ssh-ed25519 AAAA…"
}

// Secrets are what opens a repository. They are never shown again.
type Secrets struct {
	Password   string `json:"password"`              // encrypts the content
	SecretKey  string `json:"secret_key,omitempty"`  // of S3
	PrivateKey string `json:"private_key,omitempty"` // of SFTP, PEM
}

// Access is all that an Engine needs to use a repository.
type Access struct {
	Name    string
	Place   Place
	Secrets Secrets
}

// Item is a backup in a repository.
type Item struct {
	ID    string          `json:"id"`
	About json.RawMessage `json:"about"` // what was said of it when it was saved
	Added int64           `json:"added"` // bytes that the repository has grown by
	Size  int64           `json:"size"`  // bytes of its stream
}

// Contents is what a repository has.
type Contents struct {
	Items   []Item    `json:"items"`
	Size    int64     `json:"size"` // bytes of all
	Seen    time.Time `json:"seen"`
	Damaged []string  `json:"damaged,omitempty"` // ids of items that a check has found damaged
}

// Draft is a backup to be saved.
type Draft struct {
	ID       string
	Title    string                                           // for people with other tools
	Whole    bool                                             // all of it is read back, not only what is new
	Write    func(context.Context, io.Writer) ([]byte, error) // writes the stream, and gives what is to be said of it
	Progress func(Progress) error                             // called now and then; an error of it cuts the work off
}

// Progress says how far something is, in bytes.
type Progress struct {
	Added int64 `json:"added,omitempty"` // written to the repository
	Done  int64 `json:"done,omitempty"`  // of the stream, or of what is checked
	Total int64 `json:"total,omitempty"` // of what is checked
	Read  int64 `json:"read,omitempty"`  // read back from the repository
	Steps int64 `json:"steps,omitempty"` // no bytes: what shows only that it moves
}

// Checked is what a check has found.
type Checked struct {
	Backups int      `json:"backups"`
	Size    int64    `json:"size"`    // bytes of the repository
	Read    bool     `json:"read"`    // all was read, not only looked at
	Damaged []string `json:"damaged"` // ids of backups that cannot be restored
}

// ItemError is within an error of an Engine that is about one backup: the repository itself can be used.
type ItemError struct{ Err error }

// Error implements error.
func (e ItemError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e ItemError) Unwrap() error { return e.Err }

// PlaceError is within an error of an Engine whose message tells of the place, such as an address, which is for admins.
type PlaceError struct {
	Public string // what others may be told; a sentence
	Err    error
}

// Error implements error.
func (e PlaceError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e PlaceError) Unwrap() error { return e.Err }

// Bounds of what is entered.
const (
	maxField  = 1000
	maxPEM    = 64 << 10
	minSecret = 8
	sshPort   = 22
)

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName is Invalid unless a repository can be called that: up to 40 of a–z, 0–9 and "-".
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fault.Field("name", "A name has up to 40 of a–z, 0–9 and -, and neither begins nor ends with -.")
	}
	return nil
}

// check is Invalid, beside the field, when a place and its secrets make no sense.
func (a Access) check() error {
	for field, text := range map[string]string{"path": a.Place.Path, "endpoint": a.Place.Endpoint, "bucket": a.Place.Bucket, "prefix": a.Place.Prefix,
		"region": a.Place.Region, "access_key": a.Place.AccessKey, "host": a.Place.Host, "user": a.Place.User, "host_key": a.Place.HostKey,
		"password": a.Secrets.Password, "secret_key": a.Secrets.SecretKey} {
		if len(text) > maxField || strings.ContainsAny(text, "\x00\r\n") {
			return fault.Field(field, "It must be one line of at most %d bytes.", maxField)
		}
	}
	if len(a.Secrets.Password) < minSecret {
		return fault.Field("password", "A password has at least %d characters.", minSecret)
	}
	switch a.Place.Kind {
	case Folder:
		return a.checkFolder()
	case S3:
		return a.checkS3()
	case SFTP:
		return a.checkSFTP()
	}
	return fault.Field("kind", "The kind must be folder, s3 or sftp.")
}

func (a Access) checkFolder() error {
	if p := a.Place.Path; !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" {
		return fault.Field("path", "Enter the absolute path of a folder on the server, such as /mnt/backups/sandboxd.")
	}
	return nil
}

var bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (a Access) checkS3() error {
	p := a.Place
	switch {
	case p.Endpoint == "" || strings.ContainsAny(p.Endpoint, "/@? "):
		return fault.Field("endpoint", "Enter a host, with a port if it has one, such as s3.example.com or 10.0.0.5:9000. Leave https:// out.")
	case !bucketPattern.MatchString(p.Bucket):
		return fault.Field("bucket", "The name of a bucket has 3 to 63 of a–z, 0–9, dots and -.")
	case p.AccessKey == "":
		return fault.Field("access_key", "Enter the access key.")
	case a.Secrets.SecretKey == "":
		return fault.Field("secret_key", "Enter the secret key.")
	case len(p.CA) > maxPEM || p.CA != "" && !strings.Contains(p.CA, "BEGIN CERTIFICATE"):
		return fault.Field("ca", "It must be a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----.")
	case p.CA != "" && p.PlainHTTP:
		return fault.Field("ca", "Without TLS no certificate is used. Leave it out.")
	}
	return nil
}

var hostKeyPattern = regexp.MustCompile(`^[a-z0-9@.-]+ [A-Za-z0-9+/=]+( .*)?$`)

func (a Access) checkSFTP() error {
	p := a.Place
	switch {
	case p.Host == "" || strings.ContainsAny(p.Host, "/@ ") || strings.Contains(p.Host, ":") && net.ParseIP(p.Host) == nil:
		return fault.Field("host", "Enter the name or the address of a host. Its port has a field of its own.")
	case p.Port < 1 || p.Port > 65535:
		return fault.Field("port", "A port is a number from 1 to 65535.")
	case p.User == "":
		return fault.Field("user", "Enter the user to log in as.")
	case !path.IsAbs(p.Path) || path.Clean(p.Path) != p.Path || p.Path == "/":
		return fault.Field("path", "Enter the absolute path of a folder on that host, such as /srv/backups/sandboxd.")
	case !hostKeyPattern.MatchString(p.HostKey):
		return fault.Field("host_key", "Enter the host's public key, such as “ssh-ed25519 AAAA…”. 'ssh-keyscan -t ed25519 -p PORT HOST' prints it; compare it on the host.")
	case len(a.Secrets.PrivateKey) > maxPEM || !strings.Contains(a.Secrets.PrivateKey, "PRIVATE KEY-----"):
		return fault.Field("private_key", "Enter a private key without a passphrase, which begins with -----BEGIN OPENSSH PRIVATE KEY-----.")
	}
	return nil
}

// completed gives an access with what is left out filled in and spaces around texts taken away.
func (a Access) completed() Access {
	p := &a.Place
	for _, text := range []*string{&p.Path, &p.Endpoint, &p.Bucket, &p.Prefix, &p.Region, &p.AccessKey, &p.CA, &p.Host, &p.User, &p.HostKey, &a.Secrets.SecretKey, &a.Secrets.PrivateKey} {
		*text = strings.TrimSpace(*text)
	}
	if p.Kind == SFTP && p.Port == 0 {
		p.Port = sshPort
	}
	p.HostKey = hostKeyOf(p.HostKey)
	if p.Prefix != "" && !strings.HasSuffix(p.Prefix, "/") {
		p.Prefix += "/"
	}
	if a.Secrets.PrivateKey != "" {
		a.Secrets.PrivateKey += "\n"
	}
	return a
}

// hostKeyOf takes the key out of a line that ssh-keyscan prints, which begins with the host; comments are left out.
func hostKeyOf(text string) string {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) > 2 && (strings.HasPrefix(words[1], "ssh-") || strings.HasPrefix(words[1], "ecdsa-")) {
			words = words[1:]
		}
		return strings.Join(words, " ")
	}
	return ""
}

// Field is the one that says where a repository of a kind is.
func (k Kind) Field() string {
	if k == S3 {
		return "bucket"
	}
	return "path"
}

// String says in a line where a place is, without secrets.
func (p Place) String() string {
	switch p.Kind {
	case S3:
		return path.Join(p.Endpoint, p.Bucket, p.Prefix)
	case SFTP:
		if p.Port != 0 && p.Port != sshPort {
			return fmt.Sprintf("%s@%s:%s, port %d", p.User, p.Host, p.Path, p.Port)
		}
		return p.User + "@" + p.Host + ":" + p.Path
	}
	return p.Path
}
