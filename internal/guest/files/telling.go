package files

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// rowsAtOnce is how many rows are looked at by one of the two who look at a large folder.
const rowsAtOnce = 1000

// Bounds of a page in bytes, of its entries and of the paths that they have: links may say four thousand bytes each. A page
// ends behind the part in which one of the bounds is reached.
const (
	pageBytes = 3 << 20
	partBytes = 1 << 20 // of a part of it
)

// telling is a page on its way to sandboxd, in parts that any worker may look up.
type telling struct {
	walk    *walk
	view    viewer
	rows    []row
	taken   []atomic.Bool
	encoded []chan part // of the parts that are not looked at in turn
	below   int         // bytes of the folder's path
}

// part is some rows of a page, looked at.
type part struct {
	records []byte
	rows    int // that were looked at: fewer than it has when they are large
	size    int // of the records and the paths
}

// partRoom holds buffers for the records of parts: garbage makes the guest, which has little memory, collect all the time.
var partRoom = sync.Pool{New: func() any { return new(make([]byte, 0, rowsAtOnce*96)) }}

// tellAll sends the entries of rows, in the folder p where w is, and gives how many rows it has come to: not all of them
// when they are large. Entries that are gone meanwhile are left out.
func tellAll(w *walk, p string, rows []row, to *reply) (done int, err error) {
	n := (len(rows) + rowsAtOnce - 1) / rowsAtOnce
	t := &telling{walk: w, view: w.actor.viewer(), rows: rows, taken: make([]atomic.Bool, n), encoded: make([]chan part, n), below: len(p)}
	for i := range n {
		t.encoded[i] = make(chan part, 1)
	}
	var other sync.WaitGroup
	defer other.Wait()
	defer t.takeAll()
	if n > 1 {
		other.Go(t.help)
	}
	for i, size := 0, 0; i < n && size < pageBytes; i++ {
		one := t.get(i)
		err := to.records(one.records)
		partRoom.Put(&one.records)
		if err != nil {
			return done, err
		}
		done += one.rows
		size += one.size
		if one.rows < len(t.part(i)) {
			break
		}
	}
	return done, nil
}

// get gives a part. While the other one looks at it, it looks at the next ones, as far as they may be wanted.
func (t *telling) get(i int) part {
	for j := i; j < min(i+pageBytes/partBytes, len(t.taken)) && len(t.encoded[i]) == 0; j++ {
		if !t.taken[j].CompareAndSwap(false, true) {
			continue
		}
		one := t.encode(j)
		if j == i {
			return one
		}
		t.encoded[j] <- one
	}
	return <-t.encoded[i]
}

// part gives the rows of one.
func (t *telling) part(i int) []row {
	from := i * rowsAtOnce
	return t.rows[from:min(from+rowsAtOnce, len(t.rows))]
}

// takeAll leaves nothing for the other one.
func (t *telling) takeAll() {
	for i := range t.taken {
		t.taken[i].Store(true)
	}
}

// help looks at parts as well, if there is a seat for that right now.
func (t *telling) help() {
	tree := t.walk.actor.tree
	select {
	case tree.brief <- struct{}{}:
		defer func() { <-tree.brief }()
	default:
		return
	}
	t.walk.actor.user.become(func() error {
		for i := 1; i < len(t.taken); i++ {
			if t.taken[i].CompareAndSwap(false, true) {
				t.encoded[i] <- t.encode(i)
			}
		}
		return nil
	})
}

// encode looks at the rows of a part, as many as it may hold.
func (t *telling) encode(i int) part {
	rows := t.part(i)
	p := part{records: (*partRoom.Get().(*[]byte))[:0]}
	var payload []byte
	for _, r := range rows {
		if p.size >= partBytes {
			break
		}
		p.rows++
		e, err := t.view.entry(t.walk, r.name)
		if err == unix.ENOENT {
			continue
		}
		if err != nil { // a dead mount, say: one of them does not hide the others
			e = r.bare()
		}
		payload = wire.AppendEntry(payload[:0], &e)
		before := len(p.records)
		p.records = wire.AppendRecord(p.records, wire.RecordEntry, payload)
		p.size += len(p.records) - before + t.below
	}
	return p
}
