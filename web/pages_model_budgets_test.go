package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
)

func TestBudgetForm_TakesNumbersAsPeopleWriteThem(t *testing.T) {
	s := newStage(t)
	s.addProvider("", "claude", gateway.Anthropic)
	s.put("ada", "lab", nil)
	one := func() gateway.Budget {
		t.Helper()
		all := s.server.cfg.Models.Budgets()
		if len(all) != 1 {
			t.Fatalf("the budgets are %+v", all)
		}
		return all[0]
	}
	ada := "user " + s.users["ada"].ID
	s.post("root", budgetsPath, fields("subject", ada, "period", "month", "requests", "1,000", "tokens", "2.5 M", "dollars", "$12.50")).leads(modelsPath + "?done=budget-saved")
	want := gateway.Budget{Scope: gateway.PerUser, Subject: s.users["ada"].ID, Period: gateway.Month, Requests: 1000, Tokens: 2_500_000, Cost: 12_500_000}
	if got := one(); got != want {
		t.Errorf("it is %+v, want %+v", got, want)
	}
	v := s.post("root", budgetsPath, fields("subject", ada, "period", "month", "requests", "5")).is(http.StatusConflict)
	if v.find("#budget-subject-fault") == nil || attr(v.need("#budget-requests"), "value") != "5" {
		t.Error("a second one is not refused by its field")
	}
	for _, c := range [][3]string{{"requests", "lots", "whole number"}, {"tokens", "0.5", "whole number"}, {"dollars", "five", "amount"}, {"requests", "-1", "whole number"}, {"tokens", "1e300", "whole number"}, {"dollars", "NaN", "Dollars are a number"}} {
		v := s.post("root", budgetsPath, fields("subject", "sandbox", "period", "day", c[0], c[1])).is(http.StatusBadRequest)
		if got := textOf(v.need("#budget-" + c[0] + "-fault")); !strings.Contains(got, c[2]) || attr(v.need("#budget-"+c[0]), "value") != c[1] || v.chosen("#budget-subject") != "sandbox" {
			t.Errorf("%s %q: says %q", c[0], c[1], got)
		}
	}
	if v := s.post("root", budgetsPath, fields("subject", "sandbox", "period", "day")).is(http.StatusBadRequest); v.find("#budget-requests-fault") == nil {
		t.Error("a budget without a bound is taken")
	}
	s.post("root", budgetsPath, fields("subject", "user 0123456789abcdef", "period", "day", "requests", "1")).is(http.StatusBadRequest)

	at := budgetsPath + "/edit?" + budgetQuery(want)
	v = s.get("root", at)
	if attr(v.need("#budget-dollars"), "value") != "12.5" || attr(v.need("#budget-requests"), "value") != "1,000" || v.find("#budget-subject") != nil {
		t.Error("the form is not as it should be")
	}
	s.post("root", at, fields("requests", "none")).is(http.StatusBadRequest)
	s.post("root", at, fields("requests", "50k", "dollars", "1,5")).leads(modelsPath + "?done=budget-saved")
	want.Requests, want.Tokens, want.Cost = 50_000, 0, 1_500_000
	if got := one(); got != want {
		t.Errorf("it is %+v, want %+v", got, want)
	}
	at = budgetsPath + "/delete?" + budgetQuery(want)
	if got := textOf(s.get("root", at).need("main")); !strings.Contains(got, "Delete the budget for user ada, per month?") {
		t.Errorf("asks %q", got)
	}
	s.post("root", at, nil).leads(modelsPath + "?done=budget-deleted")
	s.post("root", at, nil).is(http.StatusNotFound)
}

func TestModelsPage_ShowsWhatIsUsedOfBudgets(t *testing.T) {
	s := newStage(t)
	s.addProvider("", "claude", gateway.Anthropic)
	box := s.put("ada", "lab", nil)
	for _, b := range []gateway.Budget{
		{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1000},
		{Scope: gateway.PerUser, Subject: s.users["bob"].ID, Period: gateway.Day, Requests: 3_000_000, Cost: 20_000},
		{Scope: gateway.PerSandbox, Subject: box.ID, Period: gateway.Month, Tokens: 10},
	} {
		if err := s.server.cfg.Models.SetBudget(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string][]string{
		"root": {"Each user", "1,000 requests", "bob", "0 of 3 M requests", "$0.00 of $0.02", "lab", "0 of 10 tokens"},
		"ada":  {"You", "0 of 1,000 requests", "lab", "0 of 10 tokens"},
		"bob":  {"You", "0 of 3 M requests"},
	} {
		got := textOf(s.get(user, modelsPath).need("#budgets"))
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s sees %q, without %q", user, got, text)
			}
		}
		if user != "root" && (strings.Contains(got, "Edit") || user == "bob" && strings.Contains(got, "lab") || user == "ada" && strings.Contains(got, "3 M")) {
			t.Errorf("%s sees %q", user, got)
		}
	}
}

func TestBoundViews_SayWhenABudgetIsUsedUp(t *testing.T) {
	b := gateway.Budget{Requests: 10, Tokens: 4_000_000, Cost: 1_000_000}
	for _, c := range []struct {
		used gateway.Usage
		want string
	}{
		{gateway.Usage{Requests: 7, Tokens: gateway.Tokens{Input: 1_250_000}, Cost: 1234}, "7 of 10 requests , 1.2 M of 4 M tokens , $0.0012 of $1.00 "},
		{gateway.Usage{Requests: 8, Tokens: gateway.Tokens{Output: 5_000_000}, Cost: 1_234_567}, "8 of 10 requests busy, 5 M of 4 M tokens bad, $1.23 of $1.00 bad"},
	} {
		var got []string
		for _, v := range boundViews(b, &c.used) {
			got = append(got, v.Used+" "+v.Tone)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("got %q, want %q", text, c.want)
		}
	}
	if got := boundViews(b, nil); got[0].Text != "10 requests" || got[0].Used != "" {
		t.Errorf("without use: %+v", got)
	}
}
