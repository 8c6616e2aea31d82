package web

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestAliases_LeadToModelsInOrder(t *testing.T) {
	w := newWorld(t)
	w.call("root", "PUT", "/api/v1/providers/claude", anthropicBody).is(http.StatusCreated)
	w.call("ada", "PUT", "/api/v1/providers/mine", `{"kind":"ollama","base_url":"http://gpu.lan:11434"}`).is(http.StatusCreated)
	const own, all = `{"targets":[{"provider":"mine","model":"org/qwen3"},{"provider":"claude","model":"small"}]}`, `{"targets":[{"provider":"claude","model":"small"}]}`
	w.call("ada", "PUT", "/api/v1/models/aliases/local", own).is(http.StatusCreated)
	w.call("ada", "PUT", "/api/v1/models/aliases/local", own).is(http.StatusOK)
	w.call("root", "PUT", "/api/v1/models/aliases/fast", all).is(http.StatusCreated)
	w.call("ada", "PUT", "/api/v1/models/aliases/fast", strings.Replace(all, "{", `{"own":false,`, 1)).problem(http.StatusForbidden, "forbidden", "")
	golden(t, "aliases", w.call("ada", "GET", "/api/v1/models/aliases", "").is(http.StatusOK).Body.Bytes())
	golden(t, "models", w.call("ada", "GET", "/api/v1/models", "").is(http.StatusOK).Body.Bytes())

	var a aliasShape
	if w.call("ada", "GET", "/api/v1/models/aliases/local", "").is(http.StatusOK).into(&a); a.Name != "local" || len(a.Targets) != 2 || !a.Own {
		t.Errorf("it is %+v", a)
	}
	w.call("bob", "GET", "/api/v1/models/aliases/local", "").problem(http.StatusNotFound, "not_found", "")
	for _, body := range []string{`{"targets":[]}`, `{}`, `{"targets":[{"provider":"none","model":"x"}]}`, `{"targets":[{"provider":"claude","model":"other"}]}`} {
		w.call("ada", "PUT", "/api/v1/models/aliases/x", body).problem(http.StatusBadRequest, "invalid", "targets")
	}
	w.call("root", "PUT", "/api/v1/models/aliases/x", `{"targets":[{"provider":"mine","model":"x"}]}`).problem(http.StatusBadRequest, "invalid", "targets") // another's
	w.call("ada", "DELETE", "/api/v1/providers/mine", "").problem(http.StatusConflict, "conflict", "")                                                      // the alias names it
	w.call("ada", "DELETE", "/api/v1/models/aliases/fast?own=false", "").problem(http.StatusForbidden, "forbidden", "")
	w.call("ada", "DELETE", "/api/v1/models/aliases/local", "").is(http.StatusNoContent)
	w.call("ada", "DELETE", "/api/v1/models/aliases/local", "").problem(http.StatusNotFound, "not_found", "")
}

func TestAliases_MayHaveASlash(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "PUT", "/api/v1/providers/mine", `{"kind":"ollama","base_url":"http://gpu.lan:11434"}`).is(http.StatusCreated)
	for _, c := range []struct {
		method, body string
		status       int
	}{{"PUT", `{"targets":[{"provider":"mine","model":"org/qwen3"}]}`, http.StatusCreated}, {"GET", "", http.StatusOK}, {"DELETE", "", http.StatusNoContent}} {
		r := httptest.NewRequest(c.method, "http://localhost:8080/api/v1/models/aliases/team%2Ffast", strings.NewReader(c.body))
		r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
		r.Header.Set("Content-Type", "application/json")
		got := answer{httptest.NewRecorder(), t} // the document's router knows no such path
		w.server.ServeHTTP(got, r)
		if got.is(c.status); c.status != http.StatusNoContent && !strings.Contains(got.Body.String(), `"name":"team/fast"`) {
			t.Errorf("%s answers %s", c.method, got.Body)
		}
	}
}

