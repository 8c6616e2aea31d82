package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sandboxd/internal/gateway"
)

func TestProviderForm_LosesNothingButTheKey(t *testing.T) {
	s := newStage(t)
	entered := fields("preset", "openai", "own", "true", "name", "mine", "base_url", "https://api.openai.com/v1", "models", "a\nb", "key", testKey)
	for field, wrong := range map[string]string{"name": "No Name", "base_url": "nowhere", "models": "a\na", "key": "sk-hush\u00e9"} {
		f := fields()
		for k := range entered {
			f.Set(k, entered.Get(k))
		}
		f.Set(field, wrong)
		v := s.post("root", providersPath, f).is(http.StatusBadRequest)
		if v.find("#provider-"+field+"-fault") == nil || strings.Contains(v.Body.String(), "hush") {
			t.Errorf("%s is not told of as it should be", field)
		}
		if got := v.linesOf("#provider-models"); field != "models" && got != "a\nb" {
			t.Errorf("the models are %q", got)
		}
		if field == "name" && attr(v.need("#provider-name"), "value") != wrong {
			t.Error("the name is lost")
		}
		if field != "key" && textOf(v.need("#provider-key-fault")) != "Enter the key again." {
			t.Error("nothing says that the key is gone")
		}
		if v.chosen("#provider-own") != "true" {
			t.Error("whose it is to be is lost")
		}
	}
	f := fields("preset", "anthropic", "name", "x", "base_url", "https://api.anthropic.com")
	if v := s.post("root", providersPath, f).is(http.StatusBadRequest); v.find("#provider-key-fault") == nil {
		t.Error("no key is asked for")
	}
	s.addProvider("", "shared", gateway.Anthropic, "large")
	f = fields("preset", "anthropic", "name", "shared", "base_url", "https://api.anthropic.com", "key", testKey)
	if v := s.post("root", providersPath, f).is(http.StatusConflict); v.find("#provider-name-fault") == nil {
		t.Error("a second one of the same name is not refused by its field")
	}
	if p, err := s.server.providers.provider("", "shared"); err != nil || p.BaseURL != "https://shared.lan" {
		t.Errorf("it is now %+v, %v", p, err)
	}
	s.post("root", providersPath, fields("preset", "telepathy", "name", "x")).is(http.StatusBadRequest)
}

func TestProviderForm_ChangesWhatThereIs(t *testing.T) {
	s := newStage(t)
	s.addProvider("", "shared", gateway.OpenAI, "large")
	at := providersPath + "/shared?own=false"
	if v := s.get("root", at); strings.Contains(v.Body.String(), "hush") || attr(v.need("#provider-base_url"), "value") != "https://shared.lan" || v.find("#provider-name") != nil {
		t.Error("the form is not as it should be")
	}
	v := s.post("root", at, fields("base_url", "https://other.lan", "models", "large")).is(http.StatusBadRequest)
	if v.find("#provider-key-fault") == nil || attr(v.need("#provider-base_url"), "value") != "https://other.lan" {
		t.Error("the key would be sent to another address")
	}
	s.post("root", at, fields("base_url", "https://shared.lan", "models", "large small")).leads(modelsPath + "?done=provider-saved")
	if p, err := s.server.providers.provider("", "shared"); err != nil || len(p.Models) != 2 || !p.HasKey {
		t.Errorf("it is now %+v, %v", p, err)
	}
	s.post("root", at, fields("base_url", "https://shared.lan", "remove_key", "on")).leads(modelsPath + "?done=provider-saved")
	if p, err := s.server.providers.provider("", "shared"); err != nil || p.HasKey {
		t.Errorf("the key is still there: %+v, %v", p, err)
	}
	s.get("root", providersPath+"/none?own=false").is(http.StatusNotFound)
}

