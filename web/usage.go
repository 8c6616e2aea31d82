package web

import (
	"context"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// usageHandlers answer what was used of models, and which calls there were.
type usageHandlers struct{ *Server }

// Pages about the use of models.
const (
	usagePath = "/usage"
	callsPath = usagePath + "/calls"
)

// table is the use of models, for programs and as pages.
func (s *usageHandlers) table() []route {
	return []route{
		{get, apiPrefix + "/models/usage", token, api(s.apiUsage)},
		{get, apiPrefix + "/models/calls", token, api(s.apiCalls)},
		{get, apiPrefix + "/models/calls/:id", token, api(s.apiCall)},
		{get, usagePath, signedIn, page(s.pageUsage)},
		{get, usagePath + "/series", scripted, api(s.apiUsageColumns)},
		{get, callsPath, signedIn, page(s.pageCalls)},
		{get, callsPath + "/:id", signedIn, page(s.pageCall)},
	}
}

// usageScope is whose use of models a request may see and asks for.
type usageScope struct {
	user    string // id; "" for everyone's, which only an admin gets
	name    string // of that user
	sandbox string // id, or ""
}

// usageScope reads what user and sandbox in the query narrow the use down to. Kinds: Invalid for a user, NotFound and Gone for a sandbox
// that the caller cannot see.
func (s *usageHandlers) usageScope(ctx context.Context, r *request) (usageScope, error) {
	out := usageScope{sandbox: r.who.SandboxID}
	if !r.isAdmin() {
		out.user, out.name = r.who.User.ID, r.who.User.Name
	}
	if name := r.query("user"); name != "" {
		u, err := s.cfg.Accounts.UserByName(ctx, name)
		if fault.Is(err, fault.NotFound) || err == nil && !r.isAdmin() && u.ID != r.who.User.ID {
			return out, fault.Field("user", "There is no user %.40q whose use you can see.", name)
		}
		if err != nil {
			return out, err
		}
		out.user, out.name = u.ID, u.Name
	}
	if name := r.query("sandbox"); name != "" {
		h, err := s.resolve(ctx, r.who, name)
		if err != nil {
			return out, err
		}
		out.sandbox = h.ID()
	}
	return out, nil
}

// query is for what was used in the scope.
func (u usageScope) query(from, to time.Time, step time.Duration, by string) gateway.UsageQuery {
	return gateway.UsageQuery{From: from, To: to, Step: step, By: by, User: u.user, Sandbox: u.sandbox}
}

// may reports whether a call is in the scope.
func (u usageScope) may(c gateway.Call) bool {
	return (u.user == "" || c.User == u.user) && (u.sandbox == "" || c.Sandbox == u.sandbox)
}

// tokensShape are tokens as programs see them.
type usedTokensShape struct {
	Input      int64 `json:"input"` // without those from a cache
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

func newUsedTokensShape(t gateway.Tokens) usedTokensShape {
	return usedTokensShape{t.Input, t.Output, t.CacheRead, t.CacheWrite}
}

// usagePartShape is what was used in one part of a period.
type usagePartShape struct {
	From     *time.Time      `json:"from"` // null in totals
	Key      string          `json:"key"`  // of what it is grouped by
	Label    string          `json:"label"`
	Requests int64           `json:"requests"`
	Failed   int64           `json:"failed"`
	Tokens   usedTokensShape `json:"tokens"`
	Dollars  float64         `json:"dollars"`
}

type usageShape struct {
	From  time.Time        `json:"from"`
	To    time.Time        `json:"to"`
	Step  int64            `json:"step"` // seconds; 0 for totals
	By    string           `json:"by"`
	Usage []usagePartShape `json:"usage"`
}

// inDollars is a cost as programs see it.
func inDollars(cost int64) float64 { return float64(cost) / 1e6 }

// How much one question about usage covers.
const (
	usualUsage = 24 * time.Hour
	mostSteps  = 1000
)

// apiUsage answers with what was used.
func (s *usageHandlers) apiUsage(ctx context.Context, r *request, _ none) (reply, error) {
	scope, err := s.usageScope(ctx, r)
	if err != nil {
		return reply{}, err
	}
	q, err := s.readUsage(r, scope)
	if err != nil {
		return reply{}, err
	}
	found, err := s.cfg.Models.Usage(ctx, q)
	if err != nil {
		return reply{}, err
	}
	out := usageShape{From: q.From.UTC(), To: q.To.UTC(), Step: int64(q.Step / time.Second), By: q.By, Usage: make([]usagePartShape, 0, len(found))}
	for _, u := range found {
		out.Usage = append(out.Usage, usagePartShape{
			From: timeOrNull(u.From), Key: u.Key, Label: u.Label, Requests: u.Requests, Failed: u.Failed, Tokens: newUsedTokensShape(u.Tokens), Dollars: inDollars(u.Cost),
		})
	}
	return reply{body: out}, nil
}

// readUsage reads from, to, step and by. Kind: Invalid with the field.
func (s *usageHandlers) readUsage(r *request, scope usageScope) (gateway.UsageQuery, error) {
	now := s.cfg.Now()
	q := scope.query(time.Time{}, time.Time{}, 0, r.query("by"))
	var err error
	if q.From, err = r.momentQuery("from", now); err != nil {
		return q, err
	}
	if q.To, err = r.momentQuery("to", now); err != nil {
		return q, err
	}
	if q.To.IsZero() {
		q.To = now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-usualUsage)
	}
	if text := r.query("step"); text != "" {
		if q.Step, err = parseSpan(text); err != nil || q.Step <= 0 || q.Step%time.Hour != 0 {
			return q, fault.Field("step", "step must be a number of hours such as 1h or 24h, not %.40q.", text)
		}
	}
	if q.Step > 0 && q.To.Sub(q.From)/q.Step > mostSteps {
		return q, fault.Field("step", "That is more than %d parts. Choose a longer step.", mostSteps)
	}
	return q, nil
}

// callShape is a call as programs see it.
type callShape struct {
	ID          string          `json:"id"`
	Time        time.Time       `json:"time"`
	User        string          `json:"user"` // "" for one that is gone
	SandboxID   string          `json:"sandbox_id"`
	Label       string          `json:"label"`
	Provider    string          `json:"provider"`
	Protocol    string          `json:"protocol"`
	Asked       string          `json:"asked"`
	Model       string          `json:"model"`
	Stream      bool            `json:"stream"`
	Status      int             `json:"status"`
	FirstByteMS int64           `json:"first_byte_ms"`
	TookMS      int64           `json:"took_ms"`
	Tokens      usedTokensShape `json:"tokens"`
	Dollars     *float64        `json:"dollars"` // null when the price is not known
	Problem     string          `json:"problem"`
}

// wholeCallShape is one call with what was asked and answered.
type wholeCallShape struct {
	callShape
	Request string `json:"request"` // "" while content is not logged
	Answer  string `json:"answer"`
}

type callsShape struct {
	Calls []callShape `json:"calls"`
	Next  *string     `json:"next"` // continues; null when nothing is left
}

func newCallShape(c gateway.Call, user string) callShape {
	out := callShape{
		ID: c.ID, Time: c.Time.UTC(), User: user, SandboxID: c.Sandbox, Label: c.Label, Provider: c.Provider, Protocol: c.Protocol, Asked: c.Asked,
		Model: c.Model, Stream: c.Stream, Status: c.Status, FirstByteMS: c.FirstByte.Milliseconds(), TookMS: c.Took.Milliseconds(),
		Tokens: newUsedTokensShape(c.Tokens), Problem: c.Problem,
	}
	if c.Priced {
		dollars := inDollars(c.Cost)
		out.Dollars = &dollars
	}
	return out
}

// apiCalls answers with calls, newest first.
func (s *usageHandlers) apiCalls(ctx context.Context, r *request, _ none) (reply, error) {
	scope, err := s.usageScope(ctx, r)
	if err != nil {
		return reply{}, err
	}
	q := gateway.CallQuery{Sandbox: scope.sandbox, Model: r.query("model"), Before: r.query("next")}
	if q.Failed, err = truth(r, "failed"); err != nil {
		return reply{}, err
	}
	if q.Limit, err = r.intQuery("limit", usualCalls, 1, mostCalls); err != nil {
		return reply{}, err
	}
	calls, next, err := s.calls(ctx, scope, q)
	if err != nil {
		return reply{}, err
	}
	users, out := newOwners(s.cfg.Accounts), callsShape{Calls: make([]callShape, 0, len(calls))}
	for _, c := range calls {
		name, err := users.name(ctx, c.User)
		if err != nil {
			return reply{}, err
		}
		out.Calls = append(out.Calls, newCallShape(c, name))
	}
	if next != "" {
		out.Next = &next
	}
	return reply{body: out}, nil
}

// How many calls are shown at once.
const (
	usualCalls = 100
	mostCalls  = 500
)

// calls gives those in the scope, and the ID that continues them, "" when nothing is left.
func (s *usageHandlers) calls(ctx context.Context, scope usageScope, q gateway.CallQuery) (found []gateway.Call, next string, err error) {
	q.User = scope.user
	limit := q.Limit
	q.Limit++
	if found, err = s.cfg.Models.Calls(ctx, q); err != nil {
		return nil, "", err
	}
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].ID
	}
	return slices.DeleteFunc(found, func(c gateway.Call) bool { return !scope.may(c) }), next, nil
}

// apiCall answers with one call.
func (s *usageHandlers) apiCall(ctx context.Context, r *request, _ none) (reply, error) {
	c, err := s.call(ctx, r)
	if err != nil {
		return reply{}, err
	}
	name, err := newOwners(s.cfg.Accounts).name(ctx, c.User)
	return reply{body: wholeCallShape{newCallShape(c, name), c.Request, c.Answer}}, err
}

// call gives the call that the path names, if the caller may see it. Kind: NotFound.
func (s *usageHandlers) call(ctx context.Context, r *request) (gateway.Call, error) {
	c, err := s.cfg.Models.Call(ctx, r.param("id"))
	if err != nil && !fault.Is(err, fault.NotFound) {
		return gateway.Call{}, err
	}
	mine := usageScope{sandbox: r.who.SandboxID}
	if !r.isAdmin() {
		mine.user = r.who.User.ID
	}
	if err != nil || !mine.may(c) {
		return gateway.Call{}, fault.New(fault.NotFound, "There is no such call. Calls are kept for %d days.", gateway.KeepCalls/(24*time.Hour))
	}
	return c, nil
}
