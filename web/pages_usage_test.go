package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// usedStage is a stage whose users ada and bob have asked models: ada in the sandbox lab, bob with a token.
func usedStage(t *testing.T) (*stage, *gatewaytest.Store) {
	t.Helper()
	s := newStage(t)
	box := s.put("ada", "lab", nil)
	store := gatewaytest.NewStore()
	fillCalls(t, store, someCalls("ada", s.users["ada"].ID, box.ID, "lab", stageTime.Add(-90*time.Minute))...)
	fillCalls(t, store, someCalls("bob", s.users["bob"].ID, "", "editor", stageTime.Add(-40*24*time.Hour))...)
	s.models(store)
	return s, store
}

// linked is where the link with a text leads, or "".
func linked(v view, text string) string {
	for _, a := range v.all("a") {
		if textOf(a) == text {
			return attr(a, "href")
		}
	}
	return ""
}

// models has the server use a gateway on a store.
func (s *stage) models(store gateway.Store) {
	s.t.Helper()
	s.server.cfg.Models = openModels(s.t, store, func() time.Time { return stageTime })
}

func TestUsagePage_ShowsOnesOwnSumsBudgetsAndTables(t *testing.T) {
	s, _ := usedStage(t)
	for _, b := range []gateway.Budget{
		{Scope: gateway.PerUser, Period: gateway.Day, Requests: 3, Cost: 1_000_000}, {Scope: gateway.PerSandbox, Period: gateway.Month, Tokens: 1500},
	} {
		if err := s.server.cfg.Models.SetBudget(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	got := s.get("ada", "/usage").is(http.StatusOK)
	main := textOf(got.need("main"))
	for _, want := range []string{
		"Today", "1 failed", "1,260", "1,007 in, 203 out, 50 cached", "$0.00325", "Requests a day", "2 of 3", "Cost a day", "of $1.00", "lab: tokens a month", "1,260 of 1,500", "nearly spent",
		"Begins anew in", "home-made", "price not known", "no model reached", "no provider reached", "Not in the cost, as the price is not known: home-made.",
	} {
		if !strings.Contains(main, want) {
			t.Errorf("no %q in %s", want, main)
		}
	}
	for _, never := range []string{"editor", "bob", "By user"} {
		if strings.Contains(main, never) {
			t.Errorf("ada sees %q", never)
		}
	}
	if got.find("#log-user") != nil {
		t.Error("a member may choose a user")
	}
	if got := textOf(s.get("ada", "/usage?range=30d").is(http.StatusOK).need("caption")); !strings.Contains(got, "the last 30 days") {
		t.Errorf("the table says %q", got)
	}
	s.get("ada", "/usage?range=7y").is(http.StatusBadRequest)
	s.get("ada", "/usage?user=bob").is(http.StatusBadRequest)
}

func TestUsagePage_SaysWhereAPriceIsNotKnown(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "lab", nil)
	store := gatewaytest.NewStore()
	fillCalls(t, store, someCalls("ada", s.users["ada"].ID, box.ID, "lab", stageTime.Add(-90*time.Minute))[1:]...) // none has a price
	s.models(store)
	got := s.get("ada", "/usage").is(http.StatusOK)
	if text := textOf(got.need("main")); strings.Count(text, "$0.00") != 2 { // the call that reached no model, and no provider
		t.Errorf("what has no price is free: %s", text)
	}
	for _, of := range []string{".usage-sums", ".usage-table", ".usage-parts"} {
		if text := textOf(got.need(of)); !strings.Contains(text, noPrice) {
			t.Errorf("%s says %s", of, text)
		}
	}
	if text := textOf(s.get("ada", "/usage/calls").is(http.StatusOK).need("main")); !strings.Contains(text, noPrice) || strings.Contains(text, "$0.00") {
		t.Errorf("the calls say %s", text)
	}
}

func TestUsagePage_AdminsSeeAllAndChooseAUser(t *testing.T) {
	s, _ := usedStage(t)
	got := s.get("root", "/usage").is(http.StatusOK)
	if text := textOf(got.need("main")); !strings.Contains(text, "By user") || got.find("#log-user") == nil {
		t.Errorf("says %s", text)
	}
	text := textOf(s.get("root", "/usage?user=bob").is(http.StatusOK).need("main")) // all that he did was before the last month
	if strings.Contains(text, "lab") || !strings.Contains(text, "This month") {
		t.Errorf("says %s", text)
	}
	s.get("root", "/usage?user=nobody").is(http.StatusBadRequest)
}

func TestUsagePage_LeadsToTheSettingsWhereNothingWasUsed(t *testing.T) {
	s := newStage(t)
	s.models(gatewaytest.NewStore())
	empty := s.get("ada", "/usage").is(http.StatusOK).need(".empty")
	if link := in(empty, "a"); attr(link, "href") != "/settings/models" || textOf(link) != "Set up models" {
		t.Errorf("says %q", textOf(empty))
	}
	p := gateway.Provider{Name: "local", Kind: gateway.Ollama, BaseURL: "http://127.0.0.1:1"}
	if _, err := s.server.cfg.Models.SetProvider(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if text := textOf(s.get("ada", "/usage").need(".empty")); !strings.Contains(text, "http://127.0.0.1:7465") {
		t.Errorf("says %q", text)
	}
}

func TestUsageSeries_HasEveryPart(t *testing.T) {
	s, _ := usedStage(t)
	for _, c := range []struct {
		who, query string
		parts      int
		requests   float64
	}{{"ada", "?range=24h", 24, 3}, {"ada", "?range=30d", 30, 3}, {"bob", "?range=30d", 30, 0}, {"root", "?range=24h&user=ada", 24, 3}} {
		var out struct {
			Step, Since, Until float64
			Time               []float64
			Columns            map[string][]float64
		}
		if err := json.Unmarshal(s.get(c.who, "/usage/series"+c.query).is(http.StatusOK).Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		var sum float64
		for _, v := range out.Columns["requests"] {
			sum += v
		}
		if len(out.Time) != c.parts || len(out.Columns["dollars"]) != c.parts || sum != c.requests || out.Until-out.Since != out.Step*float64(c.parts) {
			t.Errorf("%s %s: %v requests in %d parts, %+v", c.who, c.query, sum, len(out.Time), out)
		}
	}
	s.get("ada", "/usage/series?user=bob").is(http.StatusBadRequest)
}

func TestCallsPage_ShowsOnesOwnCallsAndFindsThem(t *testing.T) {
	s, _ := usedStage(t)
	got := s.get("ada", "/usage/calls").is(http.StatusOK)
	rows := got.all("tr.call")
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, want := range []string{"lab best → answered by gpt-5 cloud Chat Completions 200 1,050 200 $0.00325 320 ms 2.00 s", "price not known", "Failed, 404"} {
		if text := textOf(rows[i]); !strings.Contains(text, want) {
			t.Errorf("row %d is %q", i, text)
		}
	}
	for query, want := range map[string]int{"?failed=true": 1, "?model=gpt-5": 1, "?sandbox=lab": 3, "?sandbox=attic": 0, "?before=ada-8": 1} {
		if n := len(s.get("ada", "/usage/calls"+query).is(http.StatusOK).all("tr.call")); n != want {
			t.Errorf("%s finds %d", query, n)
		}
	}
	if text := textOf(s.get("ada", "/usage/calls?sandbox=attic").need(".empty")); !strings.Contains(text, "Nothing found") {
		t.Errorf("says %q", text)
	}
	if s.get("ada", "/usage/calls?user=bob").is(http.StatusOK).find("#log-user-fault") == nil {
		t.Error("nothing is said about another's calls")
	}
	if text := textOf(s.get("root", "/usage/calls").is(http.StatusOK).need(".calls")); !strings.Contains(text, "bob") || !strings.Contains(text, "ada") {
		t.Errorf("the admin sees %q", text)
	}
	if len(s.get("root", "/usage/calls?user=bob").all("tr.call")) != 3 {
		t.Error("an admin does not find a user's calls")
	}
}

func TestCallsPage_LeadsToOlderCalls(t *testing.T) {
	s := newStage(t)
	store := gatewaytest.NewStore()
	for i := range 140 {
		c := someCalls("ada", s.users["ada"].ID, "", "editor", stageTime.Add(-time.Duration(i)*time.Minute))[0]
		c.ID = "call-" + string(rune('a'+(139-i)/26)) + string(rune('a'+(139-i)%26))
		fillCalls(t, store, c)
	}
	s.models(store)
	first := s.get("ada", "/usage/calls?model=best").is(http.StatusOK)
	older := linked(first, "Older")
	second := s.get("ada", older).is(http.StatusOK)
	if n, m := len(first.all("tr.call")), len(second.all("tr.call")); n != 100 || m != 40 || linked(second, "Older") != "" {
		t.Errorf("%d and %d calls, then %q", n, m, older)
	}
	if newest := linked(second, "Newest"); newest != "/usage/calls?model=best" {
		t.Errorf("back leads to %q", newest)
	}
}

func TestCallPage_ShowsWhatWasLoggedAsText(t *testing.T) {
	s, _ := usedStage(t)
	got := s.get("ada", "/usage/calls/ada-9").is(http.StatusOK)
	texts := got.all("pre.call-text")
	if len(texts) != 2 || textOf(texts[0]) != `{"messages":["ada asks"]}` || textOf(texts[1]) != "<b>ada\ufffd is told</b>" {
		t.Errorf("shows %q", textOf(got.need("main")))
	}
	if text := textOf(got.need(".call-facts")); !strings.Contains(text, "Chat Completions") || !strings.Contains(text, "$0.00325") {
		t.Errorf("facts: %q", text)
	}
	failed := s.get("ada", "/usage/calls/ada-7").is(http.StatusOK)
	if text := textOf(failed.need("main")); !strings.Contains(text, "No provider offers the model gpt-9.") || !strings.Contains(text, "was not stored") {
		t.Errorf("says %q", text)
	}
	s.get("bob", "/usage/calls/ada-9").is(http.StatusNotFound)
	s.get("root", "/usage/calls/ada-9").is(http.StatusOK)
}

func TestUsagePages_SayThatContentIsStoredAndThatModelsAreOff(t *testing.T) {
	s, _ := usedStage(t)
	if err := s.server.cfg.Models.SetSettings(t.Context(), gateway.Settings{Off: true, LogContent: true}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/usage", "/usage/calls", "/usage/calls/ada-9"} {
		text := textOf(s.get("ada", path).is(http.StatusOK).need("main"))
		if !strings.Contains(text, "Prompts and answers are stored") || !strings.Contains(text, "Models are turned off") {
			t.Errorf("%s says %q", path, text)
		}
	}
}
