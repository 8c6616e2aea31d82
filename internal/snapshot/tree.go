package snapshot

import (
	"cmp"
	"slices"
	"time"
)

// MaxLanes bounds the lines that are drawn beside a list of snapshots: from 0 to this.
const MaxLanes = 6

// branch is a snapshot with those that came after it.
type branch struct {
	Snapshot
	after  []*branch // the one that the line continues with first
	newest time.Time // of all of them
	head   bool      // the head is among them
}

// Placed is a snapshot with its place in a tree.
type Placed struct {
	Snapshot
	Lane  int       // from 0 to MaxLanes: how many lines pass at its left
	Above bool      // one that came after it is above it, on the same line
	Below bool      // the one before it is below it, on the same line
	From  *Snapshot // of one whose line ends at the line at its left: the one that it came after; nil for others
}

// Tree puts snapshots in the order of a list: each one below those that came after it, and the line to the head, or to the newest one,
// at the left; head is the id of the head, "" for none. Those that have failed are not part of it, and first. Those whose parents form a circle are
// left out.
func Tree(list []Snapshot, head string) []Placed {
	var out []Placed
	all := map[string]*branch{}
	for _, s := range list {
		if s.State == Failed {
			out = append(out, Placed{Snapshot: s})
			continue
		}
		if s.State == Making { // until it is known, it comes after the head
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
func (b *branch) list(out []Placed, lane int) []Placed {
	for i, a := range b.after {
		onto := lane
		if i > 0 {
			onto = min(lane+1, MaxLanes)
		}
		out = a.list(out, onto)
		last := &out[len(out)-1]
		if onto == lane {
			last.Below = true
		} else {
			last.From = &b.Snapshot
		}
	}
	return append(out, Placed{Snapshot: b.Snapshot, Lane: lane, Above: len(b.after) > 0})
}
