package web

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/activity"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// activityPath is the page of who did what.
const activityPath = "/activity"

// activityURL is the same for one sandbox.
func activityURL(box sandbox.Sandbox) string { return sameURL(box, "/activity") }

// activityFields are the fields of the form, which an address of the page carries.
var activityFields = []string{"q", "sandbox", "user", "via", "action", "outcome", "range", "since", "until"}

// The choices of the form.
var (
	wayOptions = []views.Option{{Text: "Any"}, {Value: "page", Text: "Dashboard"}, {Value: "api", Text: "API"}, {Value: "ssh", Text: "SSH"},
		{Value: "address", Text: "Sandbox's address"}, {Value: "agent", Text: "Agent"}, {Value: "sandboxd", Text: "sandboxd itself"}}
	outcomeOptions = []views.Option{{Text: "Any"}, {Value: "done", Text: "Done"}, {Value: "refused", Text: "Refused"}, {Value: "failed", Text: "Failed"}}
)

// nounWords are what nouns of actions are called in the form, in its order. Others are called by themselves.
var nounWords = []views.Option{
	{Value: "sandbox.", Text: "Sandboxes"}, {Value: "hold.", Text: "Keeping awake"}, {Value: "command.", Text: "Commands"},
	{Value: "terminal.", Text: "Terminals"}, {Value: "ssh.", Text: "SSH"}, {Value: "tunnel.", Text: "Port forwarding"}, {Value: "file.", Text: "Files"},
	{Value: "backup.", Text: "Backups"}, {Value: "schedule.", Text: "Schedules"}, {Value: "repository.", Text: "Repositories"}, {Value: "snapshot.", Text: "Snapshots"}, {Value: "service.", Text: "Services"}, {Value: "port.", Text: "Ports and links"}, {Value: "ide.", Text: "VS Code"},
	{Value: "template.", Text: "Templates"}, {Value: "account.", Text: "Signing in and passwords"}, {Value: "token.", Text: "API tokens"},
	{Value: "user.", Text: "Users"}, {Value: "orphan.", Text: "Sandboxes without a record"}, {Value: "host.", Text: "Host"},
	{Value: "alert.", Text: "Alerts"}, {Value: "rule.", Text: "Alert rules"}, {Value: "channel.", Text: "Alert channels"},
	{Value: "provider.", Text: "Providers of models"}, {Value: "alias.", Text: "Model aliases"}, {Value: "budget.", Text: "Budgets for models"}, {Value: "models.", Text: "Settings of models"},
}

// kindOptions are the kinds of actions to choose from.
var kindOptions = func() []views.Option {
	out := append([]views.Option{{Text: "Any"}}, nounWords...)
	for _, k := range activity.Actions {
		noun := nounOf(k.Action)
		if !slices.ContainsFunc(out, func(o views.Option) bool { return o.Value == noun }) && k.Action != activity.Lost {
			name := strings.TrimSuffix(noun, ".")
			out = append(out, views.Option{Value: noun, Text: strings.ToUpper(name[:1]) + name[1:]})
		}
	}
	return out
}()

// adminNouns are nouns of actions that only admins can do, and so only admins see.
var adminNouns = []string{"user.", "host.", "orphan.", "template.", "repository.", "budget.", "models."}

// kindsFor are the kinds that a person can see.
func kindsFor(admin bool) []views.Option {
	if admin {
		return kindOptions
	}
	return slices.DeleteFunc(slices.Clone(kindOptions), func(o views.Option) bool { return slices.Contains(adminNouns, o.Value) })
}

// askedOnPage reads what a page's address asks for. Kind: Invalid with the field.
func (s *activityHandlers) askedOnPage(r *request, a logAddress) (activity.Query, error) {
	asked, err := a.request(r, "before", s.cfg.Now())
	if err != nil {
		return activity.Query{}, err
	}
	return s.readActivity(asked)
}

// pageActivity shows the newest entries that match.
func (s *activityHandlers) pageActivity(ctx context.Context, r *request) (templ.Component, error) {
	a := readLogAddress(r.http.URL.Query(), activityFields, s.cfg.Now())
	return s.show(ctx, r, views.Activity{Frame: s.frame(r, "Activity", "activity"), Path: activityPath, All: activityPath}, a, a)
}

