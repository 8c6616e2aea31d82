package web

import (
	"context"
	"math"
	"net/http"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/sandbox"
)

// budgetShape is a budget as programs see it. A bound of 0 is none.
type budgetShape struct {
	Scope     string          `json:"scope"`
	Subject   string          `json:"subject"`    // name of the user or sandbox; "" for each one without a budget of its own
	SubjectID string          `json:"subject_id"` // likewise
	Period    string          `json:"period"`
	Requests  int64           `json:"requests"`
	Tokens    int64           `json:"tokens"`
	Dollars   float64         `json:"dollars"`
	Used      *budgetUseShape `json:"used"` // null for a budget of many
}

// budgetUseShape is what was used of a budget in the period that runs.
type budgetUseShape struct {
	Requests int64   `json:"requests"`
	Tokens   int64   `json:"tokens"`
	Dollars  float64 `json:"dollars"`
}

type budgetsShape struct {
	Budgets []budgetShape `json:"budgets"`
}

// millionths are the smallest parts of a dollar that are counted.
const millionths = 1_000_000

func dollarsOf(cost int64) float64 { return float64(cost) / millionths }

func newBudgetShape(b gateway.Budget, name string, used *gateway.Usage) budgetShape {
	out := budgetShape{Scope: string(b.Scope), Subject: name, SubjectID: b.Subject, Period: string(b.Period), Requests: b.Requests, Tokens: b.Tokens, Dollars: dollarsOf(b.Cost)}
	if used != nil {
		out.Used = &budgetUseShape{used.Requests, tokensOf(used.Tokens), dollarsOf(used.Cost)}
	}
	return out
}

// tokensOf are all tokens of a usage, as budgets count them.
func tokensOf(t gateway.Tokens) int64 { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// apiBudgets lists the budgets: all for an admin, those that bind the caller for others, and with a sandbox those that bind it.
func (s *modelHandlers) apiBudgets(ctx context.Context, r *request, _ none) (reply, error) {
	var found []boundBudget
	var err error
	switch {
	case r.query("sandbox") != "":
		found, err = s.budgetsOfBox(ctx, r, r.query("sandbox"))
	case r.isAdmin():
		found, err = s.allBudgets(ctx)
	default:
		found, err = s.budgetsOfUser(ctx, r.who.User.ID)
	}
	out := budgetsShape{Budgets: []budgetShape{}}
	for _, b := range found {
		out.Budgets = append(out.Budgets, newBudgetShape(b.Budget, b.name, b.used))
	}
	return reply{body: out}, err
}

// budgetBody is a budget that is to be. Subject is a name or an id.
type budgetBody struct {
	Scope    string  `json:"scope"`
	Subject  string  `json:"subject"`
	Period   string  `json:"period"`
	Requests int64   `json:"requests"`
	Tokens   int64   `json:"tokens"`
	Dollars  float64 `json:"dollars"`
}

// apiPutBudget adds a budget, or changes the one of its scope, subject and period.
func (s *modelHandlers) apiPutBudget(ctx context.Context, r *request, in budgetBody) (reply, error) {
	cost, err := costOf(in.Dollars)
	if err != nil {
		return reply{}, err
	}
	b := gateway.Budget{Scope: gateway.Scope(in.Scope), Period: gateway.Period(in.Period), Requests: in.Requests, Tokens: in.Tokens, Cost: cost}
	name, err := s.budgetOf(ctx, r, &b, in.Subject)
	if err != nil {
		return reply{}, err
	}
	if err := s.cfg.Models.SetBudget(ctx, b); err != nil {
		return reply{}, err
	}
	return reply{body: newBudgetShape(b, name, s.usedOf(b))}, nil
}

// apiDeleteBudget deletes the budget of a scope, subject and period.
func (s *modelHandlers) apiDeleteBudget(ctx context.Context, r *request, _ none) (reply, error) {
	b := gateway.Budget{Scope: gateway.Scope(r.query("scope")), Period: gateway.Period(r.query("period"))}
	if _, err := s.budgetOf(ctx, r, &b, r.query("subject")); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Models.RemoveBudget(ctx, b.Scope, b.Subject, b.Period)
}

// costOf gives an amount of dollars as budgets count it. Kind: Invalid.
func costOf(dollars float64) (int64, error) {
	if !(dollars >= 0 && dollars <= mostDollars) {
		return 0, fault.Field("dollars", "Dollars are a number from 0 to %s.", grouped(mostDollars))
	}
	return int64(math.Round(dollars * millionths)), nil
}

// mostDollars bounds a budget, so that it can be counted in millionths.
const mostDollars = 1_000_000_000

// subjects are the names of all that can have a budget of their own, by id.
type subjects map[gateway.Scope]map[string]string

// subjects looks them up: all users and sandboxes, or those of one user.
func (s *modelHandlers) subjects(ctx context.Context, user string) (subjects, error) {
	out := subjects{gateway.PerUser: {}, gateway.PerSandbox: {}}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: user})
	if err != nil {
		return nil, err
	}
	for _, box := range boxes {
		out[gateway.PerSandbox][box.ID] = box.Name
	}
	users, err := s.cfg.Accounts.Users(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if user == "" || u.ID == user {
			out[gateway.PerUser][u.ID] = u.Name
		}
	}
	return out, nil
}

