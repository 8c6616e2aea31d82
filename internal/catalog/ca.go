package catalog

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/fault"
)

// caFolder is where every build context has the host's extra certificates. The folder is always there, if only with
// a README, so that a Dockerfile can COPY it.
const caFolder = ownFolder + "/ca/"

const caReadme = "Certificates that the host trusts beyond its distribution's own, one in each .crt file. There may be none.\n"

// Bounds on reading: a host's bundle has some 150 certificates in 250 KiB.
const (
	maxBundle       = 8 << 20
	maxCertificates = 2000
)

// Certificate is an authority that this host trusts beyond its distribution's own, such as a company's.
type Certificate struct {
	Name string // file name, made of its content: "3f…c2.crt"
	PEM  []byte
}

// CASource says where a host keeps the certificates that it trusts. Places that are not there are passed over.
type CASource struct {
	Package string   // folder of the certificates that the distribution ships
	Local   []string // folders of those that the host's owner added
	Bundle  string   // the bundle that programs read
	Files   []string // further bundles, named by configuration; a missing one is an error
}

// HostCA is where Debian and Ubuntu, and their relatives, keep certificates. files are bundles named by configuration
// (such as the values of SANDBOXD_CA_FILE and SSL_CERT_FILE); empty ones and the host's own bundle are left out.
func HostCA(files ...string) CASource {
	s := CASource{
		Package: "/usr/share/ca-certificates",
		Local:   []string{"/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors"},
		Bundle:  "/etc/ssl/certs/ca-certificates.crt",
	}
	for _, f := range files {
		if f != "" && filepath.Clean(f) != s.Bundle {
			s.Files = append(s.Files, f)
		}
	}
	return s
}

// ExtraCA gives the certificates of s that the distribution does not ship, by name. The local folders' always count;
// a bundle's count when they are not among the package's. A host whose package folder is not known has its bundle
// taken for the distribution's.
func ExtraCA(s CASource) ([]Certificate, error) {
	known, err := folderCertificates(s.Package)
	if err != nil {
		return nil, err
	}
	bundle, err := fileCertificates(s.Bundle)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(known) == 0 {
		maps.Copy(known, bundle)
	}
	extra := bundle
	for _, f := range s.Files {
		more, err := fileCertificates(f)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The certificate file %s cannot be read. Mend it, or change the configuration.", f)
		}
		if len(more) == 0 {
			return nil, fault.New(fault.Invalid, "The certificate file %s has no certificate in PEM form.", f)
		}
		maps.Copy(extra, more)
	}
	maps.DeleteFunc(extra, func(name string, _ Certificate) bool { _, ok := known[name]; return ok })
	for _, dir := range s.Local {
		local, err := folderCertificates(dir)
		if err != nil {
			return nil, err
		}
		maps.Copy(extra, local)
	}
	if len(extra) > maxCertificates {
		return nil, fault.New(fault.Invalid, "The host has more than %d extra certificates.", maxCertificates)
	}
	return slices.SortedFunc(maps.Values(extra), func(a, b Certificate) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// WriteCABundle writes the host's bundle with extra to folder/bundle.pem, for programs in sandboxes that read one
// file, and gives its path. It is written only when it changes. Without extra certificates there is none: "".
func WriteCABundle(folder string, s CASource, extra []Certificate) (path string, err error) {
	if len(extra) == 0 {
		return "", nil
	}
	text, err := readFileBounded(s.Bundle)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	have := certificates(text)
	for _, c := range extra {
		if _, ok := have[c.Name]; !ok {
			text = append(append(text, '\n'), c.PEM...)
		}
	}
	path = filepath.Join(folder, "bundle.pem")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make certificate folder: %w", err)
	}
	return path, replaceFile(path, text)
}

// replaceFile puts text in place of path in one step, readable by all: certificates are public.
func replaceFile(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// folderCertificates reads every .crt and .pem file at or below dir.
func folderCertificates(dir string) (map[string]Certificate, error) {
	found := map[string]Certificate{}
	if dir == "" {
		return found, nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".crt" && ext != ".pem" {
			return err
		}
		some, err := fileCertificates(path)
		if errors.Is(err, fs.ErrNotExist) { // a dangling link
			return nil
		}
		maps.Copy(found, some)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read certificates in %s: %w", dir, err)
	}
	return found, nil
}

func fileCertificates(path string) (map[string]Certificate, error) {
	text, err := readFileBounded(path)
	if err != nil {
		return map[string]Certificate{}, err
	}
	return certificates(text), nil
}

func readFileBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err == nil && len(text) > maxBundle {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

// certificates gives those in a PEM text that can be read, by name; anything else in it is passed over.
func certificates(text []byte) map[string]Certificate {
	found := map[string]Certificate{}
	for len(found) <= maxCertificates {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(c.Raw)
		name := hex.EncodeToString(sum[:8]) + ".crt"
		found[name] = Certificate{Name: name, PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})}
	}
	return found
}

// buildFiles gives what every build context gets of the certificates.
func buildFiles(list []Certificate) map[string][]byte {
	files := map[string][]byte{caFolder + "README": []byte(caReadme)}
	for _, c := range list {
		files[caFolder+c.Name] = c.PEM
	}
	return files
}

// printFiles names the content of files in a few characters.
func printFiles(files map[string][]byte) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256(files[name]))
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}
