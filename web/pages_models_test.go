package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
)

// addProvider adds a provider of a user's, or the server's for "", with a key.
func (s *stage) addProvider(user, name string, kind gateway.Kind, models ...string) {
	s.t.Helper()
	key := testKey
	p := gateway.Provider{Owner: s.users[user].ID, Name: name, Kind: kind, BaseURL: "https://" + name + ".lan", Models: models}
	if _, err := s.server.cfg.Models.SetProvider(s.t.Context(), p, &key); err != nil {
		s.t.Fatal(err)
	}
}

// chosen is the value of what is chosen in a select.
func (v view) chosen(what string) string {
	v.t.Helper()
	for _, n := range within(v.need(what), "option") {
		if hasAttr(n, "selected") {
			return attr(n, "value")
		}
	}
	return ""
}

// linesOf is what is entered in a textarea.
func (v view) linesOf(what string) string {
	v.t.Helper()
	n := v.need(what)
	if n.FirstChild == nil {
		return ""
	}
	return n.FirstChild.Data
}

func TestModelsPage_SaysHowToStart(t *testing.T) {
	s := newStage(t)
	for _, user := range []string{"root", "ada"} {
		v := s.get(user, modelsPath).is(http.StatusOK)
		if got := len(v.all(".kind")); got != len(modelPresets) {
			t.Errorf("%s is offered %d kinds", user, got)
		}
		if v.find("#aliases-title") != nil || v.find("#budgets-title") != nil {
			t.Errorf("%s is shown what there is no use for yet", user)
		}
		if !strings.Contains(s.get(user, "/settings").Body.String(), `<a href="/settings/models"`) {
			t.Errorf("the settings of %s do not lead there", user)
		}
	}
	v := s.get("ada", providersPath+"/new?kind=anthropic")
	if v.find("#provider-own") != nil || attr(v.need("#provider-base_url"), "value") != "https://api.anthropic.com" || textOf(v.need("#provider-models")) == "" {
		t.Error("the form is not filled in by the kind")
	}
	s.post("ada", providersPath, fields("preset", "anthropic", "name", "anthropic", "base_url", "https://api.anthropic.com", "models", "large\nsmall\n", "key", testKey)).
		leads(modelsPath + "?done=provider-saved")
	v = s.get("ada", modelsPath+"?done=provider-saved")
	if got := textOf(v.need("#provider-own-anthropic")); !strings.Contains(got, "Key set") || !strings.Contains(got, "2 models") || !strings.Contains(got, "only you") {
		t.Errorf("listed as %q", got)
	}
	if got := attr(s.get("ada", providersPath+"/new?kind=anthropic").need("#provider-name"), "value"); got != "anthropic-2" {
		t.Errorf("the next one is to be %q", got)
	}
	s.get("ada", providersPath+"/new?kind=telepathy").is(http.StatusBadRequest)
}

func TestModelsPage_ShowsMembersWhatIsTheirsAndNoAddressOfTheServers(t *testing.T) {
	s := newStage(t)
	s.addProvider("", "shared", gateway.Anthropic, "large")
	s.addProvider("ada", "private", gateway.OpenAI)
	for _, c := range []struct {
		user, has, lacks string
	}{
		{"root", "provider-server-shared https://shared.lan /settings/models/providers/shared", "private"},
		{"ada", "provider-server-shared provider-own-private https://private.lan", "https://shared.lan /settings/models/providers/shared"},
		{"bob", "provider-server-shared large", "https://shared.lan private"},
	} {
		text := s.get(c.user, modelsPath).is(http.StatusOK).Body.String()
		for word := range strings.FieldsSeq(c.has) {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not see %s", c.user, word)
			}
		}
		for word := range strings.FieldsSeq(c.lacks) {
			if strings.Contains(text, word) {
				t.Errorf("%s sees %s", c.user, word)
			}
		}
		if strings.Contains(text, "hush") {
			t.Errorf("%s sees the key", c.user)
		}
	}
	const theirs = "/private?own=true"
	for _, path := range []string{"/private/delete?own=true", theirs} {
		s.get("bob", providersPath+path).is(http.StatusNotFound)
		s.get("root", providersPath+path).is(http.StatusNotFound)
	}
	s.post("bob", providersPath+theirs, fields("base_url", "https://evil.lan", "key", "x")).is(http.StatusNotFound)
	s.post("bob", providersPath+"/private/delete?own=true", nil).is(http.StatusNotFound)
	for _, path := range []string{"/shared?own=false", "/shared/delete?own=false"} {
		s.get("ada", providersPath+path).is(http.StatusForbidden)
		s.post("ada", providersPath+path, fields("base_url", "https://evil.lan")).is(http.StatusForbidden)
	}
	s.post("ada", providersPath, fields("preset", "ollama", "own", "false", "name", "mine", "base_url", "http://gpu.lan")).is(http.StatusForbidden)
	for _, path := range []string{budgetsPath, modelsPath + "/settings", budgetsPath + "/edit?scope=user&period=day"} {
		s.post("ada", path, fields("off", "true", "subject", "user", "period", "day", "requests", "1")).is(http.StatusForbidden)
	}
	s.get("ada", budgetsPath+"/new").is(http.StatusForbidden)
}

