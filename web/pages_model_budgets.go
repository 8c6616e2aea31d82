package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/views"
)

// budgetViews are the budgets that a person may see, with what is used of them now.
func (s *modelHandlers) budgetViews(ctx context.Context, r *request) ([]views.ModelBudget, error) {
	scope := ""
	if !r.isAdmin() {
		scope = r.who.User.ID
	}
	names, err := s.subjects(ctx, scope)
	if err != nil {
		return nil, err
	}
	var found []boundBudget
	if r.isAdmin() {
		found, err = s.allBudgets(ctx)
	} else {
		found, err = s.budgetsOfUser(ctx, scope)
	}
	if err != nil {
		return nil, err
	}
	var out []views.ModelBudget
	for _, b := range found {
		out = append(out, s.budgetView(r, b, names))
	}
	return out, nil
}

// budgetView makes a budget ready to show. One that many have is shown with the one who has used most of it.
func (s *modelHandlers) budgetView(r *request, b boundBudget, names subjects) views.ModelBudget {
	v := views.ModelBudget{Title: budgetTitle(r, b), Period: string(b.Period), Query: budgetQuery(b.Budget), Mine: r.isAdmin()}
	used := b.used
	if used == nil {
		used, v.Most = s.mostUsed(b.Budget, names[b.Scope])
	}
	v.Bounds = boundViews(b.Budget, used)
	return v
}

// budgetTitle says for whom a budget is.
func budgetTitle(r *request, b boundBudget) string {
	switch {
	case b.Scope == gateway.PerUser && !r.isAdmin():
		return "You"
	case b.Subject != "":
		return cmp.Or(b.name, b.Subject)
	case b.Scope == gateway.PerUser:
		return "Each user"
	case r.isAdmin():
		return "Each sandbox"
	}
	return "Each of your sandboxes"
}

// budgetQuery names a budget in an address.
func budgetQuery(b gateway.Budget) string {
	return url.Values{"scope": {string(b.Scope)}, "subject": {b.Subject}, "period": {string(b.Period)}}.Encode()
}

// mostUsed finds who has used most of a budget that many have.
func (s *modelHandlers) mostUsed(b gateway.Budget, names map[string]string) (used *gateway.Usage, name string) {
	most := 0.0
	for id, called := range names {
		u := s.usedBy(b, id)
		if u == nil {
			continue
		}
		if part := partUsed(b, *u); part > most || part == most && part > 0 && called < name {
			most, used, name = part, u, called
		}
	}
	return used, name
}

// partUsed is how much of a budget is used, by the bound that is nearest: 1 for all of it.
func partUsed(b gateway.Budget, u gateway.Usage) (most float64) {
	for _, one := range bounds(b, u) {
		most = max(most, float64(one.used)/float64(one.of))
	}
	return most
}

// budgetBound is one bound of a budget, with what is used of it.
type budgetBound struct {
	of, used int64
	text     func(n int64) string
	unit     string
}

// bounds are those that a budget has.
func bounds(b gateway.Budget, u gateway.Usage) []budgetBound {
	all := []budgetBound{
		{b.Requests, u.Requests, shortCount, "request"}, {b.Tokens, u.Tokens.Total(), shortCount, "token"}, {b.Cost, u.Cost, money, ""},
	}
	return slices.DeleteFunc(all, func(one budgetBound) bool { return one.of == 0 })
}

// nearlyUsed is from which part of a bound on it is shown that it is nearly used up, in percent.
const nearlyUsed = 80

// boundViews makes the bounds of a budget ready to show, with what is used of them unless that is nil.
func boundViews(b gateway.Budget, used *gateway.Usage) []views.ModelBound {
	var out []views.ModelBound
	for _, one := range bounds(b, *cmp.Or(used, &gateway.Usage{})) {
		v := views.ModelBound{Text: withUnit(one, one.of)}
		if used != nil {
			v.Used = one.text(one.used) + " of " + v.Text
			v.Part = int(min(100*one.used/one.of, 100)) // 9e16 at most, see mostDollars
			switch {
			case v.Part >= 100:
				v.Tone = "bad"
			case v.Part >= nearlyUsed:
				v.Tone = "busy"
			}
		}
		out = append(out, v)
	}
	return out
}

func withUnit(one budgetBound, n int64) string {
	if one.unit == "" {
		return one.text(n)
	}
	if n == 1 {
		return "1 " + one.unit
	}
	return one.text(n) + " " + one.unit + "s"
}

