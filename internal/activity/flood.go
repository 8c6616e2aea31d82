package activity

import "time"

// What repeats is summed up.
const (
	floodWindow = 10 * time.Minute
	floodLimit  = 100    // entries of one sort within a window that are kept one by one; of a routine action with the same object, 1
	floodUser   = 300    // entries of one user within a window that are kept one by one
	floodSorts  = 10_000 // whose windows are open before users' actions are summed up whatever they are about; each takes less than 1 KiB
	floodSeen   = 20     // sums of one sort within a window that are told early, because a person reads
)

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
	n    int   // kept one by one
	told int   // sums that were told early
	sum  Entry // the last one, with how many there were that nothing tells of yet
}

// flood sums up what repeats, in bounded memory.
type flood struct {
	windows map[sort]*window
	next    time.Time // when the first window may end
}

func newFlood() flood { return flood{windows: map[sort]*window{}} }

// take gives what is to be kept when e comes: e itself, or nothing as long as its window lasts, and sums that are due.
func (f *flood) take(e Entry) []Entry {
	user := e.UserID
	if user == "" {
		user = "from " + e.From // so that one who tries to sign in hides no other
	}
	all, out := f.window(sort{user: user}, nil)
	if e.Via != Itself && (all.n >= floodUser || len(f.windows) >= floodSorts) {
		all, out = f.window(sort{user: e.UserID, action: e.Action, outcome: e.Outcome}, out)
		all.add(e)
		return out
	}
	key := sort{user: user, token: e.Token, via: e.Via, action: e.Action, sandbox: e.SandboxID, outcome: e.Outcome}
	w, out := f.window(key, out)
	limit, named := floodLimit, e.Action.Routine() && e.Object != ""
	if e.Action.Routine() && !named {
		limit = 1
	}
	if w.n >= limit {
		w.add(e)
		return out
	}
	w.n++
	if named {
		key.object = e.Object
		one, due := f.window(key, out)
		if out = due; one.n > 0 {
			one.add(e)
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
	if f.next.IsZero() || w.ends.Before(f.next) {
		f.next = w.ends
	}
	return w, out
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
		} else if f.next.IsZero() || w.ends.Before(f.next) {
			f.next = w.ends
		}
	}
	return out
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
