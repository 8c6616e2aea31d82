package web

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// hostPath is the page of the host.
const hostPath = "/host"

// maxChosen bounds how many sandboxes are put to sleep at once: the tick boxes of a page of the table.
const maxChosen = pageRows

// pageHost shows what the host has, and what its sandboxes use. Those that are chosen in its address are ticked.
func (s *hostHandlers) pageHost(ctx context.Context, r *request) (templ.Component, error) {
	v := views.Host{}
	if n, err := strconv.Atoi(r.query("slept")); err == nil && n > 0 && n <= maxChosen {
		v.Done = sleptText(n)
	}
	return s.hostPage(ctx, r, readUseQuery(r.http.URL.Query()), v)
}

func sleptText(n int) string {
	if n == 1 {
		return "A sandbox is going to sleep."
	}
	return strconv.Itoa(n) + " sandboxes are going to sleep."
}

// hostPage draws the page in the order and with the choice of q.
func (s *hostHandlers) hostPage(ctx context.Context, r *request, q useQuery, v views.Host) (templ.Component, error) {
	var err error
	if v.Plots, err = s.hostPlots(ctx, r, q); err != nil {
		return nil, err
	}
	if r.byScript() { // which shows another range
		return views.MetricsRangePart(v.Plots.Range), nil
	}
	all, err := s.uses(ctx)
	if err != nil {
		return nil, err
	}
	v.Frame = s.frame(r, "Host", "host")
	v.Frame.Here = q.url(hostPath)
	v.Frame.Live = views.Live{Topic: hostPath}
	v.Frame.Plots = true
	v.Now = s.hostNow(ctx)
	v.Owners = useSums(all, func(u boxUse) (string, string) { return u.box.Owner, u.owner })
	v.Templates = useSums(all, func(u boxUse) (string, string) { return u.from, u.kind })
	v.Table = q.table(all)
	return views.HostPage(v), nil
}

// partSaving is what putting the chosen ones to sleep would free, for the script of the page.
func (s *hostHandlers) partSaving(ctx context.Context, r *request) (templ.Component, error) {
	all, err := s.uses(ctx)
	if err != nil {
		return nil, err
	}
	return views.SavingPart(readUseQuery(r.http.URL.Query()).saving(all)), nil
}

// submitHostSleep puts the chosen sandboxes to sleep. When some cannot be, the page says which, and why.
func (s *hostHandlers) submitHostSleep(ctx context.Context, r *request) (string, error) {
	q := readUseQuery(r.http.PostForm)
	if len(q.chosen) == 0 {
		return "", fault.New(fault.Invalid, "Choose at least one sandbox.")
	}
	if len(q.chosen) > maxChosen {
		return "", fault.New(fault.Invalid, "At most %d sandboxes can be put to sleep at once.", maxChosen)
	}
	refused := make([]error, len(q.chosen))
	var running sync.WaitGroup
	for i, c := range q.chosen {
		running.Go(func() { refused[i] = s.sleepChosen(ctx, r, c) })
	}
	running.Wait()
	slept := len(q.chosen)
	var v views.Host
	for i, err := range refused {
		if err != nil {
			slept--
			v.Refused = append(v.Refused, refusalOf(q.chosen[i], err))
		}
	}
	q.chosen = nil
	if len(v.Refused) == 0 {
		q.slept = slept
		return q.url(hostPath), nil
	}
	if slept > 0 {
		v.Done = sleptText(slept)
	}
	var err error
	r.answer, err = s.hostPage(ctx, r, q, v)
	return "", err
}

// againHost shows the page with what is wrong with the choice.
func (s *hostHandlers) againHost(ctx context.Context, r *request, cause error) (templ.Component, error) {
	q := readUseQuery(r.http.PostForm)
	q.chosen = q.chosen[:min(len(q.chosen), maxChosen)]
	return s.hostPage(ctx, r, q, views.Host{Fault: fault.Message(cause)})
}

// sleepChosen puts one sandbox to sleep: the very one that was chosen, not another one of its name.
func (s *hostHandlers) sleepChosen(ctx context.Context, r *request, c choice) error {
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	h, err := s.resolve(ctx, r.who, c.name)
	if err != nil {
		return err
	}
	if h.ID() != c.id {
		return deletedSince(h)
	}
	_, err = s.sandboxes.rest(false)(ctx, h.Ref())
	if err != nil && fault.KindOf(err) == fault.Internal {
		s.log.Error("put to sleep", "sandbox", h.Name(), "request_id", r.id, "err", err)
	}
	return err
}