// pageSandboxActivity shows those about one sandbox, which it does not wake.
func (s *activityHandlers) pageSandboxActivity(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	a := readLogAddress(r.http.URL.Query(), activityFields, s.cfg.Now())
	a.Del("sandbox")
	about := a
	about.Values = maps.Clone(a.Values)
	about.Set("sandbox", box.ID)
	return s.show(ctx, r, views.Activity{
		Frame: s.frame(r, "Activity of "+boxTitle(box), "sandboxes"), Path: sandboxURL(box.Name) + "/activity", All: activityURL(box),
		Name: box.Name, Box: box.ID, Title: boxTitle(box),
	}, a, about)
}

// show fills a page. a is what its address asks for, and about the same with the sandbox that the page is of.
func (s *activityHandlers) show(ctx context.Context, r *request, v views.Activity, a, about logAddress) (templ.Component, error) {
	now := s.cfg.Now()
	var err error
	if v.Form, err = s.activityForm(ctx, r, a); err != nil {
		return nil, err
	}
	var entries []activity.Entry
	var next activity.ID
	q, err := s.askedOnPage(r, about)
	if err == nil {
		entries, next, err = s.cfg.Activity.Find(ctx, q)
	}
	v.OwnLog, v.List = r.isAdmin(), views.LogList{Any: len(a.Values) == 0, Here: r.here()}
	switch {
	case fault.Is(err, fault.Unavailable):
		v.List.Problem = fault.Message(err)
		return views.ActivityPage(v), nil
	case err != nil && blameActivity(&v.Form, err):
		v.List.Faulty = true
		return views.ActivityPage(v), nil
	case err != nil:
		return nil, err
	}
	v.Download = about.url(activityPath + "/download")
	same := []string{"sandbox_id", v.Box}
	if v.Box == "" {
		same = nil
	}
	if next != 0 {
		v.List.Older = a.url(v.Path, append(same, "before", next.String())...)
	}
	if q.Before != 0 {
		v.List.Newest = a.url(v.Path, same...)
	} else if a.Get("until") == "" {
		v.List.Tail = views.LogTail{Topic: about.url(activityPath), On: true}
		if len(entries) > 0 {
			v.List.Tail.Seen = "after=" + entries[0].ID.String()
		}
	}
	if v.Entries, err = s.entryRows(ctx, r, entries, now); err != nil {
		return nil, err
	}
	return views.ActivityPage(v), nil
}

// blameActivity puts an error beside the field that it is about.
func blameActivity(f *views.ActivityForm, err error) bool {
	at := map[string]*views.Field{
		"q": &f.Query, "via": &f.Way.Field, "action": &f.Kind.Field, "outcome": &f.Outcome.Field, "range": &f.Range.Field, "since": &f.Since, "until": &f.Until,
	}[fault.FieldOf(err)]
	if at == nil {
		return false
	}
	at.Fault = fault.Message(err)
	return true
}

// activityForm is the form with what may be chosen. Names are only suggested: those of what is gone find entries too.
func (s *activityHandlers) activityForm(ctx context.Context, r *request, a logAddress) (views.ActivityForm, error) {
	f := views.ActivityForm{
		Query: views.Field{Value: a.Get("q")}, Sandbox: views.Field{Value: a.Get("sandbox")}, User: views.Field{Value: a.Get("user")},
		Way: choiceOf(a.Get("via"), wayOptions), Kind: choiceOf(a.Get("action"), kindsFor(r.isAdmin())), Outcome: choiceOf(a.Get("outcome"), outcomeOptions),
		Range: rangeChoice(a), Clear: len(a.Values) > 0, Users: []string{r.who.User.Name},
	}
	f.Since, f.Until = views.Field{Value: localText(a.since, a.Get("since"))}, views.Field{Value: localText(a.until, a.Get("until"))}
	filter := sandbox.Filter{Limit: mostOptions, Owner: r.who.User.ID}
	if r.isAdmin() {
		filter.Owner, f.Users = "", nil
		users, err := s.cfg.Accounts.Users(ctx)
		if err != nil {
			return f, err
		}
		for _, u := range users[:min(len(users), mostOptions)] {
			f.Users = append(f.Users, u.Name)
		}
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, filter)
	for _, box := range boxes {
		f.Sandboxes = append(f.Sandboxes, box.Name)
	}
	slices.Sort(f.Sandboxes)
	return f, err
}
