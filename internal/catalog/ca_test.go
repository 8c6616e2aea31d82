package catalog

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
)

// authority makes a certificate authority and gives it as PEM.
func authority(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// host makes a host with the distribution's certificates one and two, and the owner's three.
func host(t *testing.T) (s CASource, pems map[string]string) {
	t.Helper()
	pems = map[string]string{}
	for _, name := range []string{"one", "two", "three", "four"} {
		pems[name] = authority(t, name)
	}
	dir := tree(t, map[string]string{
		"package/mozilla/one.crt": pems["one"], "package/mozilla/two.crt": pems["two"],
		"local/three.crt": pems["three"], "local/readme.txt": pems["four"], "local/bad.crt": "no certificate",
		"bundle.pem": pems["one"] + pems["two"] + pems["three"],
	})
	return CASource{Package: filepath.Join(dir, "package"), Local: []string{filepath.Join(dir, "local"), filepath.Join(dir, "missing")}, Bundle: filepath.Join(dir, "bundle.pem")}, pems
}

func names(t *testing.T, list []Certificate) []string {
	t.Helper()
	var subjects []string
	for _, c := range list {
		block, _ := pem.Decode(c.PEM)
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, parsed.Subject.CommonName)
	}
	slices.Sort(subjects)
	return subjects
}

func TestExtraCA(t *testing.T) {
	s, pems := host(t)
	dir := filepath.Dir(s.Bundle)
	write(t, filepath.Join(dir, "company.pem"), "# ours\n"+pems["two"]+pems["four"])
	named := func(s CASource, files ...string) CASource { s.Files = files; return s }
	bundleOnly, noPackage, nothing := s, s, CASource{Package: dir + "/x", Bundle: dir + "/y"}
	bundleOnly.Local, noPackage.Package = nil, filepath.Join(dir, "missing")
	for name, c := range map[string]struct {
		source CASource
		want   []string
	}{
		"the owner's folder":                       {s, []string{"three"}},
		"only in the bundle":                       {bundleOnly, []string{"three"}},
		"a named file adds what is not known":      {named(s, filepath.Join(dir, "company.pem")), []string{"four", "three"}},
		"without a package the bundle is known":    {named(noPackage, filepath.Join(dir, "company.pem")), []string{"four", "three"}},
		"a host without any":                       {nothing, nil},
		"a host without any, but with a named one": {named(nothing, filepath.Join(dir, "company.pem")), []string{"four", "two"}},
	} {
		got, err := ExtraCA(c.source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, names(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestExtraCA_NamedFileMustHoldCertificates(t *testing.T) {
	s, _ := host(t)
	for _, file := range []string{"/missing.pem", filepath.Join(s.Local[0], "bad.crt"), s.Local[0]} {
		s.Files = []string{file}
		if _, err := ExtraCA(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s gives %v, want Invalid", file, err)
		}
	}
}

func TestWriteCABundle_HasAllAndIsWrittenOnlyWhenItChanges(t *testing.T) {
	s, pems := host(t)
	write(t, s.Bundle, pems["one"]+pems["two"])
	extra, err := ExtraCA(s)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "ca")
	path, err := WriteCABundle(folder, s, extra)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || len(certificates(text)) != 3 || !bytes.Contains(text, []byte(pems["three"])) {
		t.Errorf("the bundle has %d certificates, error %v", len(certificates(text)), err)
	}
	first, _ := os.Stat(path)
	if _, err := WriteCABundle(folder, s, extra); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.Stat(path); !os.SameFile(first, second) {
		t.Error("the same bundle was written twice")
	}
	if first.Mode() != 0o644 {
		t.Errorf("mode is %v", first.Mode())
	}
	if path, err := WriteCABundle(folder, s, nil); path != "" || err != nil {
		t.Errorf("without extra certificates: %q, %v", path, err)
	}
}

func TestHostCA_LeavesOutWhatIsReadAnyway(t *testing.T) {
	if s := HostCA("", "/etc/ssl/certs/../certs/ca-certificates.crt", "/own.pem"); !slices.Equal(s.Files, []string{"/own.pem"}) {
		t.Errorf("files are %v", s.Files)
	}
}