// refusalOf says why one could not be put to sleep, with its name.
func refusalOf(c choice, err error) string {
	message := fault.Message(err)
	if strings.Contains(message, c.name) {
		return message
	}
	return c.name + ": " + message
}

func deletedSince(h access.Handle) error {
	return fault.New(fault.Gone, "The sandbox that the page showed was deleted. Another one has the name %s now.", h.Name())
}

// maxSpanText bounds each part of a stretch of time in an address.
const maxSpanText = 40

// choice is a sandbox that was ticked.
type choice struct{ name, id string }

func (c choice) value() string { return c.name + "@" + c.id }

// useQuery is how the table is sorted, and what is chosen in it, as the address and the form carry it.
type useQuery struct {
	sort   string
	page   int // from 0
	chosen []choice
	slept  int        // how many were just put to sleep
	span   url.Values // the stretch of time that the plots show
}

func readUseQuery(v url.Values) useQuery {
	q := useQuery{sort: v.Get("sort"), span: url.Values{}}
	for _, name := range []string{"range", "since", "until"} {
		if text := v.Get(name); text != "" && len(text) <= maxSpanText {
			q.span.Set(name, text)
		}
	}
	if !slices.ContainsFunc(useColumns, func(c useColumn) bool { return c.name == q.sort }) {
		q.sort = defaultSort
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 1 && n < maxListPage {
		q.page = n - 1
	}
	for _, value := range v["box"] {
		name, id, ok := strings.Cut(value, "@")
		if c := (choice{name, id}); ok && !slices.Contains(q.chosen, c) {
			q.chosen = append(q.chosen, c)
		}
		if len(q.chosen) > maxChosen { // one too many says enough
			break
		}
	}
	return q
}

// url is the address of the table in this order, without what is chosen.
func (q useQuery) url(path string) string {
	v := url.Values{}
	maps.Copy(v, q.span)
	if q.sort != defaultSort {
		v.Set("sort", q.sort)
	}
	if q.page > 0 {
		v.Set("page", strconv.Itoa(q.page+1))
	}
	if q.slept > 0 {
		v.Set("slept", strconv.Itoa(q.slept))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// table is the page of the table that q asks for.
func (q useQuery) table(all []boxUse) views.UseTable {
	q.page = min(q.page, max(0, len(all)-1)/pageRows)
	sortUses(all, q.sort)
	t := views.UseTable{Sort: q.sort, Saving: q.saving(all)}
	if q.page > 0 {
		t.Page = strconv.Itoa(q.page + 1)
	}
	for _, c := range useColumns {
		at := views.UseColumn{Text: c.text, URL: useQuery{sort: c.name, span: q.span}.url(hostPath), Class: c.class}
		if c.name == q.sort {
			at.Sorted = c.sorted()
		}
		t.Columns = append(t.Columns, at)
	}
	from := q.page * pageRows
	to := min(from+pageRows, len(all))
	for _, u := range all[from:to] {
		t.Rows = append(t.Rows, u.row(slices.Contains(q.chosen, u.choice())))
	}
	if len(all) > pageRows {
		t.Span = fmt.Sprintf("%d–%d of %d", from+1, to, len(all))
		if q.page > 0 {
			t.Earlier = useQuery{sort: q.sort, page: q.page - 1, span: q.span}.url(hostPath)
		}
		if to < len(all) {
			t.Later = useQuery{sort: q.sort, page: q.page + 1, span: q.span}.url(hostPath)
		}
	}
	return t
}

// saving adds up what the chosen ones hold that sleeping would free.
func (q useQuery) saving(all []boxUse) views.Saving {
	var memory int64
	n, frozen, asleep := 0, 0, 0
	for _, u := range all {
		if !slices.Contains(q.chosen, u.choice()) {
			continue
		}
		n++
		switch {
		case u.known:
			memory += u.now.Memory
		case u.box.State == sandbox.Frozen:
			frozen++
		default:
			asleep++
		}
	}
	if n == 0 {
		return views.Saving{Text: "None chosen"}
	}
	s := views.Saving{Text: fmt.Sprintf("Sleeping these %d frees %s of memory", n, text.Size(memory))}
	if n == 1 {
		s.Text = fmt.Sprintf("Sleeping this one frees %s of memory", text.Size(memory))
	}
	if frozen > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("And what the frozen ones still hold (%d), which is not measured.", frozen))
	}
	if asleep > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of them have no figures now.", asleep))
	}
	return s
}
