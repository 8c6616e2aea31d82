package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/gateway/gatewaytest"
)

const modelsAPI = "/api/v1/models"

func (a answer) callIDs() string {
	a.t.Helper()
	var list callsShape
	a.is(http.StatusOK).into(&list)
	ids := make([]string, 0, len(list.Calls))
	for _, c := range list.Calls {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

func TestModelCalls_EachSeesOnesOwnAndAdminsAll(t *testing.T) {
	w := usedModels(t)
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "limited", Sandbox: "lab"})
	w.box("ada", "other")
	w.tokens["elsewhere"] = w.token("ada", auth.NewToken{Name: "elsewhere", Sandbox: "other"})
	for who, want := range map[string]string{
		"ada": "ada-9 ada-8 ada-7", "bob": "bob-9 bob-8 bob-7", "limited": "ada-9 ada-8 ada-7", "elsewhere": "",
	} {
		if got := w.call(who, "GET", modelsAPI+"/calls", "").callIDs(); got != want {
			t.Errorf("%s sees %q, want %q", who, got, want)
		}
	}
	if got := w.call("root", "GET", modelsAPI+"/calls?user=bob&failed=true", "").callIDs(); got != "bob-7" {
		t.Errorf("the admin finds %q", got)
	}
	if got := w.call("root", "GET", modelsAPI+"/calls", "").callIDs(); strings.Count(got, " ") != 5 {
		t.Errorf("the admin sees %q", got)
	}
	w.call("ada", "GET", modelsAPI+"/calls?user=bob", "").problem(http.StatusBadRequest, "invalid", "user")
	w.call("ada", "GET", modelsAPI+"/calls?sandbox=attic", "").problem(http.StatusNotFound, "not_found", "")
	w.call("limited", "GET", modelsAPI+"/calls?sandbox=other", "").problem(http.StatusNotFound, "not_found", "")
	for _, who := range []string{"ada", "limited", "root"} {
		w.call(who, "GET", modelsAPI+"/calls/ada-9", "").is(http.StatusOK)
	}
	for _, who := range []string{"bob", "elsewhere"} {
		p := w.call(who, "GET", modelsAPI+"/calls/ada-9", "").problem(http.StatusNotFound, "not_found", "")
		if none := w.call(who, "GET", modelsAPI+"/calls/none", "").problem(http.StatusNotFound, "not_found", ""); p.Detail != none.Detail {
			t.Errorf("%s can tell %q from %q", who, p.Detail, none.Detail)
		}
	}
}

func TestModelCalls_AreFoundPageByPage(t *testing.T) {
	w := usedModels(t)
	for query, want := range map[string]string{
		"?model=gpt-5": "ada-9", "?model=best": "ada-9", "?sandbox=lab&failed=true": "ada-7", "?limit=2": "ada-9 ada-8", "?limit=2&next=ada-8": "ada-7",
	} {
		if got := w.call("ada", "GET", modelsAPI+"/calls"+query, "").callIDs(); got != want {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	var page callsShape
	w.call("ada", "GET", modelsAPI+"/calls?limit=2", "").into(&page)
	if page.Next == nil || *page.Next != "ada-8" {
		t.Errorf("next is %v", page.Next)
	}
	page = callsShape{}
	w.call("ada", "GET", modelsAPI+"/calls?limit=3", "").into(&page)
	if page.Next != nil {
		t.Errorf("nothing is left, and next is %q", *page.Next)
	}
	w.call("ada", "GET", modelsAPI+"/calls?failed=perhaps", "").problem(http.StatusBadRequest, "invalid", "failed")
	w.call("ada", "GET", modelsAPI+"/calls?limit=0", "").problem(http.StatusBadRequest, "invalid", "limit")
}

func TestModelUsage_EachSeesOnesOwnAndAdminsAll(t *testing.T) {
	w := usedModels(t)
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "limited", Sandbox: "lab"})
	for _, c := range []struct {
		who, query string
		parts      int
		requests   int64
	}{
		{"ada", "", 1, 3}, {"limited", "", 1, 3}, {"root", "", 1, 6}, {"root", "?user=bob", 1, 3}, {"ada", "?by=model", 3, 3}, {"root", "?by=user", 2, 6},
		{"ada", "?by=user", 1, 3}, {"ada", "?step=1h", 1, 3}, {"ada", "?from=30d&step=24h&by=provider", 3, 3}, {"ada", "?to=3h", 0, 0},
	} {
		var out usageShape
		w.call(c.who, "GET", modelsAPI+"/usage"+c.query, "").is(http.StatusOK).into(&out)
		var requests int64
		for _, u := range out.Usage {
			requests += u.Requests
		}
		if len(out.Usage) != c.parts && requests > 0 || requests != c.requests {
			t.Errorf("%s with %q: %+v", c.who, c.query, out.Usage)
		}
	}
	for query, field := range map[string]string{
		"?step=90m": "step", "?step=x": "step", "?from=400d&step=1h": "step", "?by=colour": "by", "?from=later": "from", "?from=1h&to=2h": "to", "?user=bob": "user",
	} {
		got := w.call("ada", "GET", modelsAPI+"/usage"+query, "")
		got.problem(http.StatusBadRequest, "invalid", field)
	}
}

var wireTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*Z"`)

func TestModelUsage_WireShapesAreAsPinned(t *testing.T) {
	w := newWorld(t)
	store := gatewaytest.NewStore()
	fillCalls(t, store, someCalls("ada", w.ids["ada"], "00000000000000aa", "lab", time.Now())...)
	w.server.cfg.Models = openModels(t, store, nil)
	for name, path := range map[string]string{"model_usage": "/usage?by=model", "model_calls": "/calls", "model_call": "/calls/ada-9"} {
		body := w.call("ada", "GET", modelsAPI+path, "").is(http.StatusOK).Body.Bytes()
		golden(t, name, wireTime.ReplaceAll(body, []byte(`"2026-01-02T03:04:05Z"`)))
	}
}
