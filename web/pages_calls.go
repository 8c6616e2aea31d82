package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// pageCalls lists calls of models, newest first.
func (s *usageHandlers) pageCalls(ctx context.Context, r *request) (templ.Component, error) {
	v := views.ModelCalls{
		Frame: s.frame(r, "Calls of models", ""), Notices: s.usageNotices(),
		Kept: fmt.Sprintf("Each call is kept for %d days, the newest %s at most.", gateway.KeepCalls/(24*time.Hour), grouped(gateway.MaxCalls)),
	}
	v.Frame.PlotsStyle = true
	var err error
	if v.Form, err = s.callForm(ctx, r); err != nil {
		return nil, err
	}
	v.Any = !v.Form.Clear
	scope, q, err := s.askedCalls(ctx, r)
	if err != nil {
		if !blameCalls(&v.Form, err) {
			return nil, err
		}
		v.Faulty = true
		return views.ModelCallsPage(v), nil
	}
	found, next, err := s.calls(ctx, scope, q)
	if err != nil {
		return nil, err
	}
	if v.Users = scope.user == ""; v.Users {
		err = s.callRows(ctx, &v, found)
	} else {
		for _, c := range found {
			v.Rows = append(v.Rows, callRow(c, s.cfg.Now()))
		}
	}
	same := []string{"sandbox", r.query("sandbox"), "model", r.query("model"), "failed", r.query("failed")}
	if next != "" {
		v.Older = usageURL(callsPath, r.query("user"), append(same, "before", next)...)
	}
	if q.Before != "" {
		v.Newest = usageURL(callsPath, r.query("user"), same...)
	}
	return views.ModelCallsPage(v), err
}

// callRows are calls with whose they are.
func (s *usageHandlers) callRows(ctx context.Context, v *views.ModelCalls, found []gateway.Call) error {
	users := newOwners(s.cfg.Accounts)
	for _, c := range found {
		name, err := users.name(ctx, c.User)
		if err != nil {
			return err
		}
		row := callRow(c, s.cfg.Now())
		row.User = cmp.Or(name, "deleted")
		v.Rows = append(v.Rows, row)
	}
	return nil
}

// askedCalls reads what the address of the page asks for. A sandbox that is gone is found by its id, or by the name that it had.
func (s *usageHandlers) askedCalls(ctx context.Context, r *request) (scope usageScope, q gateway.CallQuery, err error) {
	q = gateway.CallQuery{Sandbox: strings.TrimSpace(r.query("sandbox")), Model: strings.TrimSpace(r.query("model")), Before: r.query("before"), Limit: usualCalls}
	if q.Failed, err = truth(r, "failed"); err != nil {
		return scope, q, err
	}
	if !r.isAdmin() {
		scope.user = r.who.User.ID
	}
	if name := r.query("user"); name != "" {
		u, err := s.cfg.Accounts.UserByName(ctx, name)
		if fault.Is(err, fault.NotFound) || err == nil && !r.isAdmin() && u.ID != r.who.User.ID {
			return scope, q, fault.Field("user", "There is no user %.40q whose calls you can see.", name)
		}
		if err != nil {
			return scope, q, err
		}
		scope.user = u.ID
	}
	return scope, q, nil
}

// blameCalls puts an error beside the field that it is about.
func blameCalls(f *views.ModelCallForm, err error) bool {
	at := map[string]*views.Field{"user": &f.User.Field, "sandbox": &f.Sandbox, "model": &f.Model}[fault.FieldOf(err)]
	if at == nil {
		return false
	}
	at.Fault = fault.Message(err)
	return true
}

// callForm is the form with what may be chosen. Names are only suggested.
func (s *usageHandlers) callForm(ctx context.Context, r *request) (views.ModelCallForm, error) {
	f := views.ModelCallForm{
		Sandbox: views.Field{Value: r.query("sandbox")}, Model: views.Field{Value: r.query("model")}, Failed: r.query("failed") == "true",
		Models: s.cfg.Models.Models(r.who.User.ID),
	}
	f.Models = f.Models[:min(len(f.Models), mostOptions)]
	f.Clear = f.Sandbox.Value+f.Model.Value+r.query("user") != "" || f.Failed
	var err error
	if f.User, err = s.userChoice(ctx, r); err != nil {
		return f, err
	}
	filter := sandbox.Filter{Limit: mostOptions, Owner: r.who.User.ID}
	if r.isAdmin() {
		filter.Owner = ""
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, filter)
	for _, box := range boxes {
		f.Sandboxes = append(f.Sandboxes, box.Name)
	}
	slices.Sort(f.Sandboxes)
	return f, err
}