func TestModelsPage_IsNotPostedToFromElsewhere(t *testing.T) {
	s := newStage(t)
	s.addProvider("ada", "private", gateway.OpenAI)
	for _, path := range []string{providersPath, providersPath + "/private?own=true", providersPath + "/private/delete?own=true", providersPath + "/private/check?own=true", aliasesPath} {
		s.post("ada", path, fields("preset", "ollama", "name", "x", "base_url", "https://evil.lan"), "Origin", "http://lab.localhost:8080").is(http.StatusForbidden)
	}
	s.post("root", modelsPath+"/settings", fields("off", "true"), "Origin", "http://lab.localhost:8080").is(http.StatusForbidden)
	if got := s.server.cfg.Models.Providers(s.users["ada"].ID); len(got) != 1 || s.server.cfg.Models.Settings().Off {
		t.Errorf("changed from elsewhere: %+v", got)
	}
}

func TestModelsPage_TellsEveryoneWhatTheSettingsMean(t *testing.T) {
	s := newStage(t)
	s.post("root", modelsPath+"/settings", fields("off", "true")).leads(modelsPath + "?done=models-off")
	s.post("root", modelsPath+"/settings", fields("log_content", "true")).leads(modelsPath + "?done=content-on")
	for _, user := range []string{"root", "ada"} {
		text := textOf(s.get(user, modelsPath).need("main"))
		if !strings.Contains(text, "Models are turned off") || !strings.Contains(text, "Prompts and answers are stored") {
			t.Errorf("%s is told %q", user, text)
		}
	}
	s.post("root", modelsPath+"/settings", fields("off", "perhaps")).is(http.StatusBadRequest)
	s.post("root", modelsPath+"/settings", nil).is(http.StatusBadRequest)
	s.post("root", modelsPath+"/settings", fields("off", "false")).leads(modelsPath + "?done=models-on")
	if set := s.server.cfg.Models.Settings(); set.Off || !set.LogContent {
		t.Errorf("the settings are %+v", set)
	}
	if v := s.get("ada", modelsPath); v.find("#model-settings-title") != nil {
		t.Error("a member is offered the settings")
	}
}

func TestModelsPage_SaysHowProgramsUseModelsAndWhatTheyCost(t *testing.T) {
	s := newStage(t)
	text := textOf(s.get("ada", modelsPath).need("main"))
	for _, word := range []string{"http://127.0.0.1:7465", "OPENAI_BASE_URL=http://127.0.0.1:7465/v1", "http://localhost:8080/models/v1"} {
		if !strings.Contains(text, word) {
			t.Errorf("%s is missing", word)
		}
	}
	if strings.Contains(text, "/data/prices.json") || !strings.Contains(textOf(s.get("root", modelsPath).need("main")), "/data/prices.json") {
		t.Error("the file of prices is for admins")
	}
	if s.get("ada", modelsPath).find(".model-prices") == nil {
		t.Error("no prices")
	}
	s.addProvider("", "claude", gateway.Anthropic, "large")
	if text := textOf(s.get("ada", modelsPath).need("main")); !strings.Contains(text, "7465/v1/messages") {
		t.Error("the example does not work with the provider that there is")
	}
}
