package sshd

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"sandboxd/internal/files"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

const (
	// window is how much of a file is kept of what has been read: a client asks for many pieces at once, which come in any order.
	window = 2 << 20
	// leastWindow is kept of a small file, and more than the library asks for at once.
	leastWindow = 64 << 10
	// quietLimit is for how long a file that nobody reads stays open in the sandbox, which is used as long as it is.
	quietLimit = 5 * time.Second
)

// Fileread implements sftp.FileReader.
func (f *folder) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	d, err := f.download(r.Filepath)
	if err != nil {
		return nil, told(err)
	}
	return d, nil
}

// download is a file that is being read. It is one stream from the sandbox as long as it is read in order, or nearly. When that
// has ended, or is not read for a while, it is closed, and opened again for the next piece: by its path, which may be another
// file's by then. No piece comes from that.
type download struct {
	*folder
	path  string
	leave func()
	quiet *time.Timer

	mu      sync.Mutex
	content *files.Content // nil when nothing is open
	file    string         // which file it is, once that is known
	ring    []byte         // what was read last, each byte at its place modulo the ring's length; nil when there is no memory for it
	from    int64          // where what ring has begins
	stands  int64          // where it ends, and content goes on
	ended   bool           // there is nothing behind stands
	asked   time.Time      // when it was read last
}

func (f *folder) download(path string) (*download, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	d := &download{folder: f, path: path, leave: leave, asked: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.seek(0); err != nil { // the answer to opening a file says whether it can be read
		d.shut()
		leave()
		return nil, err
	}
	d.quiet = time.AfterFunc(quietLimit, d.rest)
	return d, nil
}

// seek opens the stream anew.
func (d *download) seek(at int64) error {
	d.end()
	files, err := d.files()
	if err != nil {
		return err
	}
	content, err := files.Read(d.ctx, d.handle, d.path, at, -1)
	if errors.Is(err, link.ErrIsFolder) {
		return refusal("that is a folder")
	}
	if err != nil {
		return err
	}
	file := wire.FileOf(content.Entry.ETag)
	if d.file != "" && d.file != file {
		content.Close()
		return refusal("the file was replaced by another one while it was read")
	}
	d.file = file
	d.content, d.from, d.stands, d.ended = content, at, at, false
	if want := int(min(max(content.Size, leastWindow), window)); len(d.ring) < want {
		d.forget()
		if d.memory.take(kept, want) {
			d.ring = make([]byte, want)
		}
	}
	return nil
}

// end closes what is open in the sandbox.
func (d *download) end() {
	if d.content != nil {
		d.content.Close()
		d.content = nil
	}
}

func (d *download) forget() {
	d.memory.give(kept, len(d.ring))
	d.ring = nil
}

// shut closes what is open, and forgets what was read.
func (d *download) shut() {
	d.end()
	d.forget()
	d.from, d.stands, d.ended = 0, 0, false
}

// rest shuts what nobody has read for a while.
func (d *download) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) >= quietLimit {
		d.shut()
	}
}

// ReadAt implements io.ReaderAt.
func (d *download) ReadAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at < 0 {
		return 0, sftp.ErrSSHFxBadMessage
	}
	defer func() { // the time that reading takes is not quiet
		d.asked = time.Now()
		d.quiet.Reset(quietLimit)
	}()
	if !d.reaches(at) {
		if err := d.seek(at); err != nil {
			return 0, told(err)
		}
	}
	n, err := d.read(p, at)
	if err != nil {
		d.shut() // the next piece tries anew
		return 0, told(err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// reaches says whether what is at a place can be had without opening the file anew.
func (d *download) reaches(at int64) bool {
	switch {
	case d.content == nil && !d.ended, at < d.from:
		return false
	case d.ended:
		return true
	case d.ring == nil:
		return at == d.stands
	}
	return at <= d.stands+window
}

// read gives what there is, up to the file's end.
func (d *download) read(p []byte, at int64) (int, error) {
	if d.ring == nil {
		n, err := d.more(p)
		d.from = d.stands
		return n, err
	}
	for to := at + int64(len(p)); d.stands < to && !d.ended; {
		place := int(d.stands % int64(len(d.ring)))
		room := min(int64(len(d.ring)-place), to-d.stands, pieceSize)
		if _, err := d.more(d.ring[place : place+int(room)]); err != nil {
			return 0, err
		}
		d.from = max(d.from, d.stands-int64(len(d.ring)))
	}
	p = p[:max(min(int64(len(p)), d.stands-at), 0)]
	for n := 0; n < len(p); {
		n += copy(p[n:], d.ring[(at+int64(n))%int64(len(d.ring)):])
	}
	return len(p), nil
}

// more fills p from the stream, or as far as that goes.
func (d *download) more(p []byte) (int, error) {
	if d.ended {
		return 0, nil
	}
	n, err := io.ReadFull(d.content, p)
	d.stands += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		d.ended = true
		d.end()
		return n, nil
	}
	return n, err
}

// Close implements io.Closer.
func (d *download) Close() error {
	d.quiet.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut()
	d.leave()
	return nil
}
