package web

import (
	"net/url"
	"slices"
	"strconv"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// pageRows is how many sandboxes a page of the list has.
const pageRows = 50

// listQuery is what a person narrowed the list to, and its order, as the address carries it.
type listQuery struct {
	text  string
	state sandbox.State
	owner string // name of a user; only an admin's is looked at
	sort  string // a value of listSorts
	group string // a value of listGroups
	page  int    // from 0
}

// Bounds of what an address may hold: nothing that could match is longer, and no page number makes an offset that overflows.
const (
	maxFilter   = 256
	maxListPage = 1 << 20
)

// named is a value of an address, with its words.
type namedValue struct{ value, text string }

// listSorts are the orders of the list. The first is the usual one.
var listSorts = []namedValue{
	{"", "Newest"}, {"used", "Last used"}, {"name", "Name"}, {"state", "State"}, {"cpu", "CPU"}, {"memory", "Memory"},
}

// listGroups are what the list can be grouped by; the owner only for admins, who see more than one.
var listGroups = []namedValue{{"", "No groups"}, {"template", "Template"}, {"owner", "Owner"}}

func readListQuery(v url.Values) listQuery {
	q := listQuery{
		text: text.OneLine(v.Get("q"), maxFilter), state: sandbox.State(v.Get("state")), owner: text.OneLine(v.Get("owner"), maxEntered),
		sort: knownValue(listSorts, v.Get("sort")), group: knownValue(listGroups, v.Get("group")),
	}
	if !knownState(q.state) {
		q.state = ""
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 1 && n < maxListPage {
		q.page = n - 1
	}
	return q
}

// knownValue gives value when it is one of them, else "".
func knownValue(all []namedValue, value string) string {
	if slices.ContainsFunc(all, func(n namedValue) bool { return n.value == value }) {
		return value
	}
	return ""
}

// wantedList is what the request's address narrows the list to. Members see their own sandboxes alone.
func wantedList(r *request) listQuery {
	q := readListQuery(r.http.URL.Query())
	if !r.isAdmin() {
		q = q.ofMember()
	}
	return q
}

// ofMember is what is left of q for a member.
func (q listQuery) ofMember() listQuery {
	q.owner = ""
	if q.group == "owner" {
		q.group = ""
	}
	return q
}

// url is the address of the list so narrowed; path is that of the page or of its stream.
func (q listQuery) url(path string) string {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.text, "state": string(q.state), "owner": q.owner, "sort": q.sort, "group": q.group} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.page > 0 {
		v.Set("page", strconv.Itoa(q.page+1))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// all says whether nothing is narrowed.
func (q listQuery) all() bool { return q.text == "" && q.state == "" && q.owner == "" }

// usual says whether the list is in the order in which the store gives it.
func (q listQuery) usual() bool { return q.sort == "" && q.group == "" }

// moves says whether a change of a sandbox may move its row.
func (q listQuery) moves() bool { return q.sort == "state" || q.sort == "name" }

// first is the first page of q.
func (q listQuery) first() listQuery {
	q.page = 0
	return q
}

// choices are the values of a menu, with the current one marked.
func choices(all []namedValue, current string) []views.Choice {
	list := make([]views.Choice, 0, len(all))
	for _, n := range all {
		list = append(list, views.Choice{Value: n.value, Text: n.text, Current: n.value == current})
	}
	return list
}
