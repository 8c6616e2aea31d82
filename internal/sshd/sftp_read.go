package sshd

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/pkg/sftp"

	"sandboxd/internal/files"
	"sandboxd/internal/link"
)

// window is how much of a file is kept of what has been read: a client asks for many pieces at once, which come in any order.
const window = 2 << 20

// Fileread implements sftp.FileReader.
func (f *folder) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	d, err := f.download(r.Filepath)
	if err != nil {
		return nil, told(err)
	}
	return d, nil
}

// download is a file that is being read. It is one stream from the sandbox as long as it is read in order, or nearly.
type download struct {
	*folder
	path  string
	leave func()

	mu      sync.Mutex
	content *files.Content // nil when nothing is open
	from    int64          // where kept begins
	kept    []byte         // what was read last, up to where content stands
	ended   bool           // content has given all that there was
}

func (f *folder) download(path string) (*download, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	d := &download{folder: f, path: path, leave: leave}
	if err := d.seek(0); err != nil { // the answer to opening a file says whether it can be read
		leave()
		return nil, err
	}
	return d, nil
}

// seek opens the stream anew.
func (d *download) seek(at int64) error {
	d.shut()
	files, err := d.files()
	if err != nil {
		return err
	}
	d.content, err = files.Read(d.ctx, d.box.Name, d.path, at, -1)
	if errors.Is(err, link.ErrIsFolder) {
		return refusal("that is a folder")
	}
	if err != nil {
		return err
	}
	d.from, d.kept, d.ended = at, d.kept[:0], false
	return nil
}

func (d *download) shut() {
	if d.content != nil {
		d.content.Close()
		d.content = nil
	}
}

// ReadAt implements io.ReaderAt.
func (d *download) ReadAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at < 0 {
		return 0, sftp.ErrSSHFxBadMessage
	}
	if stands := d.from + int64(len(d.kept)); d.content == nil || at < d.from || at > stands+window {
		if err := d.seek(at); err != nil {
			return 0, told(err)
		}
	}
	if err := d.fill(at + int64(len(p))); err != nil {
		d.shut() // the next piece tries anew
		return 0, told(err)
	}
	if at >= d.from+int64(len(d.kept)) {
		return 0, io.EOF
	}
	n := copy(p, d.kept[at-d.from:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// fill reads the stream up to to, or to its end, and forgets what is far behind.
func (d *download) fill(to int64) error {
	for need := to - d.from - int64(len(d.kept)); need > 0 && !d.ended; need = to - d.from - int64(len(d.kept)) {
		if len(d.kept) > 2*window {
			drop := len(d.kept) - window
			d.kept, d.from = append(d.kept[:0], d.kept[drop:]...), d.from+int64(drop)
		}
		have := len(d.kept)
		room := min(int(need), window)
		d.kept = slices.Grow(d.kept, room)
		n, err := d.content.Read(d.kept[have : have+room])
		d.kept = d.kept[:have+n]
		if errors.Is(err, io.EOF) {
			d.ended = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements io.Closer.
func (d *download) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut()
	d.leave()
	return nil
}
