package chat

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

// Bounds of what is kept in memory of one conversation.
const (
	ringChanges = 512     // that a reader who comes back is told of without reading the store
	ringBytes   = 1 << 20 // of all of them
	maxUnstored = 1 << 20 // bytes that are told faster than they are stored, before an agent has to wait
	readerLag   = 256     // changes that a reader may fall behind
	applyLimit  = 15 * time.Second
)

// live is a conversation that is read or worked on now. Two locks: order is held while a change is stored and told, so that changes are in
// one order for all; mu guards what is in memory, and is never held during I/O. order is taken first.
type live struct {
	store Store
	id    string
	bus   *event.Bus[Change]

	order sync.Mutex
	// starting is held while a person's run begins, so that two requests of one ID are one run; taken before order.
	starting sync.Mutex
	whole    sync.Mutex // held while what belongs together is told, see Turn.Together; taken after order and before Turn.mu and mu

	mu        sync.Mutex
	c         Conversation // with pending
	queue     []Queued     // with pending
	pending   Change       // Rev is 0; what is not stored yet
	unstored  int          // bytes of pending, at most
	ring      []Change
	weight    int // bytes of ring
	turn      *Turn
	last      string // ID of the last message that was taken up
	restoring bool   // files are being restored: no turn begins
	gone      bool
	runs      map[int64]*running // under way, by the numbers of their items
}

func openLive(ctx context.Context, s Store, id string) (*live, error) {
	c, err := s.Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	queue, err := s.Queue(ctx, id)
	if err != nil {
		return nil, err
	}
	l := &live{store: s, id: id, c: c, queue: queue, bus: event.NewBus[Change](readerLag)}
	turn, err := s.Items(ctx, id, ItemQuery{Turn: max(c.Turn, 1)})
	if err != nil {
		return nil, err
	}
	for _, it := range turn {
		if it.Kind == Message {
			m, err := messageOf(it)
			if err != nil {
				return nil, err
			}
			l.last = m.ID
		}
	}
	return l, nil
}

// change alters what is in memory. commit stores it.
func (l *live) change(f func(*live)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// header marks the conversation as changed; l.mu is held.
func (l *live) header(now time.Time) *Conversation {
	l.c.Changed = now
	l.pending.Conversation = &l.c
	return &l.c
}

// put makes an item part of the next change; l.mu is held.
func (l *live) put(it Item) {
	l.unstored += len(it.Text) + len(it.Output) + len(it.Data)
	for i := range l.pending.Items {
		if l.pending.Items[i].N == it.N {
			l.pending.Items[i] = it
			return
		}
	}
	l.pending.Items = append(l.pending.Items, it)
	l.pending.Appends = slices.DeleteFunc(l.pending.Appends, func(a Append) bool { return a.N == it.N }) // the item has them
}

// extend makes the end of an item's text part of the next change; l.mu is held. whole is all of the text, at is how much of it there was
// before. Nothing is copied: an agent that writes byte by byte costs no more than one that does not.
func (l *live) extend(n int64, field Field, at int, whole string) {
	l.unstored += len(whole) - at
	for i := range l.pending.Items {
		if it := &l.pending.Items[i]; it.N == n {
			*it.field(field) = whole
			return
		}
	}
	for i := range l.pending.Appends {
		if a := &l.pending.Appends[i]; a.N == n && a.Field == field {
			a.Text = whole[a.At:]
			return
		}
	}
	l.pending.Appends = append(l.pending.Appends, Append{N: n, Field: field, At: at, Text: whole[at:]})
}

// join makes text that follows what is pending part of the next change; l.mu is held.
func (l *live) join(later Append) {
	for i := range l.pending.Items {
		if it := &l.pending.Items[i]; it.N == later.N {
			*it.field(later.Field) += later.Text
			return
		}
	}
	for i := range l.pending.Appends {
		if a := &l.pending.Appends[i]; a.N == later.N && a.Field == later.Field {
			a.Text += later.Text
			return
		}
	}
	l.pending.Appends = append(l.pending.Appends, later)
}

func (it *Item) field(f Field) *string {
	if f == InOutput {
		return &it.Output
	}
	return &it.Text
}

// behind reports whether so much is not stored yet that those who tell more have to wait.
func (l *live) behind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unstored > maxUnstored
}