func TestBudgets_AreSetByAdminsAndSeenByThoseWhomTheyBind(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "den")
	put := func(user, body string) answer { return w.call(user, "PUT", "/api/v1/models/budgets", body) }
	put("ada", `{"scope":"user","period":"day","requests":1}`).problem(http.StatusForbidden, "forbidden", "")
	put("root", `{"scope":"user","period":"day","requests":1000,"dollars":2.5}`).is(http.StatusOK)
	put("root", `{"scope":"user","subject":"bob","period":"month","tokens":2000000}`).is(http.StatusOK)
	put("root", `{"scope":"sandbox","subject":"lab","period":"day","dollars":0.1}`).is(http.StatusOK)
	put("root", `{"scope":"sandbox","subject":"den","period":"day","requests":5}`).is(http.StatusOK)
	put("root", `{"scope":"sandbox","period":"day","requests":7}`).is(http.StatusOK)
	for _, c := range []struct{ body, field string }{
		{`{"scope":"team","period":"day","requests":1}`, "scope"}, {`{"scope":"user","period":"year","requests":1}`, "period"},
		{`{"scope":"user","subject":"eve","period":"day","requests":1}`, "subject"}, {`{"scope":"sandbox","subject":"bob","period":"day","requests":1}`, "subject"},
		{`{"scope":"user","period":"day"}`, "requests"}, {`{"scope":"user","period":"day","requests":-1}`, "requests"}, {`{"scope":"user","period":"day","dollars":-1}`, "dollars"},
		{`{"scope":"user","period":"day","dollars":1e12}`, "dollars"},
	} {
		put("root", c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
	lines := func(user, query string) (out []string) {
		var list budgetsShape
		w.call(user, "GET", "/api/v1/models/budgets"+query, "").is(http.StatusOK).into(&list)
		for _, b := range list.Budgets {
			used := "-"
			if b.Used != nil {
				used = "used"
			}
			out = append(out, strings.Join([]string{b.Scope, b.Subject, b.Period, used}, " "))
		}
		return out
	}
	for _, c := range []struct{ user, query, want string }{
		{"root", "", "sandbox  day -, user  day -, sandbox den day used, sandbox lab day used, user bob month used"},
		{"ada", "", "user  day used, sandbox  day -, sandbox lab day used"},
		{"bob", "", "user  day used, user bob month used, sandbox  day -, sandbox den day used"},
		{"ada", "?sandbox=lab", "user  day used, sandbox lab day used"},
		{"root", "?sandbox=den", "user  day used, user bob month used, sandbox den day used"},
	} {
		if got := strings.Join(slices.Sorted(slices.Values(lines(c.user, c.query))), ", "); got != strings.Join(slices.Sorted(slices.Values(strings.Split(c.want, ", "))), ", ") {
			t.Errorf("%s%s sees %s, want %s", c.user, c.query, got, c.want)
		}
	}
	w.call("ada", "GET", "/api/v1/models/budgets?sandbox=den", "").problem(http.StatusNotFound, "not_found", "")
	const one = "/api/v1/models/budgets?scope=user&subject=bob&period=month"
	w.call("ada", "DELETE", one, "").problem(http.StatusForbidden, "forbidden", "")
	w.call("root", "DELETE", one, "").is(http.StatusNoContent)
	w.call("root", "DELETE", one, "").problem(http.StatusNotFound, "not_found", "")
	got := recorded(t, w.server)
	if last := entryLine(got[len(got)-1]); last != "root api budget.remove  user bob, per month refused" {
		t.Errorf("recorded is %q", last)
	}
}

func TestModelSettings_AreChangedByAdminsAndToldToAll(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "PUT", "/api/v1/models/settings", `{"off":true}`).problem(http.StatusForbidden, "forbidden", "")
	w.call("root", "PUT", "/api/v1/models/settings", `{"log_content":true}`).is(http.StatusOK)
	w.call("root", "PUT", "/api/v1/models/settings", `{"off":true}`).is(http.StatusOK) // what is left out stays
	var got modelSettingsShape
	if w.call("ada", "GET", "/api/v1/models/settings", "").is(http.StatusOK).into(&got); !got.Off || !got.LogContent {
		t.Errorf("the settings are %+v", got)
	}
	checkRecorded(t, w.server, "ada api models.change   refused", "root api models.change  content on done", "root api models.change  models off done")
}

func TestModelPrices_AreForAll(t *testing.T) {
	w := newWorld(t)
	var got pricesShape
	if w.call("ada", "GET", "/api/v1/models/prices", "").is(http.StatusOK).into(&got); len(got.Prices) == 0 || got.Prices[0].Model == "" {
		t.Errorf("the prices are %+v", got)
	}
}
