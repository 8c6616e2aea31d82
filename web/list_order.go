package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// The store knows only the usual order of the list: newest first, in which it pages by itself. For any other, all sandboxes that match
// are read and ordered here, as some orders are by figures that no store has.

// ranked is a sandbox with what the list is ordered by.
type ranked struct {
	box   sandbox.Sandbox
	group string // heading of its group
	used  time.Time
	use   float64 // CPU or memory; -1 when that is not known
}

// listGroup is a group of the whole list.
type listGroup struct {
	title string
	size  int
}

// order sorts what matches as the list's query says, and keeps the page that it asks for. groups are those of all pages, in their
// order; none without grouping.
func (s *listHandlers) order(ctx context.Context, q listQuery, boxes []sandbox.Sandbox) (page []sandbox.Sandbox, groups []listGroup, err error) {
	all := make([]ranked, 0, len(boxes))
	names := newOwners(s.cfg.Accounts)
	for _, box := range boxes {
		one := ranked{box: box, used: s.lastUse(box), use: s.useNow(box, q.sort)}
		if one.group, err = s.groupOf(ctx, names, box, q.group); err != nil {
			return nil, nil, err
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Or(compareText(a.group, b.group), compareRanked(q.sort, a, b)) })
	if q.group != "" {
		groups = groupsOf(all)
	}
	at := min(q.page*pageRows, len(all))
	for _, one := range all[at:min(at+pageRows, len(all))] {
		page = append(page, one.box)
	}
	return page, groups, nil
}

// compareRanked compares within a group. Equal ones stay newest first.
func compareRanked(sort string, a, b ranked) int {
	switch sort {
	case "used":
		return b.used.Compare(a.used)
	case "name":
		return compareText(cmp.Or(a.box.Label, a.box.Name), cmp.Or(b.box.Label, b.box.Name))
	case "state":
		return cmp.Compare(stateRank(a.box.State), stateRank(b.box.State))
	case "cpu", "memory":
		return cmp.Compare(b.use, a.use)
	}
	return 0
}

// stateRank puts first what needs a look, then what runs, then what rests.
func stateRank(state sandbox.State) int {
	switch state {
	case sandbox.Failed:
		return 0
	case sandbox.Running:
		return 2
	case sandbox.Frozen:
		return 3
	case sandbox.Asleep:
		return 4
	case sandbox.Stopped:
		return 5
	}
	return 1 // under way
}

// lastUse is when a sandbox was used last; of one that never was, when it was made.
func (s *listHandlers) lastUse(box sandbox.Sandbox) time.Time {
	if at, used := s.cfg.LastUses.Last(box.ID); used {
		return at
	}
	return box.Created
}

// useNow is the figure by which a list so sorted is ordered.
func (s *listHandlers) useNow(box sandbox.Sandbox, sort string) float64 {
	if sort != "cpu" && sort != "memory" || box.State != sandbox.Running {
		return -1
	}
	now, known := s.cfg.Metrics.Latest(box.ID)
	switch {
	case !known:
		return -1
	case sort == "cpu":
		return now.CPU
	}
	return float64(now.Memory)
}

// groupOf is the heading under which a sandbox is in a list so grouped.
func (s *listHandlers) groupOf(ctx context.Context, names *owners, box sandbox.Sandbox, group string) (string, error) {
	switch group {
	case "owner":
		name, err := names.name(ctx, box.Owner)
		return cmp.Or(name, "–"), err
	case "template":
		t := s.workspace.templateOf(box.Spec)
		return cmp.Or(t.Title, t.Name), nil
	}
	return "", nil
}

func groupsOf(sorted []ranked) (groups []listGroup) {
	for _, one := range sorted {
		if n := len(groups); n == 0 || groups[n-1].title != one.group {
			groups = append(groups, listGroup{title: one.group})
		}
		groups[len(groups)-1].size++
	}
	return groups
}

// groups puts the rows of the page under their headings.
func (l listing) grouped(rows []views.Row) (list []views.Group) {
	if l.query.group == "" {
		return []views.Group{{Rows: rows}}
	}
	begin := 0 // of the group, in the whole list
	from, to := l.filter.Offset, l.filter.Offset+len(rows)
	for _, g := range l.groups {
		end := begin + g.size
		if begin < to && end > from {
			v := views.Group{Title: g.title, Count: strconv.Itoa(g.size), Rows: rows[max(begin, from)-from : min(end, to)-from]}
			if l.query.group == "owner" && l.query.owner == "" && g.title != "–" {
				at := l.query.first()
				at.owner, at.group = g.title, ""
				v.URL = at.url("/")
			}
			list = append(list, v)
		}
		begin = end
	}
	return list
}