// callRow makes a call ready to show.
func callRow(c gateway.Call, now time.Time) views.ModelCallRow {
	row := views.ModelCallRow{
		URL: callsPath + "/" + c.ID, Time: timeOf(c.Time, now), Label: cmp.Or(c.Label, c.Sandbox, "–"), Sandbox: c.Sandbox != "", Asked: cmp.Or(c.Asked, "–"),
		Provider: cmp.Or(c.Provider, "–"), Protocol: protocolName(c.Protocol), State: callState(c), Input: grouped(c.Tokens.Input + cachedOf(c.Tokens)),
		Output: grouped(c.Tokens.Output), Cost: callCost(c), FirstByte: tookText(c.FirstByte), Took: tookText(c.Took),
	}
	if c.Model != "" && c.Model != c.Asked {
		row.Model = c.Model
	}
	return row
}

// callCost is what a call has cost, or why that is not known.
func callCost(c gateway.Call) string {
	switch {
	case c.Priced:
		return costText(c.Cost)
	case c.Tokens.Total() == 0:
		return "–"
	}
	return noPrice
}

// protocolNames are what protocols are called; others are called as they are.
var protocolNames = map[string]string{
	"messages": "Messages", "count_tokens": "Count tokens", "chat": "Chat Completions", "responses": "Responses", "embeddings": "Embeddings", "ollama": "Ollama",
	"gemini": "Gemini", "models": "List of models",
}

func protocolName(protocol string) string { return cmp.Or(protocolNames[protocol], protocol) }

// callState says how a call ended.
func callState(c gateway.Call) views.State {
	status := strconv.Itoa(c.Status)
	switch {
	case c.Status == statusLeft:
		return views.State{Tone: "still", Icon: "close", Text: "Cancelled", Bar: views.BarNone}
	case c.Status >= 400:
		return views.State{Tone: "bad", Icon: "state-failed", Text: "Failed, " + status, Bar: views.BarNone}
	}
	return views.State{Tone: "good", Icon: "check", Text: status, Bar: views.BarNone}
}

// tookText is how long something took: "350 ms", "1.25 s", "12 s", "2 min".
func tookText(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	}
	return lasted(d)
}

// pageCall shows one call.
func (s *usageHandlers) pageCall(ctx context.Context, r *request) (templ.Component, error) {
	c, err := s.call(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.ModelCall{
		Frame: s.frame(r, "Call of a model", ""), Notices: s.usageNotices(), Row: callRow(c, s.cfg.Now()), When: exactTime(c.Time), Problem: c.Problem,
		Logged: c.Request+c.Answer != "", Request: loggedText(c.Request), Answer: loggedText(c.Answer),
	}
	v.Frame.PlotsStyle = true
	if len(c.Request) >= gateway.MaxContent || len(c.Answer) >= gateway.MaxContent {
		v.Cut = fmt.Sprintf("Only the first %d KiB of each are kept.", gateway.MaxContent>>10)
	}
	user := ""
	if r.isAdmin() {
		if user, err = newOwners(s.cfg.Accounts).name(ctx, c.User); err != nil {
			return nil, err
		}
	}
	v.Facts = callFacts(c, v.Row, user)
	v.Sandbox = s.boxOf(ctx, r, c)
	return views.ModelCallPage(v), nil
}

// callFacts are the facts of a call's page.
func callFacts(c gateway.Call, row views.ModelCallRow, user string) []views.Figure {
	stream := "No"
	if c.Stream {
		stream = "Yes"
	}
	facts := []views.Figure{
		{Name: "User", Text: user}, {Name: "Model asked for", Text: row.Asked}, {Name: "Model that answered", Text: cmp.Or(c.Model, "–")}, {Name: "Provider", Text: row.Provider},
		{Name: "Protocol", Text: row.Protocol}, {Name: "Streamed", Text: stream}, {Name: "Status", Text: strconv.Itoa(c.Status)},
		{Name: "Input tokens", Text: grouped(c.Tokens.Input)}, {Name: "Output tokens", Text: grouped(c.Tokens.Output)},
		{Name: "Read from a cache", Text: grouped(c.Tokens.CacheRead)}, {Name: "Written to a cache", Text: grouped(c.Tokens.CacheWrite)},
		{Name: "Cost", Text: row.Cost}, {Name: "First byte after", Text: row.FirstByte}, {Name: "Took", Text: row.Took},
	}
	return slices.DeleteFunc(facts, func(f views.Figure) bool { return f.Text == "" })
}

// boxOf is the address of the sandbox that made a call, or "" when it is gone or another has its name. It wakes nothing.
func (s *usageHandlers) boxOf(ctx context.Context, r *request, c gateway.Call) string {
	if c.Sandbox == "" {
		return ""
	}
	h, err := s.resolve(ctx, r.who, c.Label)
	if err != nil || h.ID() != c.Sandbox { // the page has its name all the same
		return ""
	}
	return sandboxURL(h.Name())
}

// loggedText is what was asked or answered, without characters that would garble the page: it may be anything.
func loggedText(content string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, content)
}