// vanish notes that the conversation is deleted: its turn ends, and its readers are told; l.mu is held.
func (l *live) vanish() {
	if l.gone {
		return
	}
	l.gone = true
	if l.turn != nil {
		l.turn.cancel(errDeleted)
	}
	l.endRuns(errDeleted)
	l.bus.Publish(Change{Rev: l.c.Rev + 1, Gone: true})
}

func (l *live) isGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// setQueue replaces the queue; l.mu is held.
func (l *live) setQueue(q []Queued) {
	l.queue = q
	l.pending.Queue = &l.queue
}

// commit stores all that has changed until now, and tells the readers. When it cannot be stored it stays for the next commit.
func (l *live) commit(ctx context.Context) error {
	l.order.Lock()
	defer l.order.Unlock()
	l.whole.Lock()
	l.mu.Lock()
	next := l.take()
	l.mu.Unlock()
	l.whole.Unlock()
	if next.empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyLimit) // what is said is kept, also when its sender hangs up
	defer cancel()
	err := l.store.Apply(ctx, l.id, next)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.giveBack(next)
		if fault.Is(err, fault.NotFound) {
			l.vanish()
		}
		return err
	}
	next.Memory = nil
	l.remember(next)
	l.bus.Publish(next)
	return nil
}

// take gives what is pending as the next change; l.mu is held.
func (l *live) take() Change {
	next := l.pending
	l.pending, l.unstored = Change{}, 0
	if next.empty() {
		return next
	}
	l.c.Rev++
	next.Rev = l.c.Rev
	for i := range next.Items {
		next.Items[i].Rev = next.Rev
	}
	if next.Conversation != nil {
		c := l.c
		next.Conversation = &c
	}
	if next.Queue != nil {
		q := slices.Clone(l.queue)
		next.Queue = &q
	}
	return next
}

// giveBack makes a change that was not stored part of the next one; l.mu is held.
func (l *live) giveBack(old Change) {
	later := l.pending
	l.c.Rev--
	old.Rev = 0
	l.pending = old
	for _, it := range later.Items {
		l.put(it)
	}
	for _, a := range later.Appends {
		l.join(a)
	}
	l.unstored += old.weight()
	if old.Conversation != nil || later.Conversation != nil {
		l.pending.Conversation = &l.c
	}
	if old.Queue != nil || later.Queue != nil {
		l.pending.Queue = &l.queue
	}
	if later.Memory != nil {
		l.pending.Memory = later.Memory
	}
}

// remember keeps a change for readers that come back; l.mu is held.
func (l *live) remember(c Change) {
	l.ring = append(l.ring, c)
	l.weight += c.weight()
	for len(l.ring) > ringChanges || l.weight > ringBytes && len(l.ring) > 1 {
		l.weight -= l.ring[0].weight()
		l.ring = slices.Delete(l.ring, 0, 1)
	}
}

// missed gives the changes after one, if they are all in memory; l.mu is held.
func (l *live) missed(after int64) ([]Change, bool) {
	if after == l.c.Rev {
		return nil, true
	}
	if len(l.ring) == 0 || after > l.c.Rev || l.ring[0].Rev > after+1 {
		return nil, false
	}
	first := slices.IndexFunc(l.ring, func(c Change) bool { return c.Rev == after+1 })
	return slices.Clone(l.ring[first:]), true
}

func (c *Change) empty() bool {
	return c.Conversation == nil && len(c.Items) == 0 && len(c.Appends) == 0 && c.Queue == nil && c.Memory == nil
}

// weight is about how many bytes a change takes.
func (c *Change) weight() int {
	n := 256
	for i := range c.Items {
		n += c.Items[i].Size()
	}
	for i := range c.Appends {
		n += len(c.Appends[i].Text) + 64
	}
	if c.Conversation != nil {
		n += c.Conversation.Settings.weight()
	}
	if c.Queue != nil {
		for _, q := range *c.Queue {
			n += len(q.Text) + 128
			for _, f := range q.Files {
				n += len(f.Data) + 128
			}
		}
	}
	return n
}
