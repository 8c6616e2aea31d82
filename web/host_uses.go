package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// boxUse is what a sandbox uses now.
type boxUse struct {
	box   sandbox.Sandbox
	title string
	owner string // its name
	from  string // its template, or its image
	kind  string // the title of that
	now   metrics.Point
	known bool // now is
	size  metrics.Size
	sized bool // size is known
}

// uses gives all sandboxes with what they use now, from memory and the store. It asks nothing of a sandbox.
func (s *hostHandlers) uses(ctx context.Context) ([]boxUse, error) {
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return nil, err
	}
	names, kinds := newOwners(s.cfg.Accounts), map[string]string{}
	all := make([]boxUse, 0, len(boxes))
	for _, box := range boxes {
		u := boxUse{box: box, title: cmp.Or(box.Label, box.Name)}
		if u.owner, err = names.name(ctx, box.Owner); err != nil {
			return nil, err
		}
		u.owner = cmp.Or(u.owner, "–")
		u.from = cmp.Or(box.Spec.Template, box.Spec.Image)
		if _, ok := kinds[u.from]; !ok {
			t := s.workspace.templateOf(box.Spec)
			kinds[u.from] = cmp.Or(t.Title, t.Name)
		}
		u.kind = kinds[u.from]
		if box.State == sandbox.Running {
			u.now, u.known = s.cfg.Metrics.Latest(box.ID)
		}
		u.size, _, u.sized = s.cfg.Metrics.Size(box.ID)
		all = append(all, u)
	}
	return all, nil
}

func (u boxUse) choice() choice { return choice{u.box.Name, u.box.ID} }

func (u boxUse) row(chosen bool) views.UseRow {
	look, ok := stateLooks[u.box.State]
	if !ok {
		look = views.State{Tone: "still", Icon: "state-stopped", Text: string(u.box.State)}
	}
	r := views.UseRow{
		Name: u.box.Name, Title: u.title, State: look, Owner: u.owner, Template: u.kind, Chosen: chosen, CPU: "–", Memory: "–", Disk: "–", Sizes: "Not measured yet. Sizes are measured each hour.",
	}
	if u.sized {
		r.Disk = text.Size(u.disk())
		r.Sizes = homeText(u.size.Home, u.box.Spec.Limits.Disk) + ", writable layer " + text.Size(u.size.Layer)
	}
	if u.box.State == sandbox.Running || u.box.State == sandbox.Frozen {
		r.Value = u.choice().value()
	}
	switch {
	case u.known:
		r.CPU, r.Memory = cores(u.now.CPU), text.Size(u.now.Memory)
	case u.box.State == sandbox.Frozen:
		r.Unknown = "Not measured while it is frozen"
	}
	return r
}

// disk is what it has on disk, -1 when that was not measured yet.
func (u boxUse) disk() int64 {
	if !u.sized {
		return -1
	}
	return u.size.Home + u.size.Layer
}

// useColumn is a column of the table.
type useColumn struct {
	name, text, class string
	largest           bool // first
	compare           func(a, b boxUse) int
}

func (c useColumn) sorted() string {
	if c.largest {
		return "descending"
	}
	return "ascending"
}

// defaultSort is by what sleeping frees.
const defaultSort = "memory"

// useColumns are the columns in their order. What uses most comes first, and what has no figures last.
var useColumns = []useColumn{
	{"name", "Sandbox", "", false, func(a, b boxUse) int { return compareText(a.title, b.title) }},
	{"cpu", "CPU", "num", true, func(a, b boxUse) int { return cmp.Or(byKnown(a, b), cmp.Compare(b.now.CPU, a.now.CPU)) }},
	{defaultSort, "Memory", "num", true, func(a, b boxUse) int { return cmp.Or(byKnown(a, b), cmp.Compare(b.now.Memory, a.now.Memory)) }},
	{"disk", "Disk", "num", true, func(a, b boxUse) int { return cmp.Compare(b.disk(), a.disk()) }},
	{"state", "State", "", false, func(a, b boxUse) int { return cmp.Compare(stateOrder(a), stateOrder(b)) }},
	{"owner", "Owner", "use-owner", false, func(a, b boxUse) int { return compareText(a.owner, b.owner) }},
	{"template", "Template", "use-kind", false, func(a, b boxUse) int { return compareText(a.kind, b.kind) }},
}

func compareText(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }

// byKnown puts what is known first, and then what is frozen: it holds memory too.
func byKnown(a, b boxUse) int {
	rank := func(u boxUse) int {
		switch {
		case u.known:
			return 0
		case u.box.State == sandbox.Frozen:
			return 1
		}
		return 2
	}
	return cmp.Compare(rank(a), rank(b))
}

// stateOrder puts those that take most of the host first.
func stateOrder(u boxUse) int {
	order := []sandbox.State{sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped, sandbox.Failed}
	if i := slices.Index(order, u.box.State); i >= 0 {
		return i
	}
	return -1 // work is under way
}

// sortUses sorts by a column, then by memory and by name.
func sortUses(all []boxUse, by string) {
	column := func(name string) useColumn {
		return useColumns[slices.IndexFunc(useColumns, func(c useColumn) bool { return c.name == name })]
	}
	chosen, memory := column(by), column(defaultSort)
	slices.SortStableFunc(all, func(a, b boxUse) int {
		return cmp.Or(chosen.compare(a, b), memory.compare(a, b), cmp.Compare(a.box.Name, b.box.Name))
	})
}

// maxSums is how many sums a table has; the rest is one more.
const maxSums = 20

// useSums adds up what sandboxes use, by the key and under the name that they have in common. The one that uses
// most memory comes first.
func useSums(all []boxUse, common func(boxUse) (key, name string)) []views.UseSum {
	type sum struct {
		name         string
		running, all int
		cpu          float64
		memory       int64
	}
	add := func(to *sum, u boxUse) {
		to.all++
		if u.box.State == sandbox.Running {
			to.running++
		}
		to.cpu += u.now.CPU // nothing where it is not known
		to.memory += u.now.Memory
	}
	by := map[string]*sum{}
	var sums []*sum
	for _, u := range all {
		k, name := common(u)
		if by[k] == nil {
			by[k] = &sum{name: name}
			sums = append(sums, by[k])
		}
		add(by[k], u)
	}
	slices.SortFunc(sums, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.memory, a.memory), cmp.Compare(b.running, a.running), compareText(a.name, b.name), cmp.Compare(a.name, b.name))
	})
	if len(sums) > maxSums {
		rest := &sum{name: strconv.Itoa(len(sums)-maxSums) + " more"}
		for _, s := range sums[maxSums:] {
			rest.all, rest.running, rest.cpu, rest.memory = rest.all+s.all, rest.running+s.running, rest.cpu+s.cpu, rest.memory+s.memory
		}
		sums = append(sums[:maxSums], rest)
	}
	out := make([]views.UseSum, 0, len(sums))
	for _, s := range sums {
		out = append(out, views.UseSum{
			Name: s.name, Running: strconv.Itoa(s.running) + " of " + strconv.Itoa(s.all), CPU: cores(s.cpu), Memory: text.Size(s.memory),
		})
	}
	return out
}