func TestProvider_IsListedOnceItsKeyIsRight(t *testing.T) {
	s := newStage(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"large"},{"id":"small"}]}`)) // a lost connection fails the test
	}))
	defer upstream.Close()
	entered := fields("preset", "compatible", "name", "server", "base_url", upstream.URL, "key", "wrong")
	s.post("root", providersPath, entered).leads(modelsPath + "?done=provider-unlisted")
	if got := s.get("root", modelsPath+"?done=provider-unlisted").need("div.notice"); !strings.Contains(attr(got, "class"), "tone-busy") {
		t.Errorf("that it does not answer is told as %q", attr(got, "class"))
	}
	at := providersPath + "/server?own=false"
	s.post("root", at, fields("base_url", upstream.URL)).leads(modelsPath + "?done=provider-saved") // any model is fine, too
	s.post("root", at, fields("base_url", upstream.URL, "key", "right")).leads(modelsPath + "?done=provider-listed")
	if p, err := s.server.providers.provider("", "server"); err != nil || len(p.Models) != 2 {
		t.Errorf("it is now %+v, %v", p, err)
	}
}

func TestProviders_AreDeletedOnceAsked(t *testing.T) {
	s := newStage(t)
	s.addProvider("ada", "mine", gateway.OpenAI, "large")
	at := providersPath + "/mine/delete?own=true"
	if got := textOf(s.get("ada", at).need("main")); !strings.Contains(got, "Delete the provider mine?") || !strings.Contains(got, "Its key is deleted too.") {
		t.Errorf("asks %q", got)
	}
	s.post("ada", aliasesPath, fields("name", "fast", "targets", "mine / large")).leads(modelsPath + "?done=alias-saved")
	if got := textOf(s.post("ada", at, nil).is(http.StatusConflict).need("section.sheet")); !strings.Contains(got, "fast") {
		t.Errorf("says %q", got)
	}
	s.post("ada", aliasesPath+"/fast/delete?own=true", nil).leads(modelsPath + "?done=alias-deleted")
	s.post("ada", at, nil).leads(modelsPath + "?done=provider-deleted")
	if got := s.server.cfg.Models.Providers(s.users["ada"].ID); len(got) > 0 {
		t.Errorf("there is still %+v", got)
	}
}

func TestProviders_AreCheckedOnThePage(t *testing.T) {
	s := newStage(t)
	var starting atomic.Bool
	starting.Store(true)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if starting.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"models":[{"name":"<b>small</b>"},{"name":"large"}]}`)) // a lost connection fails the test
	}))
	defer upstream.Close()
	s.post("ada", providersPath, fields("preset", "ollama", "name", "gpu", "base_url", upstream.URL)).leads(modelsPath + "?done=provider-unlisted")
	starting.Store(false)
	if got := textOf(s.get("ada", modelsPath).need("main")); !strings.Contains(got, "lead nowhere yet") {
		t.Error("nothing says that best and fast lead nowhere")
	}
	at := providersPath + "/gpu/check?own=true"
	v := s.post("ada", at, nil, "HX-Request", "true").is(http.StatusOK)
	got := v.need("#checked-own-gpu")
	if text := textOf(got); !strings.Contains(text, "with 2 models") || !strings.Contains(text, "<b>small</b>") || attr(got, "role") != "status" || v.find("main") != nil {
		t.Errorf("a script gets %q", text)
	}
	if got := textOf(s.post("ada", at, nil).is(http.StatusOK).need("#provider-own-gpu")); !strings.Contains(got, "with 2 models") {
		t.Errorf("the page says %q", got)
	}
	s.post("ada", providersPath+"/gpu/models?own=true", nil).leads(modelsPath + "?done=models-listed")
	v = s.get("ada", modelsPath)
	if got := textOf(v.need("#provider-own-gpu")); !strings.Contains(got, "2 models") || strings.Contains(textOf(v.need("main")), "lead nowhere yet") {
		t.Errorf("listed are %q", got)
	}
	s.post("ada", providersPath, fields("preset", "ollama", "name", "second", "base_url", upstream.URL)).leads(modelsPath + "?done=provider-listed")
	if got := textOf(s.get("ada", modelsPath).need("#provider-own-second")); !strings.Contains(got, "2 models") {
		t.Errorf("listed as it was saved are %q", got)
	}
	upstream.Close()
	v = s.post("ada", at, nil, "HX-Request", "true").is(http.StatusOK)
	if text := textOf(v.need("#checked-fault-own-gpu")); !strings.Contains(text, "cannot be reached") {
		t.Errorf("says %q", text)
	}
	all := recorded(t, s.server)
	if got := entryLine(all[len(all)-1]); got != "ada page provider.check  gpu failed" {
		t.Errorf("recorded is %q", got)
	}
}