// find gives the id and the name of what a name or an id means. Kind: Invalid.
func (n subjects) find(scope gateway.Scope, text string) (id, name string, err error) {
	if text == "" {
		return "", "", nil
	}
	if name, ok := n[scope][text]; ok {
		return text, name, nil
	}
	for id, name := range n[scope] {
		if name == text {
			return id, name, nil
		}
	}
	return "", "", fault.Field("subject", "There is no %.16s named %.64q.", string(scope), text)
}

// boundBudget is a budget with the name of its subject, and with what is used of it where it is one's alone.
type boundBudget struct {
	gateway.Budget
	name string
	used *gateway.Usage
}

// allBudgets are those of the server.
func (s *modelHandlers) allBudgets(ctx context.Context) ([]boundBudget, error) {
	names, err := s.subjects(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []boundBudget
	for _, b := range s.cfg.Models.Budgets() {
		out = append(out, boundBudget{b, names[b.Scope][b.Subject], s.usedOf(b)})
	}
	return out, nil
}

// usedOf is what is used of a budget; nil for one of many.
func (s *modelHandlers) usedOf(b gateway.Budget) *gateway.Usage {
	if b.Subject == "" {
		return nil
	}
	return s.usedBy(b, b.Subject)
}

// usedBy is what a user or a sandbox has used of a budget that binds it; nil when it does not.
func (s *modelHandlers) usedBy(b gateway.Budget, id string) *gateway.Usage {
	user, box := id, ""
	if b.Scope == gateway.PerSandbox {
		user, box = "", id
	}
	for _, one := range s.cfg.Models.Standing(user, box) {
		if one.Scope == b.Scope && one.Period == b.Period && one.Subject == b.Subject {
			return &one.Used
		}
	}
	return nil
}

// budgetsOfUser are the budgets that bind a user, and those of their sandboxes.
func (s *modelHandlers) budgetsOfUser(ctx context.Context, user string) ([]boundBudget, error) {
	names, err := s.subjects(ctx, user)
	if err != nil {
		return nil, err
	}
	var out []boundBudget
	for _, one := range s.cfg.Models.Standing(user, "") {
		if one.Scope == gateway.PerUser {
			out = append(out, boundBudget{one.Budget, names[one.Scope][one.Subject], &one.Used})
		}
	}
	for _, b := range s.cfg.Models.Budgets() {
		if name, ok := names[b.Scope][b.Subject]; b.Scope == gateway.PerSandbox && (ok || b.Subject == "") {
			out = append(out, boundBudget{b, name, s.usedOf(b)})
		}
	}
	return out, nil
}

// budgetsOfBox are the budgets that bind a sandbox, with its owner's.
func (s *modelHandlers) budgetsOfBox(ctx context.Context, r *request, name string) ([]boundBudget, error) {
	h, err := s.resolve(ctx, r.who, name)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	names, err := s.subjects(ctx, box.Owner)
	if err != nil {
		return nil, err
	}
	var out []boundBudget
	for _, one := range s.cfg.Models.Standing(box.Owner, box.ID) {
		out = append(out, boundBudget{one.Budget, names[one.Scope][one.Subject], &one.Used})
	}
	return out, nil
}

// aboutBudget is what is recorded of a budget.
func aboutBudget(b gateway.Budget, name string) string {
	if b.Subject == "" {
		return "each " + string(b.Scope) + ", per " + string(b.Period)
	}
	return string(b.Scope) + " " + name + ", per " + string(b.Period)
}

// budgetOf completes a budget by its subject, which is a name or an id, and has it recorded. Kind: Invalid.
func (s *modelHandlers) budgetOf(ctx context.Context, r *request, b *gateway.Budget, subject string) (name string, err error) {
	if b.Scope != gateway.PerUser && b.Scope != gateway.PerSandbox {
		return "", fault.Field("scope", "The scope is %q or %q.", gateway.PerUser, gateway.PerSandbox)
	}
	if b.Period != gateway.Day && b.Period != gateway.Month {
		return "", fault.Field("period", "The period is %q or %q.", gateway.Day, gateway.Month)
	}
	names, err := s.subjects(ctx, "")
	if err != nil {
		return "", err
	}
	if b.Subject, name, err = names.find(b.Scope, subject); err == nil {
		r.object = aboutBudget(*b, name)
	}
	return name, err
}
