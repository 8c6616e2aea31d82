package files

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// rowsAtOnce is how many rows are looked at by one of the two who look at a large folder.
const rowsAtOnce = 1000

// telling is a page on its way to sandboxd, in parts that are looked at by whoever comes first.
type telling struct {
	walk    *walk
	view    viewer
	rows    []row
	taken   []atomic.Bool
	encoded []chan []byte // of the parts that the other one has taken
}

// tellAll sends the entries of rows, in the folder where w is. What has gone meanwhile is left out.
func tellAll(w *walk, rows []row, to *reply) error {
	n := (len(rows) + rowsAtOnce - 1) / rowsAtOnce
	t := &telling{walk: w, view: w.actor.viewer(), rows: rows, taken: make([]atomic.Bool, n), encoded: make([]chan []byte, n)}
	for i := range n {
		t.encoded[i] = make(chan []byte, 1)
	}
	var other sync.WaitGroup
	defer other.Wait()
	defer t.takeAll()
	if n > 1 {
		other.Go(t.help)
	}
	for i := range n {
		var b []byte
		if t.taken[i].CompareAndSwap(false, true) {
			b = t.encode(i)
		} else {
			b = <-t.encoded[i]
		}
		if err := to.records(b); err != nil {
			return err
		}
	}
	return nil
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

// encode looks at the rows of a part and gives them as records.
func (t *telling) encode(part int) []byte {
	from := part * rowsAtOnce
	rows := t.rows[from:min(from+rowsAtOnce, len(t.rows))]
	b := make([]byte, 0, len(rows)*96)
	var payload []byte
	for _, r := range rows {
		e, err := t.view.entry(t.walk, r.name)
		if err == unix.ENOENT {
			continue
		}
		if err != nil { // a dead mount, say: one of them does not hide the others
			e = r.bare()
		}
		payload = wire.AppendEntry(payload[:0], &e)
		b = wire.AppendRecord(b, wire.RecordEntry, payload)
	}
	return b
}
