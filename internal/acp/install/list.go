package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// maxList bounds the admin's file.
const maxList = 1 << 20

// list is what a file of agents says.
type list struct {
	Node   nodeVersions `json:"node"`
	Agents []Entry      `json:"agents"`
}

// nodeVersions are the versions of Node that are installed where the one of a sandbox is too old, by machine: they are packages of their own.
type nodeVersions struct {
	X64   string `json:"x64"`
	ARM64 string `json:"arm64"`
}

// stamp tells whether a file has changed.
type stamp struct {
	size int64
	at   time.Time
}

// look gives the stamp of a file, an empty one when there is none.
func look(path string) stamp {
	st, err := os.Stat(path)
	if err == nil {
		return stamp{st.Size(), st.ModTime()}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}
	}
	return stamp{size: -1} // reading says why
}

// readList reads and checks a list.
func readList(path string) (list, error) {
	text, err := readFile(path)
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err // members read it, who need not know where the server keeps its files
	}
	if err != nil {
		return list{}, fmt.Errorf("it cannot be read: %w", err)
	}
	if len(text) > maxList {
		return list{}, errors.New("the file is larger than 1 MiB")
	}
	return parse(text)
}

// readFile reads no more than shows that a file is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxList+1))
}

// parse reads and checks a list.
func parse(text []byte) (list, error) {
	var l list
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return list{}, onLine(text, d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return list{}, errors.New("something follows the list")
	}
	return l, l.check()
}

// onLine says where a mistake is.
func onLine(text []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n")), err)
}

// with gives a list in which what another one says comes first.
func (l list) with(own list) list {
	if own.Node.X64 != "" {
		l.Node.X64 = own.Node.X64
	}
	if own.Node.ARM64 != "" {
		l.Node.ARM64 = own.Node.ARM64
	}
	l.Agents = slices.Clone(l.Agents)
	for _, e := range own.Agents {
		if i := slices.IndexFunc(l.Agents, func(o Entry) bool { return o.ID == e.ID }); i >= 0 {
			l.Agents[i] = e
		} else {
			l.Agents = append(l.Agents, e)
		}
	}
	l.Agents = slices.DeleteFunc(l.Agents, func(e Entry) bool { return e.Off })
	return l
}
