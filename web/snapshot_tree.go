package web

import (
	"cmp"
	"slices"
	"time"

	"sandboxd/internal/snapshot"
	"sandboxd/views"
)

// mostLanes bounds the lines that are drawn beside a list of snapshots.
const mostLanes = 6

// branch is a snapshot with those that came after it.
type branch struct {
	snapshot.Snapshot
	after  []*branch // the one that the line continues with first
	newest time.Time // of all of them
	head   bool      // the head is among them
}

// railed is a snapshot with its lines.
type railed struct {
	snapshot.Snapshot
	rail   views.Rail
	parent *snapshot.Snapshot // of one that joins another line
}

// tree puts snapshots in the order of a list: each one below those that came after it, and the line to the head, or to the newest one,
// at the left. Those that have failed are not part of it, and first.
func tree(list []snapshot.Snapshot, head string) []railed {
	var out []railed
	all := map[string]*branch{}
	for _, s := range list {
		if s.State == snapshot.Failed {
			out = append(out, railed{Snapshot: s})
			continue
		}
		if s.State == snapshot.Making { // until it is known, it comes after the head
			s.Parent = cmp.Or(s.Parent, head)
		}
		all[s.ID] = &branch{Snapshot: s, newest: s.Created, head: s.ID == head}
	}
	var roots []*branch
	for _, s := range list {
		b := all[s.ID]
		if b == nil {
			continue
		}
		if parent := all[b.Parent]; parent != nil && parent != b {
			parent.after = append(parent.after, b)
		} else {
			roots = append(roots, b)
		}
	}
	for _, b := range roots {
		b.settle()
	}
	slices.SortStableFunc(roots, before)
	for _, b := range roots {
		out = b.list(out, 0)
	}
	return out
}

// settle finds what is known of a snapshot by those after it, and puts them in order.
func (b *branch) settle() {
	for _, a := range b.after {
		a.settle()
		b.head = b.head || a.head
		if a.newest.After(b.newest) {
			b.newest = a.newest
		}
	}
	slices.SortStableFunc(b.after, before)
}

// before orders branches: the one with the head, then the newest ones.
func before(a, b *branch) int {
	if a.head != b.head {
		if a.head {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.newest.UnixNano(), a.newest.UnixNano())
}

// list adds a snapshot below all those after it.
func (b *branch) list(out []railed, lane int) []railed {
	for i, a := range b.after {
		onto := lane
		if i > 0 {
			onto = min(lane+1, mostLanes)
		}
		out = a.list(out, onto)
		last := &out[len(out)-1]
		if onto == lane {
			last.rail.Below = true
		} else {
			last.rail.Joins, last.parent = true, &b.Snapshot
		}
	}
	return append(out, railed{Snapshot: b.Snapshot, rail: views.Rail{Lane: lane, Above: len(b.after) > 0}})
}
