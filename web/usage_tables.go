package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/views"
)

// How much of each thing the page names.
const (
	mostInTable = 20
	mostBudgets = 24
	mostUnknown = 5
	littleLeft  = 80 // percent of a budget that is used
)

// usageTables are what each model, sandbox, provider and user used, as tables and with what else the page makes of them.
type usageTables struct {
	shown    []views.ModelTable
	unpriced bool            // of a model that was used the price is not known
	unknown  string          // a sentence about models whose price is not known, or ""
	boxes    []gateway.Usage // by sandbox
	users    []gateway.Usage // by user; none where only one is shown
}

func (s *usageHandlers) usageTables(ctx context.Context, r *request, scope usageScope, from, to time.Time) (out usageTables, err error) {
	ask := func(by string) []gateway.Usage {
		var found []gateway.Usage
		if err == nil {
			found, err = s.cfg.Models.Usage(ctx, scope.query(from, to, 0, by))
		}
		return found
	}
	models, providers := ask("model"), ask("provider")
	out.boxes = ask("sandbox")
	if scope.user == "" {
		out.users = ask("user")
	}
	if err != nil {
		return out, err
	}
	priced := s.priced()
	out.unpriced = !all(models, priced)
	user := r.query("user")
	byModel := tableOf("by-model", "By model", "Model", models, false, func(u gateway.Usage) (string, string) {
		if u.Key == "" {
			return "no model reached", ""
		}
		return u.Key, usageURL(callsPath, user, "model", u.Key)
	})
	for i, u := range models[:len(byModel.Rows)] {
		if !priced(u) {
			byModel.Rows[i].Figures[len(byModel.Rows[i].Figures)-1] = noPrice
		}
	}
	out.unknown = unknownPrices(slices.DeleteFunc(slices.Clone(models), priced))
	out.shown = []views.ModelTable{
		byModel,
		tableOf("by-sandbox", "By sandbox", "Sandbox", out.boxes, out.unpriced, func(u gateway.Usage) (string, string) {
			if u.Key == "" {
				return "from outside, with a token", ""
			}
			return cmp.Or(u.Label, u.Key), usageURL(callsPath, user, "sandbox", cmp.Or(u.Label, u.Key))
		}),
		tableOf("by-provider", "By provider", "Provider", providers, out.unpriced, func(u gateway.Usage) (string, string) { return cmp.Or(u.Key, "no provider reached"), "" }),
		tableOf("by-user", "By user", "User", out.users, out.unpriced, func(u gateway.Usage) (string, string) {
			return cmp.Or(u.Label, u.Key), usageURL(usagePath, u.Label, "range", r.query("range"))
		}),
	}
	return out, nil
}

// tableOf makes a table of the most used. unpriced is as for usageCost; called gives the name of a row, and where it leads.
func tableOf(id, title, what string, list []gateway.Usage, unpriced bool, called func(gateway.Usage) (name, url string)) views.ModelTable {
	t := views.ModelTable{ID: id, Title: title, What: what}
	for _, u := range list[:min(len(list), mostInTable)] {
		name, url := called(u)
		t.Rows = append(t.Rows, views.ModelTableRow{Name: name, URL: url, Figures: usageFigures(u, unpriced)})
	}
	if n := len(list) - mostInTable; n > 0 {
		t.More = amount(int64(n), "more with less use", "more with less use") + "."
	}
	return t
}

// priced gives what reports whether the cost of a model's use is known.
func (s *usageHandlers) priced() func(gateway.Usage) bool {
	prices := s.cfg.Models.Prices()
	return func(u gateway.Usage) bool { return u.Cost > 0 || u.Tokens.Total() == 0 || priceKnown(prices, u.Key) }
}

// all reports whether is is true of all of a list.
func all(list []gateway.Usage, is func(gateway.Usage) bool) bool {
	return !slices.ContainsFunc(list, func(u gateway.Usage) bool { return !is(u) })
}

// priceKnown reports whether a model has a price, by its name or by the last part of it.
func priceKnown(prices []gateway.Price, model string) bool {
	last := model[strings.LastIndexByte(model, '/')+1:]
	return slices.ContainsFunc(prices, func(p gateway.Price) bool {
		begin, open := strings.CutSuffix(p.Model, "*")
		return p.Model == model || p.Model == last || open && (strings.HasPrefix(model, begin) || strings.HasPrefix(last, begin))
	})
}

// unknownPrices names models whose cost is not in the sums, or is "" without any.
func unknownPrices(models []gateway.Usage) string {
	if len(models) == 0 {
		return ""
	}
	var names []string
	for _, u := range models[:min(len(models), mostUnknown)] {
		names = append(names, cmp.Or(u.Key, "models without a name"))
	}
	if n := len(models) - mostUnknown; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return "Not in the cost, as the price is not known: " + strings.Join(names, ", ") + ". An admin can add prices to the file prices.json in the data folder."
}

// usageBudgets are the budgets that bind the user who is shown and the sandboxes that were used; where all users are shown, those that bind
// each.
func (s *usageHandlers) usageBudgets(scope usageScope, used usageTables, now time.Time) (out []views.UsageBudget) {
	users := used.users
	if scope.user != "" {
		users = []gateway.Usage{{Key: scope.user}}
	}
	for _, u := range users[:min(len(users), mostInTable)] {
		whose := "Requests"
		if u.Label != "" {
			whose = u.Label + ": requests"
		}
		for _, at := range s.cfg.Models.Standing(u.Key, "") {
			out = append(out, budgetBounds(whose, at, now)...)
		}
	}
	for _, u := range used.boxes[:min(len(used.boxes), mostInTable)] {
		if u.Key == "" {
			continue
		}
		for _, at := range s.cfg.Models.Standing("", u.Key) {
			out = append(out, budgetBounds(cmp.Or(u.Label, u.Key)+": requests", at, now)...)
		}
	}
	return out[:min(len(out), mostBudgets)]
}

// budgetBounds are the bounds of one budget. whose ends with the word for requests, in whose place each bound's stands.
func budgetBounds(whose string, at gateway.Standing, now time.Time) (out []views.UsageBudget) {
	ends := aheadOf(at.Ends, now)
	for _, b := range []struct {
		what        string
		used, bound int64
		write       func(int64) string
	}{{"requests", at.Used.Requests, at.Requests, grouped}, {"tokens", at.Used.Tokens.Total(), at.Tokens, grouped}, {"cost", at.Used.Cost, at.Cost, costText}} {
		if b.bound <= 0 {
			continue
		}
		title := strings.Replace(strings.Replace(whose, "requests", b.what, 1), "Requests", strings.ToUpper(b.what[:1])+b.what[1:], 1)
		part := int(100 * min(float64(b.used)/float64(b.bound), 1))
		v := views.UsageBudget{Title: title + " a " + string(at.Period), Now: b.write(b.used), Of: "of " + b.write(b.bound), Part: strconv.Itoa(part), Ends: ends}
		switch {
		case b.used >= b.bound:
			v.Tone, v.Word = "bad", "spent"
		case part >= littleLeft:
			v.Tone, v.Word = "busy", "nearly spent"
		}
		out = append(out, v)
	}
	return out
}