// shortCount writes a number, from a million on in millions with one decimal.
func shortCount(n int64) string {
	const million, tenth = 1_000_000, 100_000
	switch {
	case n < million:
		return grouped(n)
	case n%million < tenth || n >= 100*million:
		return grouped(n/million) + " M"
	}
	return grouped(n/million) + "." + strconv.FormatInt(n%million/tenth, 10) + " M"
}

// money writes millionths of a dollar: in cents, or smaller parts of a small amount.
func money(cost int64) string {
	const cent = millionths / 100
	if cost%cent == 0 || cost >= millionths {
		cents := (cost + cent/2) / cent
		return "$" + grouped(cents/100) + "." + fmt.Sprintf("%02d", cents%100)
	}
	return "$" + strconv.FormatFloat(dollarsOf(cost), 'f', 4, 64)
}

// pageNewBudget shows the form of a new budget.
func (s *modelHandlers) pageNewBudget(ctx context.Context, r *request) (templ.Component, error) {
	return s.budgetForm(ctx, r, views.BudgetForm{})
}

// askedBudget finds the budget that the address names. Kind: NotFound.
func (s *modelHandlers) askedBudget(ctx context.Context, r *request) (boundBudget, error) {
	b := gateway.Budget{Scope: gateway.Scope(r.query("scope")), Period: gateway.Period(r.query("period"))}
	name, err := s.budgetOf(ctx, r, &b, r.query("subject"))
	if err != nil {
		return boundBudget{}, err
	}
	for _, one := range s.cfg.Models.Budgets() {
		if one.Scope == b.Scope && one.Subject == b.Subject && one.Period == b.Period {
			return boundBudget{Budget: one, name: name}, nil
		}
	}
	return boundBudget{}, fault.New(fault.NotFound, "There is no such budget. It may have been deleted.")
}

