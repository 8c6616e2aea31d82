package archive

import (
	"archive/tar"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// attribute is an extended attribute, an access list among them.
type attribute struct{ name, value string }

// foreignAttributes are those that belong to the host: it labels and signs files by itself.
var foreignAttributes = []string{"security.selinux", "security.ima", "security.evm", "security.apparmor"}

// escape lets names be keys of records, as GNU tar does it.
var (
	escape   = strings.NewReplacer("%", "%25", "=", "%3D")
	unescape = strings.NewReplacer("%25", "%", "%3D", "=")
)

// note writes it into a header.
func (a attribute) note(h *tar.Header) { note(h, recordXattr+escape.Replace(a.name), a.value) }

// noted gives the attributes that a header has, in the order of their records. What cannot be read is told to lost. Of what libarchive
// writes in two ways the one is taken that does not spoil names.
func noted(h *tar.Header, lost func(reason string)) (list []attribute) {
	plain := true
	keys := slices.Sorted(maps.Keys(h.PAXRecords))
	for _, key := range keys {
		name, ok := strings.CutPrefix(key, recordEscaped)
		if !ok {
			continue
		}
		plain = false
		name, badName := url.PathUnescape(name)
		b, badValue := base64.RawStdEncoding.DecodeString(strings.TrimRight(h.PAXRecords[key], "="))
		if badName != nil || badValue != nil {
			lost("has an attribute that cannot be read")
			continue
		}
		list = append(list, attribute{name, string(b)})
	}
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, recordXattr); ok && plain {
			list = append(list, attribute{unescape.Replace(name), h.PAXRecords[key]})
		} else if strings.HasPrefix(key, recordListPart) && h.PAXRecords[recordXattr+"system.posix_acl_"+strings.TrimPrefix(key, recordListPart)] == "" {
			lost("has an access list as text, which is not read")
		}
	}
	return list
}

// attributesOf gives those of an open file.
func attributesOf(fd int) ([]attribute, error) {
	return attributes(
		func(b []byte) (int, error) { return unix.Flistxattr(fd, b) },
		func(name string, b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
}

// attributesAt gives those of what has that name in a folder, which is not followed.
func attributesAt(dir int, name string) ([]attribute, error) {
	path := pathAt(dir, name)
	return attributes(
		func(b []byte) (int, error) { return unix.Llistxattr(path, b) },
		func(attr string, b []byte) (int, error) { return unix.Lgetxattr(path, attr, b) })
}

// pathAt is a path to what has that name in a folder.
func pathAt(dir int, name string) string { return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name }

func attributes(list func([]byte) (int, error), get func(string, []byte) (int, error)) (out []attribute, err error) {
	names, err := grow(list)
	if err != nil || len(names) == 0 {
		return nil, none(err)
	}
	for _, name := range slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00")) {
		if slices.Contains(foreignAttributes, name) {
			continue
		}
		value, err := grow(func(b []byte) (int, error) { return get(name, b) })
		if err == unix.ENODATA { // trusted ones are listed to those who may not read them, by some kernels
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, attribute{name, string(value)})
	}
	return out, nil
}

// none makes it no error that a file system has no attributes.
func none(err error) error {
	if err == unix.EOPNOTSUPP {
		return nil
	}
	return err
}

// grow calls f with as much room as it needs.
func grow(f func([]byte) (int, error)) ([]byte, error) {
	var small [512]byte
	n, err := f(small[:])
	if err != unix.ERANGE {
		return slices.Clone(small[:max(n, 0)]), err
	}
	b := make([]byte, 64<<10) // the kernel's own bound
	n, err = f(b)
	return b[:max(n, 0)], err
}
