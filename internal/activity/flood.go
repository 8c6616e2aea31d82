package activity

import (
	"strings"
	"time"

	"sandboxd/internal/auth"
)

// What repeats is summed up.
const (
	floodWindow = 10 * time.Minute
	floodLimit  = 100    // entries of one sort within a window that are kept one by one; of a routine action with the same object, 1
	floodUser   = 300    // entries of one user within a window that are kept one by one
	floodOut    = 300    // the same of all callers together who are not signed in
	floodFrom   = 20     // and of one sort of those from one network
	floodSorts  = 10_000 // whose windows are open before users' actions are summed up whatever they are about; each takes less than 1 KiB
	floodSeen   = 20     // sums of one sort within a window that are told early, because a person reads
	floodEarly  = 3      // and after floodWait, so that what a person does now and then is told of soon; they count as floodUser's do
	floodWait   = time.Minute
)

// outside is the user of all callers who are not signed in.
const outside = "outside"

// sort is what entries have in common that are summed up.
type sort struct {
	user, token string
	via         Via
	action      Action
	sandbox     string
	outcome     Outcome
	object      string // "" for those of all objects
}

// window is what has come of one sort since it was opened.
type window struct {
	ends time.Time
	n    int       // kept one by one
	told int       // sums that were told early
	sum  Entry     // the last one, with how many there were that nothing tells of yet
	from time.Time // when the sum was begun
}

// flood sums up what repeats, in bounded memory.
type flood struct {
	windows map[sort]*window
	next    time.Time // when the first window may end
}

func newFlood() flood { return flood{windows: map[sort]*window{}} }

// take gives what is to be kept when e comes: e itself, or nothing as long as its window lasts, and sums that are due.
func (f *flood) take(e Entry) []Entry {
	user, everybody, most, limit := e.UserID, e.UserID, floodUser, floodLimit
	if user == "" && e.Via != Itself {
		user, everybody, most, limit = "from "+auth.Network(e.From), outside, floodOut, floodFrom
	}
	all, out := f.window(sort{user: everybody}, nil)
	if e.Via != Itself && (all.n >= most || len(f.windows) >= floodSorts) {
		w, out := f.window(sort{user: everybody, action: e.Action, outcome: e.Outcome}, out)
		f.add(w, e)
		return out
	}
	key := sort{user: user, token: e.Token, via: e.Via, action: e.Action, sandbox: e.SandboxID, outcome: e.Outcome}
	w, out := f.window(key, out)
	named := e.Action.Routine() && e.Object != ""
	if e.Action.Routine() && !named {
		limit = 1
	}
	if w.n >= limit {
		f.add(w, e)
		return out
	}
	w.n++
	if named {
		key.object = e.Object
		one, due := f.window(key, out)
		if out = due; one.n > 0 {
			f.add(one, e)
			return out
		}
		one.n++
	}
	all.n++
	return append(out, e)
}

// window gives the window of a sort, and appends sums that are due by that.
func (f *flood) window(key sort, out []Entry) (*window, []Entry) {
	now := time.Now()
	w := f.windows[key]
	if w != nil && now.Before(w.ends) {
		return w, out
	}
	if w != nil {
		out = w.take(out)
	} else if len(f.windows) >= 2*floodSorts {
		out = append(out, f.all()...) // all begin anew
	}
	w = &window{ends: now.Add(floodWindow)}
	f.windows[key] = w
	f.due(w.ends)
	return w, out
}

// due sees to it that over looks at the windows at that time.
func (f *flood) due(at time.Time) {
	if f.next.IsZero() || at.Before(f.next) {
		f.next = at
	}
}

// add adds an entry to a window's sum.
func (f *flood) add(w *window, e Entry) {
	w.add(e)
	if w.told < floodEarly {
		f.due(w.from.Add(floodWait))
	}
}

// add adds an entry to the sum, which names only what all have in common.
func (w *window) add(e Entry) {
	if sum := w.sum; sum.Count > 0 {
		if sum.Object != e.Object {
			e.Object = ""
		}
		if sum.SandboxID != e.SandboxID || sum.Sandbox != e.Sandbox {
			e.SandboxID, e.Sandbox, e.Owner, e.Object = "", "", "", ""
		}
		if sum.Token != e.Token {
			e.Token = ""
		}
		if sum.From != e.From {
			e.From = ""
		}
		e.Count += sum.Count
	}
	if w.sum.Count == 0 {
		w.from = time.Now()
	}
	w.sum = e
}

// take appends the window's sum, if it has one.
func (w *window) take(out []Entry) []Entry {
	if w.sum.Count == 0 {
		return out
	}
	out = append(out, w.sum)
	w.sum = Entry{}
	return out
}

// over gives the sums of windows that have ended.
func (f *flood) over(now time.Time) (out []Entry) {
	if f.next.IsZero() || now.Before(f.next) {
		return nil
	}
	f.next = time.Time{}
	for key, w := range f.windows {
		if !now.Before(w.ends) {
			out = w.take(out)
			delete(f.windows, key)
			continue
		}
		f.due(w.ends)
		if w.sum.Count == 0 || w.told >= floodEarly {
			continue
		}
		if soon := w.from.Add(floodWait); now.Before(soon) {
			f.due(soon)
		} else if f.early(key) {
			w.told++
			out = w.take(out)
		}
	}
	return out
}

// early reports whether a sum of a sort may be told before its window ends, and counts it. That of all that a user did beyond their
// limit always may.
func (f *flood) early(key sort) bool {
	if key.via == "" {
		return true
	}
	user, most := key.user, floodUser
	if strings.HasPrefix(user, "from ") {
		user, most = outside, floodOut
	}
	all := f.windows[sort{user: user}]
	if all == nil || all.n >= most {
		return false
	}
	all.n++
	return true
}

// all ends all windows.
func (f *flood) all() (out []Entry) {
	for _, w := range f.windows {
		out = w.take(out)
	}
	clear(f.windows)
	f.next = time.Time{}
	return out
}

// seen gives the sums so far, for a person who reads: of each sort not too often, so that reading makes no flood of its own.
func (f *flood) seen() (out []Entry) {
	for _, w := range f.windows {
		if w.sum.Count > 0 && w.told < floodSeen {
			w.told++
			out = w.take(out)
		}
	}
	return out
}