// pageBudget shows the form of a budget that there is.
func (s *modelHandlers) pageBudget(ctx context.Context, r *request) (templ.Component, error) {
	b, err := s.askedBudget(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.BudgetForm{Requests: numberField(b.Requests), Tokens: numberField(b.Tokens)}
	if b.Cost > 0 {
		v.Dollars.Value = strconv.FormatFloat(dollarsOf(b.Cost), 'f', -1, 64)
	}
	return s.knownBudgetForm(ctx, r, b, v)
}

func numberField(n int64) views.Field {
	if n == 0 {
		return views.Field{}
	}
	return views.Field{Value: grouped(n)}
}

func (s *modelHandlers) knownBudgetForm(ctx context.Context, r *request, b boundBudget, v views.BudgetForm) (templ.Component, error) {
	v.Known = budgetTitle(r, b) + ", per " + string(b.Period)
	v.URL = budgetsPath + "/edit?" + budgetQuery(b.Budget)
	return s.budgetForm(ctx, r, v)
}

// budgetForm shows the form of a budget, which is a new one when it is not known.
func (s *modelHandlers) budgetForm(ctx context.Context, r *request, v views.BudgetForm) (templ.Component, error) {
	if v.Known == "" {
		v.URL = budgetsPath
		names, err := s.subjects(ctx, "")
		if err != nil {
			return nil, err
		}
		v.Users, v.Sandboxes = names.options(gateway.PerUser), names.options(gateway.PerSandbox)
	}
	if r.byScript() {
		return views.BudgetSheet(v), nil
	}
	v.Frame = s.frame(r, "Budget", "settings")
	return views.BudgetFormPage(v), nil
}

// options are the first of those that can have a budget of their own, by name.
func (n subjects) options(scope gateway.Scope) []views.Option {
	var out []views.Option
	for id, name := range n[scope] {
		out = append(out, views.Option{Value: string(scope) + " " + id, Text: name})
	}
	slices.SortFunc(out, func(a, b views.Option) int { return cmp.Compare(a.Text, b.Text) })
	return out[:min(len(out), mostChoices)]
}

// postedBounds reads the bounds from the form.
func postedBounds(r *request, b *gateway.Budget) error {
	var err error
	if b.Requests, err = enteredCount(r, "requests"); err != nil {
		return err
	}
	if b.Tokens, err = enteredCount(r, "tokens"); err != nil {
		return err
	}
	dollars := 0.0
	if text := strings.TrimPrefix(r.field("dollars"), "$"); text != "" {
		dollars, err = strconv.ParseFloat(plainNumber(text), 64)
		if err != nil {
			return fault.Field("dollars", "Enter an amount such as 5 or 2.50.")
		}
	}
	b.Cost, err = costOf(dollars)
	return err
}

// plainNumber takes out of a number what people write between thousands, and writes a comma before cents as a point.
func plainNumber(text string) string {
	text = strings.NewReplacer(" ", "", "\u00a0", "", "_", "").Replace(text)
	if whole, part, found := strings.Cut(text, ","); found && len(part) < 3 && !strings.Contains(text, ".") {
		return whole + "." + part
	}
	return strings.ReplaceAll(text, ",", "")
}

// multiples are the endings of a count, as people write it.
var multiples = map[string]float64{"k": 1e3, "m": 1e6, "b": 1e9}

// enteredCount reads how many of something a form allows: "1000", "1,000", "50k", "2 M". Nothing is 0.
func enteredCount(r *request, field string) (int64, error) {
	text := strings.ToLower(r.field(field))
	if text == "" {
		return 0, nil
	}
	times := 1.0
	for ending, by := range multiples {
		if cut, ok := strings.CutSuffix(text, ending); ok {
			text, times = strings.TrimSpace(cut), by
		}
	}
	n, err := strconv.ParseFloat(plainNumber(text), 64)
	n *= times
	if err != nil || !(n >= 0 && n <= mostCount) || n != math.Trunc(n) {
		return 0, fault.Field(field, "Enter a whole number, such as 1000, 50k or 2M.")
	}
	return int64(n), nil
}

// mostCount bounds the requests and tokens of a budget.
const mostCount = 1_000_000_000_000_000

// submitNewBudget adds a budget.
func (s *modelHandlers) submitNewBudget(ctx context.Context, r *request) (string, error) {
	scope, subject, _ := strings.Cut(r.form("subject"), " ")
	b := gateway.Budget{Scope: gateway.Scope(scope), Period: gateway.Period(r.form("period"))}
	name, err := s.budgetOf(ctx, r, &b, subject)
	if err != nil {
		return "", err
	}
	for _, one := range s.cfg.Models.Budgets() {
		if one.Scope == b.Scope && one.Subject == b.Subject && one.Period == b.Period {
			return "", &fault.Error{Kind: fault.Conflict, Field: "subject", Message: "There is a budget for " + aboutBudget(b, name) + " already. Edit that one."}
		}
	}
	if err := postedBounds(r, &b); err != nil {
		return "", err
	}
	return done(modelsPath, "budget-saved"), s.cfg.Models.SetBudget(ctx, b)
}

// submitBudget changes the bounds of a budget that there is.
func (s *modelHandlers) submitBudget(ctx context.Context, r *request) (string, error) {
	b, err := s.askedBudget(ctx, r)
	if err != nil {
		return "", err
	}
	if err := postedBounds(r, &b.Budget); err != nil {
		return "", err
	}
	return done(modelsPath, "budget-saved"), s.cfg.Models.SetBudget(ctx, b.Budget)
}

// againBudget shows the form again with its values, and the error beside its field.
func (s *modelHandlers) againBudget(ctx context.Context, r *request, cause error) (templ.Component, error) {
	var v views.BudgetForm
	v.Fault = r.fill(map[string]*views.Field{
		"subject": &v.Subject, "period": &v.Period, "requests": &v.Requests, "tokens": &v.Tokens, "dollars": &v.Dollars,
	}, cause)
	if r.query("scope") == "" {
		return s.budgetForm(ctx, r, v)
	}
	b, err := s.askedBudget(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.knownBudgetForm(ctx, r, b, v)
}

// pageDeleteBudget asks before a budget is deleted.
func (s *modelHandlers) pageDeleteBudget(ctx context.Context, r *request) (templ.Component, error) {
	b, err := s.askedBudget(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.DeleteModels{
		Title: "Delete the budget for " + aboutBudget(b.Budget, b.name) + "?", URL: budgetsPath + "/delete?" + budgetQuery(b.Budget), Button: "Delete budget",
		Lost: []string{"Requests are not bounded by it any more, from now on."},
	}
	if b.Subject != "" {
		v.Lost = []string{"The budget for each " + string(b.Scope) + " binds it from now on, if there is one."}
	}
	return s.deleteForm(r, v), nil
}

// submitDeleteBudget deletes a budget.
func (s *modelHandlers) submitDeleteBudget(ctx context.Context, r *request) (string, error) {
	b, err := s.askedBudget(ctx, r)
	if err != nil {
		return "", err
	}
	return done(modelsPath, "budget-deleted"), s.cfg.Models.RemoveBudget(ctx, b.Scope, b.Subject, b.Period)
}
