package files

import (
	"bufio"
	"context"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Of a pack's goroutines one goes through the folders, some read files ahead, and one writes the archive, all in one order.
const (
	packReaders = 2
	packAhead   = 64        // batches that wait to be written
	packBuffer  = 256 << 10 // of the archive
	batchFiles  = 16
	batchBytes  = 128 << 10 // of small files in one batch
	smallFile   = 32 << 10  // larger ones are read when they are written
)

// pack answers with a tar of a folder, or of some names in it, which must be there. Special files are left out,
// and so are files that the user may not read.
func (q *ask) pack() error {
	base, err := q.path("path")
	if err != nil {
		return err
	}
	names := q.v["name"]
	for _, name := range names {
		if wire.CheckFileName(name) != nil {
			return problem(wire.CodeInvalid, "A selection consists of names in the folder.")
		}
	}
	ctx, cancel := context.WithCancel(q.Context())
	defer cancel()
	p := &packing{ctx: ctx, tree: q.tree, todo: make(chan *batch, packAhead), order: make(chan *batch, packAhead)}
	var view viewer
	err = q.tree.act(ctx, func(a *actor) error {
		view = a.viewer()
		return a.packable(base, names)
	})
	if err != nil {
		return about(base, err)
	}
	if err := q.reply.bare(nil); err != nil {
		return err
	}
	var workers sync.WaitGroup
	defer p.drain(&workers)
	defer cancel()
	workers.Go(func() { p.find(base, names) })
	for range packReaders {
		workers.Go(p.read)
	}
	out := bufio.NewWriterSize(q.reply.w, packBuffer)
	if err := p.write(out, view); err != nil {
		panic(http.ErrAbortHandler) // there is no other way to say it in the middle of an archive
	}
	return nil
}

// packable looks whether there is something to pack.
func (a *actor) packable(base string, names []string) error {
	w, err := a.openIn(base, false)
	if err != nil {
		return err
	}
	defer w.close()
	for _, name := range names {
		var st unix.Stat_t
		err := w.checkTop(name)
		if err == nil {
			err = lstatAt(w.fd(), name, &st)
		}
		if err != nil {
			return about(name, err)
		}
	}
	fd, err := openFolder(w.fd(), "")
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// packing is a tree on its way into an archive.
type packing struct {
	ctx   context.Context
	tree  *Tree
	todo  chan *batch // to be read
	order chan *batch // the same, to be written
	now   *batch      // being filled
	err   error       // of find; to be seen when order is closed
}

// folderFD is an open folder, closed after its last use.
type folderFD struct {
	fd   int
	mu   sync.Mutex
	uses int
}

func (f *folderFD) use(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uses += n; f.uses == 0 {
		unix.Close(f.fd)
	}
}

// packed is one thing that is packed.
type packed struct {
	name   string // in its folder
	as     string // in the archive
	file   bool   // else a folder or a link, which have been looked at
	st     unix.Stat_t
	target string // of a link
	small  []byte // its content, unless it is large
	gone   bool   // or not to be read: left out
}

// batch is some things of one folder.
type batch struct {
	folder *folderFD
	things []packed
	room   *[batchBytes]byte // for contents
	used   int
	ready  chan struct{} // closed when they have been read
}

// find goes through the folders. It holds no thread while it waits for the reader of the archive.
func (p *packing) find(base string, names []string) {
	defer close(p.order)
	defer close(p.todo)
	defer p.drop()
	var w *walk
	top := &folderFD{uses: 1}
	p.err = p.act(func(a *actor) (err error) {
		if w, err = a.openIn(base, false); err != nil {
			return err
		}
		if top.fd, err = openFolder(w.fd(), ""); err != nil {
			w.close()
		}
		return err
	})
	if p.err != nil {
		return
	}
	defer w.close()
	defer top.use(-1)
	from := len(w.levels)
	if len(names) == 0 {
		p.err = p.folder(w, top, "", from)
	}
	for _, name := range names {
		if p.err == nil {
			p.err = p.thing(w, top, "", from, packed{name: name})
		}
	}
	if p.err == nil {
		p.err = p.send()
	}
}

func (p *packing) act(f func(*actor) error) error { return p.tree.act(p.ctx, f) }

// folder packs the entries of the folder where w is, open as folder.
func (p *packing) folder(w *walk, folder *folderFD, below string, from int) error {
	for {
		var things []packed
		err := p.act(func(a *actor) error {
			return a.someNames(folder.fd, func(d dirent) error {
				things = append(things, packed{name: string(d.name), file: d.kind == unix.DT_REG})
				return nil
			})
		})
		if err != nil || len(things) == 0 {
			return err
		}
		for _, x := range things {
			if err := p.thing(w, folder, below, from, x); err != nil {
				return err
			}
		}
	}
}

// thing packs one name, a folder with its entries.
func (p *packing) thing(w *walk, folder *folderFD, below string, from int, x packed) error {
	if w.checkTop(x.name) != nil {
		return nil
	}
	x.as = below + x.name
	if x.file {
		return p.add(folder, x)
	}
	depth := len(w.levels)
	var inner *folderFD
	err := p.act(func(*actor) error {
		inner = x.look(w, folder.fd, from)
		return nil
	})
	if err == nil && !x.gone {
		err = p.add(folder, x)
	}
	if inner == nil {
		return err
	}
	defer w.cut(depth)
	defer inner.use(-1)
	if err != nil {
		return err
	}
	return p.folder(w, inner, x.as, from)
}

// look sees what x is. A folder that may be entered is gone into and opened.
func (x *packed) look(w *walk, folder, from int) (inner *folderFD) {
	if lstatAt(folder, x.name, &x.st) != nil {
		x.gone = true
		return nil
	}
	switch {
	case isFile(&x.st):
		x.file = true
	case isLink(&x.st):
		var err error
		x.target, err = readLinkAt(folder, x.name)
		x.gone = err != nil
	case !isFolder(&x.st):
		x.gone = true
	default:
		x.as += "/"
		depth := len(w.levels)
		if w.deeper(x.name, from) != nil {
			return nil
		}
		fd, err := openFolder(w.fd(), "")
		if err != nil {
			w.cut(depth)
			return nil
		}
		return &folderFD{fd: fd, uses: 1}
	}
	return nil
}

// add adds a thing to the batch, which is sent when it is full or of another folder.
func (p *packing) add(folder *folderFD, x packed) error {
	if p.now != nil && (p.now.folder != folder || len(p.now.things) == batchFiles) {
		if err := p.send(); err != nil {
			return err
		}
	}
	if p.now == nil {
		folder.use(1)
		p.now = &batch{folder: folder, things: make([]packed, 0, batchFiles), ready: make(chan struct{})}
	}
	p.now.things = append(p.now.things, x)
	return nil
}

// send passes the batch on. Its place in the order is taken first.
func (p *packing) send() error {
	if p.now == nil {
		return nil
	}
	select {
	case p.order <- p.now:
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
	b := p.now
	p.now = nil
	select {
	case p.todo <- b:
	case <-p.ctx.Done():
		close(b.ready) // drain releases its folder
		return context.Cause(p.ctx)
	}
	return nil
}

// drop gives up a batch that was not sent.
func (p *packing) drop() {
	if p.now != nil {
		p.now.folder.use(-1)
		p.now = nil
	}
}

// drain waits for all workers and releases the batches that were not written.
func (p *packing) drain(workers *sync.WaitGroup) {
	for b := range p.order {
		<-b.ready
		b.end()
	}
	workers.Wait()
}

// end releases a batch.
func (b *batch) end() {
	if b.room != nil {
		batchRooms.Put(b.room)
		b.room = nil
	}
	b.folder.use(-1)
}
