package client

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Report hears of a running copy. Its members may be nil.
type Report struct {
	Bytes   func(n int)                   // so many more of files' contents
	Skipped func(name string, why string) // name may hold anything
}

func (r Report) bytes(n int) {
	if r.Bytes != nil {
		r.Bytes(n)
	}
}

func (r Report) skipped(name, why string) {
	if r.Skipped != nil {
		r.Skipped(name, why)
	}
}

// PackTree writes a tar of a path of this machine, under name: "" packs a folder's contents without the folder. Links are
// packed as links. Entries that are not files, folders or links are skipped.
func PackTree(w io.Writer, at, name string, report Report) error {
	p := &packer{to: tar.NewWriter(w), report: report, buf: make([]byte, copyBuffer)}
	st, err := os.Lstat(at)
	if err != nil {
		return local(err)
	}
	if name == "" {
		err = p.folder(at, "")
	} else {
		err = p.add(at, name, st)
	}
	if err != nil {
		return err
	}
	return p.to.Close()
}

// local says what went wrong with a file of this machine, whose name may be another's idea.
func local(err error) error {
	var known *fault.Error
	text := text.OneLine(err.Error(), maxDetail)
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.NotFound, "There is no such file: %s.", text)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(err, fault.Forbidden, "That is not allowed: %s.", text)
	}
	return fault.Wrap(err, fault.Unavailable, "That cannot be done: %s.", text)
}

type packer struct {
	to     *tar.Writer
	report Report
	buf    []byte
}

// add adds one thing and, of a folder, all that is in it.
func (p *packer) add(at, name string, st fs.FileInfo) error {
	switch st.Mode().Type() {
	case 0:
		return p.file(at, name)
	case fs.ModeDir:
		if err := p.head(name+"/", "", st); err != nil {
			return err
		}
		return p.folder(at, name)
	case fs.ModeSymlink:
		to, err := os.Readlink(at)
		if err != nil {
			return local(err)
		}
		return p.head(name, to, st)
	}
	p.report.skipped(name, "is neither a file nor a folder nor a link")
	return nil
}

func (p *packer) folder(at, name string) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return local(err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			continue
		}
		if err != nil {
			return local(err)
		}
		if err := p.add(filepath.Join(at, e.Name()), path.Join(name, e.Name()), st); err != nil {
			return err
		}
	}
	return nil
}

// head writes the head of an entry. Owners are this machine's, and mean nothing elsewhere.
func (p *packer) head(name, link string, st fs.FileInfo) error {
	h, err := tar.FileInfoHeader(st, link)
	if err != nil {
		return local(err)
	}
	h.Name, h.ModTime = name, st.ModTime().Truncate(time.Second)
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	if !utf8.ValidString(name) || !utf8.ValidString(link) {
		h.Format = tar.FormatGNU // which takes any bytes
	}
	if err := p.to.WriteHeader(h); err != nil {
		return fmt.Errorf("pack %q: %w", name, err)
	}
	return nil
}

// file adds a file as it is when it is opened.
func (p *packer) file(at, name string) error {
	f, err := os.Open(at)
	if err != nil {
		return local(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return local(err)
	}
	if err := p.head(name, "", st); err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{p.to}, &counted{io.LimitReader(f, st.Size()), p.report}, p.buf)
	if err == nil && n < st.Size() {
		err = fault.New(fault.Conflict, "%s became shorter while it was copied.", at)
	}
	return err
}

// counted reports the bytes read.
type counted struct {
	io.Reader
	report Report
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.report.bytes(n)
	return n, err
}

// CopyTree writes the tar that r is to w, with from in it renamed to to: "" for all that is in the archive, or
// right there. Names that do not fit are refused.
func CopyTree(w io.Writer, r io.Reader, from, to string, report Report) error {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	buf := make([]byte, copyBuffer)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return out.Close()
		}
		if err != nil {
			return damaged(err)
		}
		rest, err := below(h.Name, from)
		if err != nil {
			return err
		}
		if h.Name = path.Join(to, rest); h.Name == "" {
			continue // the folder that is there
		}
		if h.Typeflag == tar.TypeLink {
			rest, err := below(h.Linkname, from)
			if err != nil {
				return err
			}
			h.Linkname = path.Join(to, rest)
		}
		if h.Typeflag == tar.TypeDir {
			h.Name += "/"
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("pack %q: %w", h.Name, err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{out}, &counted{in, report}, buf); err != nil {
			return err
		}
	}
}

func damaged(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The archive that the server sent is damaged or cut off.")
}

// below gives the part of an archive's name that lies below from: "" for from itself. It refuses names that lead elsewhere.
func below(name, from string) (string, error) {
	clean := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if clean == "." {
		clean = ""
	}
	if from != "" {
		rest, ok := strings.CutPrefix(clean, from)
		if !ok || rest != "" && rest[0] != '/' {
			return "", fault.New(fault.Unavailable, "The server sent %q, which was not asked for.", name)
		}
		clean = strings.TrimPrefix(rest, "/")
	}
	if clean == "" {
		return "", nil
	}
	for part := range strings.SplitSeq(clean, "/") {
		if part == "" || part == "." || part == ".." || strings.IndexByte(part, 0) >= 0 {
			return "", fault.New(fault.Unavailable, "The server sent %q, which leads elsewhere.", name)
		}
	}
	return clean, nil
}