func TestAliasForm_TakesModelsLineByLine(t *testing.T) {
	s := newStage(t)
	s.addProvider("", "claude", gateway.Anthropic, "large", "small")
	s.addProvider("ada", "gpu", gateway.Ollama)
	if got := textOf(s.get("ada", aliasesPath+"/new").need(".model-choices")); !strings.Contains(got, "claude / large") {
		t.Errorf("offers %q", got)
	}
	for targets, want := range map[string]string{
		"":                "Choose at least one",
		"claude":          "This has no model or no provider",
		"claude / other":  "does not list the model",
		"none / large":    "There is no provider",
		"gpu / a\ngpu/a":  "chosen twice",
		"claude / la rge": "has a space",
	} {
		v := s.post("ada", aliasesPath, fields("name", "team/fast", "targets", targets)).is(http.StatusBadRequest)
		if got := textOf(v.need("#alias-targets-fault")); !strings.Contains(got, want) || attr(v.need("#alias-name"), "value") != "team/fast" || v.linesOf("#alias-targets") != targets {
			t.Errorf("%q: says %q", targets, got)
		}
	}
	entered := fields("name", "team/fast", "targets", "gpu / org/qwen3\r\n\r\n claude/small \r\n")
	s.post("ada", aliasesPath, entered).leads(modelsPath + "?done=alias-saved")
	s.post("ada", aliasesPath, entered).is(http.StatusConflict)
	v := s.get("ada", modelsPath)
	if got := textOf(v.need(".model-targets")); !strings.Contains(got, "gpu / org/qwen3") || !strings.Contains(got, "claude / small") {
		t.Errorf("the list has %q", got)
	}
	const at = aliasesPath + "/team%2Ffast"
	if !strings.Contains(v.Body.String(), at+"?own=true") {
		t.Error("nothing leads to its form")
	}
	if got := s.get("ada", at+"?own=true").linesOf("#alias-targets"); got != "gpu / org/qwen3\nclaude / small" {
		t.Errorf("the form has %q", got)
	}
	s.get("bob", at+"?own=true").is(http.StatusNotFound)
	s.post("ada", at+"?own=true", fields("targets", "claude / nothing")).is(http.StatusBadRequest)
	s.post("ada", at+"?own=true", fields("targets", "claude / large")).leads(modelsPath + "?done=alias-saved")
	if got := textOf(s.get("ada", at+"/delete?own=true").need("main")); !strings.Contains(got, "Delete the alias team/fast?") {
		t.Errorf("asks %q", got)
	}
	s.post("ada", at+"/delete?own=true", nil).leads(modelsPath + "?done=alias-deleted")
}

// TestProviderForm_ShowsAnAddressThatTheCallerCanEnter has examples: a user's own provider has no private address.
func TestProviderForm_ShowsAnAddressThatTheCallerCanEnter(t *testing.T) {
	s := newStage(t)
	for user, want := range map[string]string{"root": "http://192.168.1.20:11434", "ada": "https://ollama.example.com"} {
		if got := attr(s.get(user, providersPath+"/new?kind=ollama").need("#provider-base_url"), "placeholder"); got != want {
			t.Errorf("%s sees %q", user, got)
		}
	}
}
